// Floats of 8 bits or integers of 8 bits, each times a scale that it shares with others:
//
//   X.weight  f8 or i8 [out, in]     X.weight_scale, X.weight_scale_inv, X.scale, X.SCB
//                                    X.weight_zero_point
//
// Whatever it is called, the scale is what a level is multiplied with; only that of bitsandbytes
// (SCB) is the largest value of a row, which level 127 stands for. The shape of the scale tells how
// many levels share one: [1] all, [out] or [out, 1] a row, [out / 128, in / 128] a block.

#include <algorithm>

#include "base/text.h"
#include "packed/packed.h"
#include "packed/window.h"

namespace tensordiff {
namespace {

constexpr uint64_t kUsualBlock = 128;  // DeepSeek's, and what config.json says where it says one.

// What stands in place of "weight" in the name of a scale, and the number that it is divided by.
struct Scale {
  std::string_view ending;  // After the name of the levels, or after their stem where it has a dot.
  double divisor;
};
constexpr Scale kScales[] = {
    {"_scale_inv", 1}, {"_scale", 1},        {"_scales", 1}, {".scale_weight", 1},
    {".scale", 1},     {".weight_scale", 1}, {".SCB", 127},
};

struct Found {
  const Tensor* scale = nullptr;
  const Tensor* zero_point = nullptr;
  double divisor = 1;
};

std::optional<DType> made_type(DType stored) {
  switch (stored) {
    case DType::f8_e4m3:
    case DType::f8_e4m3fnuz:
      return DType::f8_e4m3_scaled;
    case DType::f8_e5m2:
    case DType::f8_e5m2fnuz:
      return DType::f8_e5m2_scaled;
    case DType::i8:
    case DType::u8:
      return DType::int8_scaled;
    default:
      return std::nullopt;
  }
}

bool is_scale(const Tensor* tensor, const Tensor& levels) {
  return tensor && tensor != &levels && is_float(tensor->view.dtype);
}

// The name of the weight: without what ONNX adds to that of its levels.
std::string weight_name(const Siblings& siblings) {
  return siblings.stem("_quantized").value_or(siblings.tensor().name);
}

Found find_scale(const Siblings& siblings) {
  const std::string weight = weight_name(siblings);
  const std::size_t dot = weight.rfind('.');
  Found found;
  for (const Scale& each : kScales) {
    const bool beside = each.ending.starts_with('.');
    if (beside && dot == std::string::npos) continue;
    const std::string name = (beside ? weight.substr(0, dot) : weight) + std::string(each.ending);
    if (!is_scale(siblings.named(name), siblings.tensor())) continue;
    found.scale = siblings.named(name);
    found.divisor = each.divisor;
    found.zero_point = siblings.named(weight + "_zero_point");
    return found;
  }
  return found;
}

// Axes of a scale as those of the levels, by adding axes of one at the end; in front only where it
// fits the last axis and not the first.
Shape padded(const Shape& scale, const Shape& levels) {
  const std::size_t rank = levels.size();
  Shape shape = scale;
  if (shape.size() == 1 && shape[0] != levels.front() && shape[0] == levels.back())
    shape.insert(shape.begin(), rank - 1, 1);
  while (shape.size() > rank && shape.back() == 1) shape.pop_back();
  while (shape.size() > rank && shape.front() == 1) shape.erase(shape.begin());
  if (shape.size() == 1 && shape[0] == 1) shape.clear();
  shape.resize(std::max(rank, shape.size()), 1);
  return shape;
}

uint64_t blocks_of(uint64_t size, uint64_t block) { return (size + block - 1) / block; }

// How many levels along an axis share one of so many scales; 0 where they cannot.
uint64_t block_size(uint64_t size, uint64_t scales, uint64_t usual) {
  if (scales == 0 || scales > size) return 0;
  if (scales == 1) return std::max<uint64_t>(size, 1);
  if (blocks_of(size, usual) == scales) return usual;
  if (size % scales == 0) return size / scales;
  for (uint64_t block = 2; block < size; block *= 2)
    if (blocks_of(size, block) == scales) return block;
  return 0;
}

// Where along each axis the scales change.
struct Grid {
  Shape shape;                  // Of the levels.
  std::vector<uint64_t> block;  // Levels along each axis that share a scale.
  Shape scales;

  uint64_t scale_at(uint64_t element) const {
    uint64_t at = 0, step = 1;
    for (std::size_t axis = shape.size(); axis-- > 0; element /= shape[axis]) {
      at += element % shape[axis] / block[axis] * step;
      step *= scales[axis];
    }
    return at;
  }
};

Result<Grid> grid_of(const Siblings& siblings, const Shape& shape, const Shape& scale) {
  Grid grid{shape, {}, padded(scale, shape)};
  const Error misfit("scales of {} do not fit levels of {}", shape_text(scale), shape_text(shape));
  if (grid.scales.size() != shape.size()) return misfit;
  const std::string_view setting = siblings.setting("weight_block_size");
  for (std::size_t axis = 0; axis < shape.size(); ++axis) {
    uint64_t usual = kUsualBlock;
    if (setting.size() > 2 && shape.size() == 2) {
      const auto sizes = split(setting.substr(1, setting.size() - 2), ',');
      if (sizes.size() == 2) {
        std::string_view text = sizes[axis];
        while (text.starts_with(' ')) text.remove_prefix(1);
        if (all_digits(text) && text.size() < 7) usual = std::stoull(std::string(text));
      }
    }
    grid.block.push_back(block_size(shape[axis], grid.scales[axis], std::max<uint64_t>(usual, 1)));
    if (grid.block.back() == 0) return misfit;
  }
  return grid;
}

std::string sharing(const Grid& grid) {
  std::vector<uint64_t> block = grid.block;
  if (block == grid.shape || element_count(grid.scales) == 1) return "one scale";
  if (grid.shape.size() == 2 && block[0] == 1 && block[1] == grid.shape[1])
    return "a scale for each row";
  return fmt::format("a scale for each block of {}", shape_text(block));
}

Result<std::optional<Unpacked>> unpack(const Siblings& siblings) {
  const Tensor& levels = siblings.tensor();
  const std::optional<DType> dtype = made_type(levels.view.dtype);
  if (!dtype || levels.view.shape.empty()) return std::optional<Unpacked>();
  // Zero points are integers beside the same scale, and no weights.
  if (siblings.stem("_zero_point")) return std::optional<Unpacked>();
  const Found found = find_scale(siblings);
  if (!found.scale) return std::optional<Unpacked>();
  const Grid grid = TRY(grid_of(siblings, levels.view.shape, found.scale->view.shape));
  Packed packed{{levels.view, found.scale->view}, {}};
  std::vector<const Tensor*> with{found.scale};
  if (found.zero_point) {
    if (found.zero_point->elements() != found.scale->elements())
      return Error("{} zero points for {} scales", found.zero_point->elements(),
                   found.scale->elements());
    packed.inputs.push_back(found.zero_point->view);
    with.push_back(found.zero_point);
  }
  packed.decode = [grid, divisor = found.divisor](std::span<const Reader> in, uint64_t first,
                                                  int64_t step, std::size_t count, float* out) {
    Window level(in[0], step), scale(in[1], 0), zero(in[in.size() - 1], 0);
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t element = first + i * static_cast<uint64_t>(step);
      const uint64_t at = grid.scale_at(element);
      const double offset = in.size() > 2 ? zero.at(at) : 0;
      out[i] = static_cast<float>((level.at(element) - offset) * scale.at(at) / divisor);
    }
  };
  std::string from = fmt::format("{} with {}", name_of(levels.view.dtype), sharing(grid));
  View view = TRY(packed_view(*dtype, levels.view.shape, std::move(packed)));
  return std::optional(
      Unpacked{std::move(view), weight_name(siblings), std::move(from), std::move(with)});
}

}  // namespace

constinit const Packing packings::scaled = {
    .name = "scaled",
    .summary = "8-bit floats or integers with one scale for all, for each row or for each block",
    .unpack = unpack,
};

}  // namespace tensordiff
