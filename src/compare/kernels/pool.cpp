#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels/pool.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cmath>
#include <limits>

#include "compare/kernels/pool.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T>
HWY_INLINE void raise_keys(const T* values, std::size_t count, Key<T>* keys) {
  const hn::ScalableTag<T> floats;
  const hn::RebindToUnsigned<decltype(floats)> bits;
  constexpr int kSign = 8 * sizeof(T) - 1;
  std::size_t i = 0;
  for (; i + hn::Lanes(floats) <= count; i += hn::Lanes(floats)) {
    const auto value = hn::BitCast(bits, hn::LoadU(floats, values + i));
    const auto positive = hn::Xor(hn::ShiftRight<kSign>(value), hn::Set(bits, 1));
    const auto key = hn::Or(hn::ShiftLeft<1>(value), positive);
    hn::StoreU(hn::Max(key, hn::LoadU(bits, keys + i)), bits, keys + i);
  }
  for (; i < count; ++i) keys[i] = HWY_MAX(keys[i], key_of(values[i]));
}

template <class T>
HWY_INLINE void measure_distances(const T* a, const T* b, std::size_t count, T* out) {
  const hn::ScalableTag<T> floats;
  std::size_t i = 0;
  for (; i + hn::Lanes(floats) <= count; i += hn::Lanes(floats)) {
    const auto from = hn::LoadU(floats, a + i);
    const auto to = hn::LoadU(floats, b + i);
    const auto finite = hn::And(hn::IsFinite(from), hn::IsFinite(to));
    const auto apart = hn::Abs(hn::Sub(to, from));
    hn::StoreU(hn::IfThenElse(finite, apart, hn::NaN(floats)), floats, out + i);
  }
  for (; i < count; ++i) {
    const bool finite = std::isfinite(a[i]) && std::isfinite(b[i]);
    out[i] = finite ? std::abs(b[i] - a[i]) : std::numeric_limits<T>::quiet_NaN();
  }
}

void raise_floats(const float* values, std::size_t count, uint32_t* keys) {
  raise_keys(values, count, keys);
}
void raise_doubles(const double* values, std::size_t count, uint64_t* keys) {
  raise_keys(values, count, keys);
}
void float_distances(const float* a, const float* b, std::size_t count, float* out) {
  measure_distances(a, b, count, out);
}
void double_distances(const double* a, const double* b, std::size_t count, double* out) {
  measure_distances(a, b, count, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensordiff::kernels {

HWY_EXPORT(raise_floats);
HWY_EXPORT(raise_doubles);
HWY_EXPORT(float_distances);
HWY_EXPORT(double_distances);

void raise(const float* values, std::size_t count, uint32_t* keys) {
  HWY_DYNAMIC_DISPATCH(raise_floats)(values, count, keys);
}
void raise(const double* values, std::size_t count, uint64_t* keys) {
  HWY_DYNAMIC_DISPATCH(raise_doubles)(values, count, keys);
}
void distances(const float* a, const float* b, std::size_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(float_distances)(a, b, count, out);
}
void distances(const double* a, const double* b, std::size_t count, double* out) {
  HWY_DYNAMIC_DISPATCH(double_distances)(a, b, count, out);
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
