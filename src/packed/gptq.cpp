// GPTQ, as AutoGPTQ and its successors write it: words of 32 bits hold levels of 2, 3, 4 or 8 bits
// of one output, the first in the lowest bits.
//
//   X.qweight i32 [in * bits / 32, out]     X.scales f16 [groups, out]
//   X.qzeros  i32 [groups, out * bits / 32] X.g_idx  i32 [in], the group of each input; may be
//                                           missing: then groups are as long as each other
//
// The weight [out, in] is (level - zero) * scale. Zeros are stored less one, but not in the newer
// "gptq_v2", which is told by config.json or by zeros in the middle of their range.

#include <limits>

#include "base/text.h"
#include "packed/packed.h"
#include "packed/window.h"

namespace tensordiff {
namespace {

constexpr unsigned kWordBits = 32;

struct Sizes {
  uint64_t inputs, outputs, groups, group;
  unsigned bits;
  uint64_t zero_words;  // In a row of zeros.
};

// Level `index` of those that lie in a row of words, where word(i) gives the i-th. Levels of three
// bits do not fit words of 32 evenly, and may lie in two.
template <class Word>
unsigned level_in_row(uint64_t index, unsigned bits, const Word& word) {
  const uint64_t bit = index * bits;
  const auto low = static_cast<uint32_t>(static_cast<int64_t>(word(bit / kWordBits)));
  uint64_t pattern = low;
  if (bit % kWordBits + bits > kWordBits)
    pattern |= static_cast<uint64_t>(
                   static_cast<uint32_t>(static_cast<int64_t>(word(bit / kWordBits + 1))))
               << kWordBits;
  return static_cast<unsigned>(pattern >> bit % kWordBits & ((1U << bits) - 1));
}

bool is_matrix(const Tensor& tensor) { return tensor.view.shape.size() == 2; }
bool holds_words(const Tensor& tensor) {
  return tensor.view.dtype == DType::i32 || tensor.view.dtype == DType::u32;
}

Result<Sizes> sizes_of(const Tensor& levels, const Tensor& zeros, const Tensor& scales) {
  const Shape &q = levels.view.shape, &z = zeros.view.shape, &s = scales.view.shape;
  Sizes sizes{0, s[1], s[0], 0, 0, z[1]};
  for (const unsigned bits : {2U, 3U, 4U, 8U})
    if (z[0] == s[0] && s[1] < kElementsMax && s[1] * bits == z[1] * kWordBits) sizes.bits = bits;
  if (sizes.bits == 0 || s[0] == 0 || q[0] * kWordBits % sizes.bits != 0 || q[0] > kElementsMax)
    return Error("levels of {} do not fit zeros of {} and scales of {}", shape_text(q),
                 shape_text(z), shape_text(s));
  sizes.inputs = q[0] * kWordBits / sizes.bits;
  sizes.group = (sizes.inputs + sizes.groups - 1) / sizes.groups;
  return sizes;
}

DType made_type(unsigned bits) {
  return bits == 8   ? DType::int8_scaled
         : bits == 4 ? DType::int4_scaled
         : bits == 3 ? DType::int3_scaled
                     : DType::int2_scaled;
}

// What is added to a stored zero: 1, but in gptq_v2 nothing. Symmetric weights have their zero in
// the middle, so that in v2 all levels of the first word say 2^(bits - 1).
double zero_offset(Window& zeros, unsigned bits, bool is_v2) {
  if (is_v2) return 0;
  if (bits == 3) return 1;
  for (uint64_t at = 0; at < kWordBits / bits; ++at)
    if (level_of(zeros.at(0), at, bits) != 1U << (bits - 1)) return 1;
  return 0;
}

void decode(const Sizes& sizes, bool is_v2, std::span<const Reader> in, uint64_t first,
            int64_t step, std::size_t count, float* out) {
  Window levels(in[0], step), zeros(in[1], 0), scales(in[2], step), groups(in[in.size() - 1], 0);
  const double offset = zero_offset(zeros, sizes.bits, is_v2);
  for (std::size_t i = 0; i < count; ++i) {
    const uint64_t element = first + i * static_cast<uint64_t>(step);
    const uint64_t input = element / sizes.outputs, output = element % sizes.outputs;
    const double named = in.size() > 3 ? groups.at(input) : 0;
    const uint64_t group = in.size() > 3 ? (named >= 0 ? static_cast<uint64_t>(named) : UINT64_MAX)
                                         : input / sizes.group;
    if (group >= sizes.groups) {  // A group that is not there.
      out[i] = std::numeric_limits<float>::quiet_NaN();
      continue;
    }
    const unsigned level = level_in_row(
        input, sizes.bits, [&](uint64_t word) { return levels.at(word * sizes.outputs + output); });
    const unsigned zero = level_in_row(output, sizes.bits, [&](uint64_t word) {
      return zeros.at(group * sizes.zero_words + word);
    });
    out[i] =
        static_cast<float>((level - (zero + offset)) * scales.at(group * sizes.outputs + output));
  }
}

Result<std::optional<Unpacked>> unpack(const Siblings& siblings) {
  const Tensor& levels = siblings.tensor();
  const std::optional<std::string> stem = siblings.stem(".qweight");
  if (!stem || !is_matrix(levels) || !holds_words(levels)) return std::optional<Unpacked>();
  const Tensor* scales = siblings.named(*stem + ".scales");
  const Tensor* zeros = siblings.named(*stem + ".qzeros");
  if (!scales || !zeros || !is_matrix(*scales) || !is_matrix(*zeros) || !holds_words(*zeros) ||
      levels.view.shape[1] != scales->view.shape[1])
    return std::optional<Unpacked>();  // AWQ has as many words as outputs / 8.
  const Sizes sizes = TRY(sizes_of(levels, *zeros, *scales));
  Packed packed{{levels.view, zeros->view, scales->view}, {}};
  std::vector<const Tensor*> with{zeros, scales};
  if (const Tensor* order = siblings.named(*stem + ".g_idx")) {
    if (order->elements() != sizes.inputs)
      return Error("g_idx of {} for {} inputs", order->elements(), sizes.inputs);
    packed.inputs.push_back(order->view);
    with.push_back(order);
  }
  const bool is_v2 = siblings.setting("checkpoint_format") == "gptq_v2";
  packed.decode = [sizes, is_v2](auto in, uint64_t first, int64_t step, std::size_t count,
                                 float* out) { decode(sizes, is_v2, in, first, step, count, out); };
  View view =
      TRY(packed_view(made_type(sizes.bits), {sizes.inputs, sizes.outputs}, std::move(packed)));
  return std::optional(Unpacked{turned(std::move(view)), *stem + ".weight",
                                fmt::format("int{} (GPTQ, groups of {})", sizes.bits, sizes.group),
                                with});
}

}  // namespace

constinit const Packing packings::gptq = {
    .name = "gptq",
    .summary = "GPTQ: levels of 2, 3, 4 or 8 bits with scales and zeros for groups of inputs",
    .unpack = unpack,
};

}  // namespace tensordiff
