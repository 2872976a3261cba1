// AWQ: words of 32 bits hold eight levels of four bits of neighbouring outputs, in an odd order.
//
//   X.qweight i32 [in, out / 8]   X.qzeros i32 [groups, out / 8]   X.scales f16 [groups, out]
//
// The weight [out, in] is (level - zero) * scale.

#include "base/text.h"
#include "packed/packed.h"
#include "packed/window.h"

namespace tensordiff {
namespace {

constexpr uint64_t kInWord = 8;
// Where in a word the level of the n-th output lies: even ones in the low half, odd in the high.
constexpr uint64_t kPlaces[kInWord] = {0, 4, 1, 5, 2, 6, 3, 7};

unsigned level_at(Window& words, uint64_t row, uint64_t output, uint64_t outputs) {
  return level_of(words.at((row * outputs + output) / kInWord), kPlaces[output % kInWord], 4);
}

Result<std::optional<Unpacked>> unpack(const Siblings& siblings) {
  const Tensor& levels = siblings.tensor();
  const std::optional<std::string> stem = siblings.stem(".qweight");
  if (!stem || levels.view.shape.size() != 2) return std::optional<Unpacked>();
  const Tensor* scales = siblings.named(*stem + ".scales");
  const Tensor* zeros = siblings.named(*stem + ".qzeros");
  const auto is_words = [](DType dtype) { return dtype == DType::i32 || dtype == DType::u32; };
  if (!scales || !zeros || scales->view.shape.size() != 2 || !is_words(levels.view.dtype) ||
      !is_words(zeros->view.dtype))
    return std::optional<Unpacked>();
  const Shape &q = levels.view.shape, &s = scales->view.shape;
  const uint64_t inputs = q[0], outputs = s[1], groups = s[0];
  if (groups == 0 || inputs % groups != 0 || outputs % kInWord != 0 || q[1] != outputs / kInWord ||
      zeros->view.shape != Shape{groups, q[1]})
    return Error("levels of {} do not fit zeros of {} and scales of {}", shape_text(q),
                 shape_text(zeros->view.shape), shape_text(s));
  const uint64_t group = inputs / groups;
  Packed packed{{levels.view, zeros->view, scales->view}, {}};
  packed.decode = [group, outputs](std::span<const Reader> in, uint64_t first, int64_t step,
                                   std::size_t count, float* out) {
    Window words(in[0], step), zero(in[1], step), scale(in[2], step);
    for (std::size_t i = 0; i < count; ++i) {
      const uint64_t element = first + i * static_cast<uint64_t>(step);
      const uint64_t input = element / outputs, output = element % outputs;
      const int level = static_cast<int>(level_at(words, input, output, outputs));
      const int middle = static_cast<int>(level_at(zero, input / group, output, outputs));
      out[i] = static_cast<float>((level - middle) * scale.at(input / group * outputs + output));
    }
  };
  View view = TRY(packed_view(DType::int4_scaled, {inputs, outputs}, std::move(packed)));
  return std::optional(Unpacked{turned(std::move(view)),
                                *stem + ".weight",
                                fmt::format("int4 (AWQ, groups of {})", group),
                                {zeros, scales}});
}

}  // namespace

constinit const Packing packings::awq = {
    .name = "awq",
    .summary = "AWQ: levels of 4 bits with scales and zeros for groups of inputs",
    .unpack = unpack,
};

}  // namespace tensordiff
