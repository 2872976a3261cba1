// How many representable steps lie between two floats, on their bits: the vector kernels.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels/steps.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <limits>

#include "compare/kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Bits as steps from zero, negative below it.
template <class D, class V>
HWY_INLINE V steps(D d, V bits) {
  using T = hn::TFromD<D>;
  const V lowest = hn::Set(d, std::numeric_limits<T>::min());  // The bits of -0.
  return hn::IfThenElse(hn::Lt(bits, hn::Zero(d)), hn::Sub(lowest, bits), bits);
}

template <class T>
uint64_t ulp_most(const T* a, const T* b, std::size_t count) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> bits;
  const std::size_t lanes = hn::Lanes(d);
  auto farthest = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto at_a = steps(bits, hn::BitCast(bits, hn::LoadU(d, a + i)));
    const auto at_b = steps(bits, hn::BitCast(bits, hn::LoadU(d, b + i)));
    // The difference may need the sign bit: it is taken as unsigned.
    const auto apart = hn::Sub(hn::Max(at_a, at_b), hn::Min(at_a, at_b));
    farthest = hn::Max(farthest, hn::BitCast(d, apart));
  }
  HWY_ALIGN T all[hn::MaxLanes(d)];
  hn::Store(farthest, d, all);
  return *std::max_element(all, all + lanes);
}

// The steps between whole vectors of stored bits. `count` is a multiple of the lanes.
uint64_t ulp_u8(const uint8_t* a, const uint8_t* b, std::size_t count) {
  return ulp_most(a, b, count);
}
uint64_t ulp_u16(const uint16_t* a, const uint16_t* b, std::size_t count) {
  return ulp_most(a, b, count);
}
uint64_t ulp_u32(const uint32_t* a, const uint32_t* b, std::size_t count) {
  return ulp_most(a, b, count);
}
uint64_t ulp_u64(const uint64_t* a, const uint64_t* b, std::size_t count) {
  return ulp_most(a, b, count);
}
std::size_t vector_bytes() { return hn::Lanes(hn::ScalableTag<uint8_t>()); }

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensordiff::kernels {

HWY_EXPORT(ulp_u8);
HWY_EXPORT(ulp_u16);
HWY_EXPORT(ulp_u32);
HWY_EXPORT(ulp_u64);
HWY_EXPORT(vector_bytes);

namespace {

std::size_t whole_vectors(std::size_t count, std::size_t item) {
  const std::size_t bytes = HWY_DYNAMIC_DISPATCH(vector_bytes)();
  const std::size_t lanes = std::max<std::size_t>(1, bytes / item);  // The scalar target has one.
  return count / lanes * lanes;
}

}  // namespace

uint64_t ulp8(const uint8_t* a, const uint8_t* b, std::size_t count) {
  const std::size_t whole = whole_vectors(count, sizeof *a);
  return std::max(HWY_DYNAMIC_DISPATCH(ulp_u8)(a, b, whole),
                  reference::ulp8(a + whole, b + whole, count - whole));
}
uint64_t ulp16(const uint16_t* a, const uint16_t* b, std::size_t count) {
  const std::size_t whole = whole_vectors(count, sizeof *a);
  return std::max(HWY_DYNAMIC_DISPATCH(ulp_u16)(a, b, whole),
                  reference::ulp16(a + whole, b + whole, count - whole));
}
uint64_t ulp(const float* a, const float* b, std::size_t count) {
  const std::size_t whole = whole_vectors(count, sizeof *a);
  const uint64_t most = HWY_DYNAMIC_DISPATCH(ulp_u32)(reinterpret_cast<const uint32_t*>(a),
                                                      reinterpret_cast<const uint32_t*>(b), whole);
  return std::max(most, reference::ulp(a + whole, b + whole, count - whole));
}
uint64_t ulp(const double* a, const double* b, std::size_t count) {
  const std::size_t whole = whole_vectors(count, sizeof *a);
  const uint64_t most = HWY_DYNAMIC_DISPATCH(ulp_u64)(reinterpret_cast<const uint64_t*>(a),
                                                      reinterpret_cast<const uint64_t*>(b), whole);
  return std::max(most, reference::ulp(a + whole, b + whole, count - whole));
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
