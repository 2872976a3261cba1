// Floats of 16 bits to those of 32, in registers. Included once for each instruction set, so it has
// no guard.

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using U32 = hn::RebindToUnsigned<F32>;
using U16 = hn::Rebind<uint16_t, F32>;
using F16 = hn::Rebind<hwy::float16_t, F32>;

// bf16 is the upper half of a float.
HWY_INLINE hn::Vec<F32> bf16_to_float(hn::Vec<U16> bits) {
  return hn::BitCast(F32(), hn::ShiftLeft<16>(hn::PromoteTo(U32(), bits)));
}

// The library's own conversion knows no infinities and NaN where the machine has no instruction
// for it, so there the bits are moved to where a float keeps them, and one multiplication puts the
// bias right.
HWY_INLINE hn::Vec<F32> half_to_float(hn::Vec<U16> bits) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SSSE3 || \
    HWY_TARGET == HWY_SSE4
  const U32 u32;
  const auto wide = hn::PromoteTo(u32, bits);
  const auto size = hn::ShiftLeft<13>(hn::And(wide, hn::Set(u32, 0x7fff)));
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(u32, 0x8000)));
  const auto value = hn::Mul(hn::BitCast(F32(), size), hn::Set(F32(), 0x1p112F));
  const auto top = hn::Set(u32, 0x7c00);
  const auto special = hn::Eq(hn::And(wide, top), top);
  const auto unbounded = hn::Or(size, hn::Set(u32, 0x7f800000));
  const auto chosen = hn::IfThenElse(special, unbounded, hn::BitCast(u32, value));
  return hn::BitCast(F32(), hn::Or(chosen, sign));
#else
  return hn::PromoteTo(F32(), hn::BitCast(F16(), bits));
#endif
}

// Runs step(from, to) over whole vectors, and once more over a padded copy of the tail, because a
// mapped file may end right behind the last element.
template <class From, class To, class Step>
HWY_INLINE void each_vector(const From* from, std::size_t count, To* to, const Step& step) {
  const std::size_t lanes = hn::Lanes(F32());
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) step(from + i, to + i);
  if (i == count) return;
  HWY_ALIGN From tail_from[hn::MaxLanes(F32())] = {};
  HWY_ALIGN To tail_to[hn::MaxLanes(F32())];
  std::copy(from + i, from + count, tail_from);
  step(tail_from, tail_to);
  std::copy(tail_to, tail_to + (count - i), to + i);
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();
