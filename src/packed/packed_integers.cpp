// compressed-tensors "pack-quantized": words of 32 bits hold levels of 4 or 8 bits of neighbouring
// inputs, the first in the lowest bits.
//
//   X.weight_packed i32 [out, in / 8]   X.weight_shape i64 [2]: out, in
//   X.weight_scale [out, groups]        X.weight_zero_point i32 [out / 8, groups]; may be missing
//   X.weight_g_idx i32 [in], the group of each input; may be missing, or -1 throughout
//
// The weight is (level - zero) * scale; without a zero it is the middle of the range.

#include <limits>

#include "base/text.h"
#include "packed/packed.h"
#include "packed/window.h"

namespace tensordiff {
namespace {

constexpr uint64_t kWordBits = 32;

struct Sizes {
  uint64_t outputs, inputs, groups, group, words;
  unsigned bits;
};

uint64_t words_for(uint64_t levels, unsigned bits) {
  return (levels + kWordBits / bits - 1) / (kWordBits / bits);
}

Result<Sizes> sizes_of(const Tensor& words, const Tensor& shape, const Tensor& scale) {
  if (shape.elements() != 2) return Error("a weight_shape of {} sizes", shape.elements());
  const Reader reader = TRY(Reader::open(shape.view));
  double stored[2];
  reader.values(0, 2, stored);
  const Shape& q = words.view.shape;
  Sizes sizes{};
  for (double size : stored)
    if (!(size >= 0 && size < static_cast<double>(kElementsMax)))
      return Error("a weight_shape that is not a shape");
  sizes.outputs = static_cast<uint64_t>(stored[0]);
  sizes.inputs = static_cast<uint64_t>(stored[1]);
  sizes.words = q[1];
  for (const unsigned bits : {2U, 4U, 8U})
    if (q[0] == sizes.outputs && words_for(sizes.inputs, bits) == q[1]) sizes.bits = bits;
  const Shape& s = scale.view.shape;
  sizes.groups = s.size() == 2 ? s[1] : 1;
  if (sizes.bits == 0 || s.empty() || s[0] != sizes.outputs || sizes.groups == 0 ||
      scale.elements() != sizes.outputs * sizes.groups)
    return Error("words of {} and scales of {} do not fit a weight of [{}, {}]", shape_text(q),
                 shape_text(s), sizes.outputs, sizes.inputs);
  sizes.group = std::max<uint64_t>((sizes.inputs + sizes.groups - 1) / sizes.groups, 1);
  return sizes;
}

// Which inputs are optional, and where they stand among those of the decoder.
struct Parts {
  std::optional<std::size_t> zeros, order;
};

void decode(const Sizes& sizes, const Parts& parts, std::span<const Reader> in, uint64_t first,
            int64_t step, std::size_t count, float* out) {
  Window words(in[0], step), scales(in[1], 0);
  Window zeros(in[parts.zeros.value_or(0)], 0), order(in[parts.order.value_or(0)], step);
  const uint64_t in_word = kWordBits / sizes.bits;
  for (std::size_t i = 0; i < count; ++i) {
    const uint64_t element = first + i * static_cast<uint64_t>(step);
    const uint64_t output = element / sizes.inputs, input = element % sizes.inputs;
    const double named = parts.order ? order.at(input) : -1;
    const uint64_t group = named >= 0 ? static_cast<uint64_t>(named) : input / sizes.group;
    if (group >= sizes.groups) {  // A group that is not there.
      out[i] = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const unsigned level =
        level_of(words.at(output * sizes.words + input / in_word), input % in_word, sizes.bits);
    unsigned zero = 1U << (sizes.bits - 1);
    if (parts.zeros)
      zero =
          level_of(zeros.at(output / in_word * sizes.groups + group), output % in_word, sizes.bits);
    out[i] = static_cast<float>((static_cast<int>(level) - static_cast<int>(zero)) *
                                scales.at(output * sizes.groups + group));
  }
}

Result<std::optional<Unpacked>> unpack(const Siblings& siblings) {
  const Tensor& words = siblings.tensor();
  const std::optional<std::string> stem = siblings.stem("_packed");
  if (!stem || words.view.dtype != DType::i32 || words.view.shape.size() != 2)
    return std::optional<Unpacked>();
  const Tensor* shape = siblings.named(*stem + "_shape");
  const Tensor* scale = siblings.named(*stem + "_scale");
  if (!shape || !scale) return std::optional<Unpacked>();
  const Sizes sizes = TRY(sizes_of(words, *shape, *scale));
  Packed packed{{words.view, scale->view}, {}};
  std::vector<const Tensor*> with{shape, scale};
  Parts parts;
  if (const Tensor* zeros = siblings.named(*stem + "_zero_point")) {
    if (zeros->elements() != words_for(sizes.outputs, sizes.bits) * sizes.groups)
      return Error("zeros of {} for {} outputs", shape_text(zeros->view.shape), sizes.outputs);
    parts.zeros = packed.inputs.size();
    packed.inputs.push_back(zeros->view);
    with.push_back(zeros);
  }
  if (const Tensor* order = siblings.named(*stem + "_g_idx")) {
    if (order->elements() != sizes.inputs)
      return Error("g_idx of {} for {} inputs", order->elements(), sizes.inputs);
    parts.order = packed.inputs.size();
    packed.inputs.push_back(order->view);
    with.push_back(order);
  }
  packed.decode = [sizes, parts](auto in, uint64_t first, int64_t step, std::size_t count,
                                 float* out) { decode(sizes, parts, in, first, step, count, out); };
  const DType dtype = sizes.bits == 8   ? DType::int8_scaled
                      : sizes.bits == 4 ? DType::int4_scaled
                                        : DType::int2_scaled;
  View view = TRY(packed_view(dtype, {sizes.outputs, sizes.inputs}, std::move(packed)));
  return std::optional(
      Unpacked{std::move(view), *stem,
               fmt::format("int{} (compressed-tensors, groups of {})", sizes.bits, sizes.group),
               std::move(with)});
}

}  // namespace

constinit const Packing packings::packed_integers = {
    .name = "compressed-tensors",
    .summary = "compressed-tensors: integers of 2, 4 or 8 bits in words, with scales for groups",
    .unpack = unpack,
};

}  // namespace tensordiff
