// Floats of four bits (e2m1), two in a byte, the first in the low half, that share scales:
//
//   MXFP4    X_blocks u8 [..., out, groups, 16]   X_scales u8 [..., out, groups]: 2^(scale - 127)
//   MXFP4    X.weight[_packed] u8 [out, in / 2]   X.weight_scale u8 [out, in / 32]
//   NVFP4    X.weight u8 [out, in / 2]            X.weight_scale f8_e4m3 [out, in / 16]
//            X.weight_scale_2 f32: all times this, or X.weight_global_scale: all over this
//
// X_blocks are those of gpt-oss, whose unpacked experts have inputs before outputs.

#include <cmath>

#include "base/text.h"
#include "packed/packed.h"
#include "packed/window.h"

namespace tensordiff {
namespace {

constexpr double kValues[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6};

// What was found beside the levels.
struct Found {
  const Tensor* scale = nullptr;
  const Tensor* whole = nullptr;  // One scale for all; may be none.
  bool divides = false;
  bool in_blocks = false;  // X_blocks: the last axis is that of a group.
  std::string name;
};

bool is_power(DType dtype) { return dtype == DType::u8 || dtype == DType::f8_e8m0; }

std::optional<Found> find(const Siblings& siblings) {
  Found found;
  if (const auto stem = siblings.stem("_blocks")) {
    found.scale = siblings.named(*stem + "_scales");
    found.in_blocks = true;
    found.name = *stem;
  } else {
    found.name = siblings.stem("_packed").value_or(siblings.tensor().name);
    found.scale = siblings.named(found.name + "_scale");
    found.whole = siblings.named(found.name + "_scale_2");
    if (!found.whole && siblings.named(found.name + "_global_scale")) {
      found.whole = siblings.named(found.name + "_global_scale");
      found.divides = true;
    }
  }
  if (!found.scale || found.scale == &siblings.tensor()) return std::nullopt;
  const DType dtype = found.scale->view.dtype;
  if (!is_power(dtype) && dtype != DType::f8_e4m3) return std::nullopt;
  return found;
}

// The shape that is meant: the last axis twice as long, that of a group gone.
std::optional<Shape> meant(const Shape& levels, bool in_blocks) {
  Shape shape = levels;
  const std::optional<uint64_t> last = checked_mul<uint64_t>(shape.back(), 2);
  if (!last) return std::nullopt;
  shape.back() = *last;
  if (!in_blocks) return shape;
  if (shape.size() < 3) return std::nullopt;
  const std::optional<uint64_t> row = checked_mul(shape[shape.size() - 2], shape.back());
  if (!row) return std::nullopt;
  shape.pop_back();
  shape.back() = *row;
  return shape;
}

Result<std::optional<Unpacked>> unpack(const Siblings& siblings) {
  const Tensor& levels = siblings.tensor();
  if (levels.view.dtype != DType::u8 || levels.view.shape.size() < 2)
    return std::optional<Unpacked>();
  const std::optional<Found> found = find(siblings);
  if (!found) return std::optional<Unpacked>();
  const std::optional<Shape> shape = meant(levels.view.shape, found->in_blocks);
  const uint64_t scales = found->scale->elements();
  const std::optional<uint64_t> elements = shape ? element_count(*shape) : std::nullopt;
  const uint64_t groups = found->scale->view.shape.empty() ? 0 : found->scale->view.shape.back();
  if (!elements || scales == 0 || *elements % scales != 0 || groups == 0 ||
      shape->back() % groups != 0 || shape->back() / groups != *elements / scales ||
      (found->whole && found->whole->elements() == 0))
    return Error("levels of {} do not fit scales of {}", shape_text(levels.view.shape),
                 shape_text(found->scale->view.shape));
  const uint64_t group = *elements / scales;
  Packed packed{{levels.view, found->scale->view}, {}};
  std::vector<const Tensor*> with{found->scale};
  if (found->whole) {
    packed.inputs.push_back(found->whole->view);
    with.push_back(found->whole);
  }
  const bool exponents = found->scale->view.dtype == DType::u8;
  packed.decode = [group, exponents, divides = found->divides](std::span<const Reader> in,
                                                               uint64_t first, int64_t step,
                                                               std::size_t count, float* out) {
    Window bytes(in[0], step), scale(in[1], 0);
    double whole = 1;
    if (in.size() > 2) in[2].values(0, 1, &whole);
    if (divides) whole = 1 / whole;
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t at = first + i * static_cast<uint64_t>(step);
      double factor = scale.at(at / group);
      if (exponents) factor = std::ldexp(1.0, static_cast<int>(factor) - 127);
      out[i] = static_cast<float>(kValues[level_of(bytes.at(at / 2), at % 2, 4)] * factor * whole);
    }
  };
  const bool is_mx = is_power(found->scale->view.dtype);
  View view = TRY(packed_view(is_mx ? DType::mxfp4 : DType::nvfp4, *shape, std::move(packed)));
  if (found->in_blocks && shape->size() > 2) view = turned(std::move(view));
  return std::optional(Unpacked{std::move(view), found->name,
                                fmt::format("{} (groups of {})", is_mx ? "MXFP4" : "NVFP4", group),
                                std::move(with)});
}

}  // namespace

constinit const Packing packings::small_floats = {
    .name = "small-floats",
    .summary = "MXFP4 and NVFP4: floats of 4 bits with scales for groups of 16 or 32",
    .unpack = unpack,
};

}  // namespace tensordiff
