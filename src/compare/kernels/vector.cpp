// The vector kernels: one body for all instruction sets, chosen when the program starts.
//
// f32 tiles are widened to f64 in registers, half a vector at a time, and every sum is kept in f64.
// Two things are cheaper than they look. |d| / (|a| + 1e-8) multiplies by a reciprocal that starts
// from the 12-bit estimate and is made exact to 2^-36 or better with one cubic step (e = 1 - x·r,
// r ← r·(1 + e + e²)). The largest |d| / max(|a|, |b|) and the rtol needed divide only where
// a product says that the record may be beaten, which is rare.
//
// Sums depend on the number of lanes in their last bits (docs/metrics.md: within 1e-12);
// extremes, counts and positions do not.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels/vector.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compare/kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using F32 = hn::ScalableTag<float>;
using HalfF32 = hn::Rebind<float, F64>;  // As many floats as there are doubles in a vector.
using Vec = hn::Vec<F64>;

// The largest |a| whose reciprocal is a normal float: beyond it the estimate is no use.
constexpr double kLargeMax = 1e37;

// A record is tried again from a little below, so that rounding in the product hides no winner.
constexpr double kNearly = 1 - 1e-15;

Vec load(const float* at) { return hn::PromoteTo(F64(), hn::LoadU(HalfF32(), at)); }
Vec load(const double* at) { return hn::LoadU(F64(), at); }

// 1 / size for size in [1e-8, 1e37].
Vec reciprocal(Vec size, const float*) {
  const F64 d;
  const auto estimate = hn::ApproximateReciprocal(hn::DemoteTo(HalfF32(), size));
  Vec r = hn::PromoteTo(d, estimate);
#if !(HWY_ARCH_X86)
  r = hn::MulAdd(hn::NegMulAdd(size, r, hn::Set(d, 1.0)), r, r);  // Others estimate 8 bits only.
#endif
  const Vec e = hn::NegMulAdd(size, r, hn::Set(d, 1.0));
  return hn::MulAdd(hn::MulAdd(e, e, e), r, r);
}
Vec reciprocal(Vec size, const double*) { return hn::Div(hn::Set(F64(), 1.0), size); }

double sum(Vec v) { return hn::GetLane(hn::SumOfLanes(F64(), v)); }
double most(Vec v) { return hn::GetLane(hn::MaxOfLanes(F64(), v)); }

// The running sums of a tile.
template <class T>
struct Lanes {
  // Written out, as the compiler's own constructor would lack the target's instructions.
  Lanes(double pivot_first, double pivot_second) {
    const F64 f64;
    pivot_a = hn::Set(f64, pivot_first);
    pivot_b = hn::Set(f64, pivot_second);
    sx = sy = sxx = syy = sxy = hn::Zero(f64);
    d_abs = d_squared = d_relative = max_abs = rel_bound = rtol_bound = hn::Zero(f64);
  }

  HWY_INLINE void add(const T* at_a, const T* at_b, const Threshold& limit) {
    const F64 f64;
    const Vec a = load(at_a);
    const Vec b = load(at_b);
    const Vec d = hn::Sub(b, a);
    const Vec size = hn::Abs(d);
    const Vec size_a = hn::Abs(a);
    const Vec x = hn::Sub(a, pivot_a);
    const Vec y = hn::Sub(b, pivot_b);
    sx = hn::Add(sx, x);
    sy = hn::Add(sy, y);
    sxx = hn::MulAdd(x, x, sxx);
    syy = hn::MulAdd(y, y, syy);
    sxy = hn::MulAdd(x, y, sxy);
    d_abs = hn::Add(d_abs, size);
    d_squared = hn::MulAdd(d, d, d_squared);
    const Vec inverse = reciprocal(hn::Add(size_a, hn::Set(f64, 1e-8)), at_a);
    d_relative = hn::MulAdd(size, inverse, d_relative);
    max_abs = hn::Max(max_abs, size);
    const Vec bound = hn::MulAdd(hn::Set(f64, limit.rtol), size_a, hn::Set(f64, limit.atol));
    exceeding += hn::CountTrue(f64, hn::Gt(size, bound));
    records(size, size_a, hn::Abs(b), limit);
  }

  // Raises max_rel and rtol_needed where this vector may beat them.
  HWY_INLINE void records(Vec size, Vec size_a, Vec size_b, const Threshold& limit) {
    const F64 f64;
    const Vec larger = hn::Max(size_a, size_b);
    const auto beats_rel = hn::Gt(size, hn::Mul(larger, rel_bound));
    const auto beats_rtol = hn::Gt(size, hn::MulAdd(size_a, rtol_bound, hn::Set(f64, limit.atol)));
    if (HWY_LIKELY(hn::AllFalse(f64, hn::Or(beats_rel, beats_rtol)))) return;
    const Vec zero = hn::Zero(f64);
    const auto differs = hn::Gt(size, zero);
    max_rel = std::max(max_rel, most(hn::IfThenElseZero(differs, hn::Div(size, larger))));
    rel_bound = hn::Set(f64, max_rel * kNearly);
    const Vec over = hn::Sub(size, hn::Set(f64, limit.atol));
    const Vec needed = hn::IfThenElseZero(hn::Gt(over, zero), hn::Div(over, size_a));
    rtol_needed = std::max(rtol_needed, most(needed));
    rtol_bound = hn::Set(f64, std::min(rtol_needed, 1e300) * kNearly);
  }

  Vec pivot_a, pivot_b;
  Vec sx, sy, sxx, syy, sxy;
  Vec d_abs, d_squared, d_relative, max_abs;
  Vec rel_bound, rtol_bound;
  uint64_t exceeding = 0;
  double max_rel = 0;
  double rtol_needed = 0;
};

// What needs no widening, in the lanes of the stored type.
template <class T>
struct Narrow {
  using D = hn::ScalableTag<T>;

  Narrow() {
    min_a = min_b = hn::Set(D(), std::numeric_limits<T>::infinity());
    max_a = max_b = hn::Neg(min_a);
    poison = hn::Zero(D());
  }

  HWY_INLINE void add(const T* at_a, const T* at_b) {
    const D d;
    const auto a = hn::LoadU(d, at_a);
    const auto b = hn::LoadU(d, at_b);
    min_a = hn::Min(min_a, a);
    max_a = hn::Max(max_a, a);
    min_b = hn::Min(min_b, b);
    max_b = hn::Max(max_b, b);
    // x - x is NaN for NaN and the infinities, and NaN stays.
    poison = hn::Add(poison, hn::Add(hn::Sub(a, a), hn::Sub(b, b)));
    equal += hn::CountTrue(d, hn::Eq(a, b));
    zeros_a += hn::CountTrue(d, hn::Eq(a, hn::Zero(d)));
    zeros_b += hn::CountTrue(d, hn::Eq(b, hn::Zero(d)));
  }

  bool finite() const { return hn::AllTrue(D(), hn::Eq(poison, hn::Zero(D()))); }
  static double lowest(hn::Vec<D> v) { return hn::GetLane(hn::MinOfLanes(D(), v)); }
  static double highest(hn::Vec<D> v) { return hn::GetLane(hn::MaxOfLanes(D(), v)); }

  hn::Vec<D> min_a, min_b, max_a, max_b, poison;
  uint64_t equal = 0, zeros_a = 0, zeros_b = 0;
};

// Σx and Σx² about a pivot, as moments.
void centre(double count, double pivot, double x, double xx, double& mean, double& m2) {
  mean = pivot + x / count;
  m2 = std::max(0.0, xx - x * x / count);
}

template <class T>
uint64_t position_of(const T* a, const T* b, std::size_t count, double distance) {
  for (std::size_t i = 0; i < count; ++i)
    if (std::abs(static_cast<double>(b[i]) - static_cast<double>(a[i])) == distance) return i;
  return 0;
}

template <class T>
void finish(const Lanes<T>& lanes, double pivot_a, double pivot_b, Sums& sums) {
  const double n = static_cast<double>(sums.count);
  const double sx = sum(lanes.sx);
  const double sy = sum(lanes.sy);
  centre(n, pivot_a, sx, sum(lanes.sxx), sums.mean_a, sums.m2_a);
  centre(n, pivot_b, sy, sum(lanes.syy), sums.mean_b, sums.m2_b);
  sums.co = sum(lanes.sxy) - sx * sy / n;
  sums.d_abs = sum(lanes.d_abs);
  sums.d_squared = sum(lanes.d_squared);
  sums.d_relative = sum(lanes.d_relative);
  sums.exceeding = lanes.exceeding;
  sums.max_rel = lanes.max_rel;
  sums.rtol_needed = lanes.rtol_needed;
  sums.max_abs = most(lanes.max_abs);
}

template <class T>
std::size_t diff_tile(const T* a, const T* b, const Tile& tile, Sums& sums) {
  const std::size_t wide = hn::Lanes(F64());
  const std::size_t narrow = hn::Lanes(hn::ScalableTag<T>());
  const std::size_t whole = tile.count / narrow * narrow;
  Narrow<T> extremes;
  for (std::size_t i = 0; i < whole; i += narrow) extremes.add(a + i, b + i);
  if (whole == 0 || !extremes.finite()) return 0;
  sums = {};
  sums.a.min = Narrow<T>::lowest(extremes.min_a);
  sums.a.max = Narrow<T>::highest(extremes.max_a);
  sums.b.min = Narrow<T>::lowest(extremes.min_b);
  sums.b.max = Narrow<T>::highest(extremes.max_b);
  if (std::max({-sums.a.min, sums.a.max, -sums.b.min, sums.b.max}) > kLargeMax) return 0;

  const double pivot_a = a[0];
  const double pivot_b = b[0];
  Lanes<T> lanes(pivot_a, pivot_b);
  for (std::size_t i = 0; i < whole; i += wide) lanes.add(a + i, b + i, tile.limit);

  sums.count = sums.values = sums.a.count = sums.b.count = whole;
  sums.equal = extremes.equal;
  sums.a.zeros = extremes.zeros_a;
  sums.b.zeros = extremes.zeros_b;
  finish(lanes, pivot_a, pivot_b, sums);
  sums.a.mean = sums.mean_a, sums.a.m2 = sums.m2_a;
  sums.b.mean = sums.mean_b, sums.b.m2 = sums.m2_b;
  sums.max_abs_at = tile.first + (sums.max_abs > 0 ? position_of(a, b, whole, sums.max_abs) : 0);
  return whole;
}

template <class T>
std::size_t moments_tile(const T* values, std::size_t count, Moments& out) {
  const hn::ScalableTag<T> d;
  const F64 f64;
  const std::size_t lanes = hn::Lanes(d);
  count = count / lanes * lanes;
  auto lowest = hn::Set(d, std::numeric_limits<T>::infinity());
  auto highest = hn::Neg(lowest);
  auto poison = hn::Zero(d);
  uint64_t zeros = 0;
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto v = hn::LoadU(d, values + i);
    lowest = hn::Min(lowest, v);
    highest = hn::Max(highest, v);
    poison = hn::Add(poison, hn::Sub(v, v));
    zeros += hn::CountTrue(d, hn::Eq(v, hn::Zero(d)));
  }
  if (count == 0 || !hn::AllTrue(d, hn::Eq(poison, hn::Zero(d)))) return 0;
  const double first = values[0];
  const Vec pivot = hn::Set(f64, first);
  Vec sx = hn::Zero(f64);
  Vec sxx = sx;
  for (std::size_t i = 0; i < count; i += hn::Lanes(f64)) {
    const Vec x = hn::Sub(load(values + i), pivot);
    sx = hn::Add(sx, x);
    sxx = hn::MulAdd(x, x, sxx);
  }
  out = {};
  out.count = count;
  out.zeros = zeros;
  out.min = hn::GetLane(hn::MinOfLanes(d, lowest));
  out.max = hn::GetLane(hn::MaxOfLanes(d, highest));
  centre(static_cast<double>(count), first, sum(sx), sum(sxx), out.mean, out.m2);
  return count;
}

// Bits as steps from the lowest number: the sign bit is flipped, negative numbers run backwards.
template <class D, class V>
V steps(D d, V bits) {
  using T = hn::TFromD<D>;
  const V sign = hn::Set(d, static_cast<T>(T{1} << (sizeof(T) * 8 - 1)));
  const V size = hn::AndNot(sign, bits);
  const auto negative = hn::Ne(hn::And(bits, sign), hn::Zero(d));
  return hn::IfThenElse(negative, hn::Sub(sign, size), hn::Add(sign, size));
}

template <class T>
uint64_t ulp_most(const T* a, const T* b, std::size_t count) {
  const hn::ScalableTag<T> d;
  const std::size_t lanes = hn::Lanes(d);
  auto farthest = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += lanes) {
    const auto at_a = steps(d, hn::LoadU(d, a + i));
    const auto at_b = steps(d, hn::LoadU(d, b + i));
    farthest = hn::Max(farthest, hn::Sub(hn::Max(at_a, at_b), hn::Min(at_a, at_b)));
  }
  HWY_ALIGN T all[hn::MaxLanes(d)];
  hn::Store(farthest, d, all);
  return *std::max_element(all, all + lanes);
}

std::size_t diff_f32(const float* a, const float* b, const Tile& tile, Sums& out) {
  return diff_tile(a, b, tile, out);
}
std::size_t diff_f64(const double* a, const double* b, const Tile& tile, Sums& out) {
  return diff_tile(a, b, tile, out);
}
std::size_t moments_f32(const float* values, std::size_t count, Moments& out) {
  return moments_tile(values, count, out);
}
std::size_t moments_f64(const double* values, std::size_t count, Moments& out) {
  return moments_tile(values, count, out);
}

// The steps between whole vectors of stored bits. `count` is a multiple of the lanes.
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

HWY_EXPORT(diff_f32);
HWY_EXPORT(diff_f64);
HWY_EXPORT(moments_f32);
HWY_EXPORT(moments_f64);
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

std::size_t diff(const float* a, const float* b, const Tile& tile, Sums& out) {
  return HWY_DYNAMIC_DISPATCH(diff_f32)(a, b, tile, out);
}
std::size_t diff(const double* a, const double* b, const Tile& tile, Sums& out) {
  return HWY_DYNAMIC_DISPATCH(diff_f64)(a, b, tile, out);
}
std::size_t moments(const float* values, std::size_t count, Moments& out) {
  return HWY_DYNAMIC_DISPATCH(moments_f32)(values, count, out);
}
std::size_t moments(const double* values, std::size_t count, Moments& out) {
  return HWY_DYNAMIC_DISPATCH(moments_f64)(values, count, out);
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

const char* target_name() {
  const int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
  return hwy::TargetName(best);
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
