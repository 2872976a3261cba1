// The vector kernels: one body for all instruction sets, chosen when the program starts.
//
// A tile is walked up to three times while it lies in the first-level cache. The survey runs in the
// lanes of the stored type: extremes, equality, and whether anything here may be a record. The sums
// are then taken in f64, widened in registers. Only a tile that may hold a record (a new largest
// |d|, |d| / max(|a|, |b|) or rtol needed) or an element beyond tolerance is walked again, exactly.
//
// |d| / (|a| + 1e-8) multiplies by a reciprocal that starts from the 12-bit estimate and becomes
// exact to 2^-36 or better with one cubic step: e = 1 - x·r, r ← r·(1 + e + e²).
//
// Sums depend on the number of lanes in their last bits (docs/metrics.md: within 1e-12);
// extremes, counts and positions do not.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels/vector.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "compare/kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F64 = hn::ScalableTag<double>;
using HalfF32 = hn::Rebind<float, F64>;  // As many floats as there are doubles in a vector.
using Vec = hn::Vec<F64>;

// The largest |a| whose reciprocal is a normal float: beyond it the estimate is no use.
constexpr double kEstimateMax = 1e37;

// The survey rounds to the stored type; what comes within this of a record is looked at exactly.
constexpr double kNearly = 1 - 1e-5;

Vec load(const float* at) { return hn::PromoteTo(F64(), hn::LoadU(HalfF32(), at)); }
Vec load(const double* at) { return hn::LoadU(F64(), at); }

double sum(Vec v) { return hn::GetLane(hn::SumOfLanes(F64(), v)); }
double most(Vec v) { return hn::GetLane(hn::MaxOfLanes(F64(), v)); }

// What a look in the lanes of the stored type can tell.
struct Survey {
  double min_a, max_a, min_b, max_b;
  double distance;  // Largest |b - a|, rounded; infinite or NaN when a value is.
  bool notable;     // An element may beat a record relative to its size, or exceed tolerance.
  uint64_t equal, zeros_a, zeros_b;
};

template <class T>
Survey survey(const T* at_a, const T* at_b, std::size_t count, const Tile& tile) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> bits;  // Sizes order like integers, and NaN comes last.
  auto min_a = hn::Set(d, std::numeric_limits<T>::infinity());
  auto max_a = hn::Neg(min_a);
  auto min_b = min_a;
  auto max_b = max_a;
  auto distance = hn::Zero(bits);
  auto notable = hn::Lt(min_a, max_a);  // None yet.
  const auto set = [&](double value)
                       HWY_ATTR { return hn::Set(d, static_cast<T>(value * kNearly)); };
  const auto rel_bound = set(tile.best.max_rel);
  const auto rtol_bound = set(std::min(tile.limit.rtol, tile.best.rtol_needed));
  const auto atol = set(tile.limit.atol);
  uint64_t equal = 0, zeros_a = 0, zeros_b = 0;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto a = hn::LoadU(d, at_a + i);
    const auto b = hn::LoadU(d, at_b + i);
    const auto size = hn::Abs(hn::Sub(b, a));
    const auto size_a = hn::Abs(a);
    min_a = hn::Min(min_a, a);
    max_a = hn::Max(max_a, a);
    min_b = hn::Min(min_b, b);
    max_b = hn::Max(max_b, b);
    distance = hn::Max(distance, hn::BitCast(bits, size));
    const auto by_rel = hn::Gt(size, hn::Mul(hn::Max(size_a, hn::Abs(b)), rel_bound));
    const auto by_rtol = hn::Gt(size, hn::MulAdd(size_a, rtol_bound, atol));
    notable = hn::Or(notable, hn::Or(by_rel, by_rtol));
    equal += hn::CountTrue(d, hn::Eq(a, b));
    zeros_a += hn::CountTrue(d, hn::Eq(a, hn::Zero(d)));
    zeros_b += hn::CountTrue(d, hn::Eq(b, hn::Zero(d)));
  }
  HWY_ALIGN hn::TFromD<decltype(bits)> sizes[hn::MaxLanes(d)];
  hn::Store(distance, bits, sizes);
  const auto farthest = *std::max_element(sizes, sizes + hn::Lanes(d));
  const auto lowest = [&](auto v) HWY_ATTR { return hn::GetLane(hn::MinOfLanes(d, v)); };
  const auto highest = [&](auto v) HWY_ATTR { return hn::GetLane(hn::MaxOfLanes(d, v)); };
  return {lowest(min_a),
          highest(max_a),
          lowest(min_b),
          highest(max_b),
          std::bit_cast<T>(farthest),
          !hn::AllFalse(d, notable),
          equal,
          zeros_a,
          zeros_b};
}

// 1 / size, by estimate for sizes in [1e-8, kEstimateMax].
template <bool kEstimate>
HWY_INLINE Vec reciprocal(Vec size) {
  const F64 d;
  if constexpr (!kEstimate) return hn::Div(hn::Set(d, 1.0), size);
#if HWY_TARGET == HWY_AVX3
  const Vec r{_mm512_rcp14_pd(size.raw)};  // The one set with an estimate for doubles.
#else
  Vec r = hn::PromoteTo(d, hn::ApproximateReciprocal(hn::DemoteTo(HalfF32(), size)));
#if !(HWY_ARCH_X86)
  r = hn::MulAdd(hn::NegMulAdd(size, r, hn::Set(d, 1.0)), r, r);  // Others estimate 8 bits only.
#endif
#endif
  const Vec e = hn::NegMulAdd(size, r, hn::Set(d, 1.0));
  return hn::MulAdd(hn::MulAdd(e, e, e), r, r);
}

// Mean and centred sum of squares, from Σx and Σx² about a pivot.
struct Centred {
  Centred(double count, double pivot, double x, double xx)
      : mean(pivot + x / count), m2(std::max(0.0, xx - x * x / count)) {}
  double mean, m2;
};

template <bool kEstimate, class T>
void take_sums(const T* at_a, const T* at_b, std::size_t count, const Ahead& ahead, Sums& sums) {
  const F64 f64;
  const double first_a = at_a[0];
  const double first_b = at_b[0];
  const Vec pivot_a = hn::Set(f64, first_a);
  const Vec pivot_b = hn::Set(f64, first_b);
  const Vec guard = hn::Set(f64, 1e-8);
  Vec sx = hn::Zero(f64);
  Vec sy = sx, sxx = sx, syy = sx, sxy = sx, d_abs = sx, d_squared = sx, d_relative = sx;
  for (std::size_t i = 0; i < count; i += hn::Lanes(f64)) {
    __builtin_prefetch(ahead.a + i * ahead.item_a);
    __builtin_prefetch(ahead.b + i * ahead.item_b);
    const Vec a = load(at_a + i);
    const Vec b = load(at_b + i);
    const Vec d = hn::Sub(b, a);
    const Vec size = hn::Abs(d);
    const Vec x = hn::Sub(a, pivot_a);
    const Vec y = hn::Sub(b, pivot_b);
    sx = hn::Add(sx, x);
    sy = hn::Add(sy, y);
    sxx = hn::MulAdd(x, x, sxx);
    syy = hn::MulAdd(y, y, syy);
    sxy = hn::MulAdd(x, y, sxy);
    d_abs = hn::Add(d_abs, size);
    d_squared = hn::MulAdd(d, d, d_squared);
    const Vec inverse = reciprocal<kEstimate>(hn::Add(hn::Abs(a), guard));
    d_relative = hn::MulAdd(size, inverse, d_relative);
  }
  const double n = static_cast<double>(count);
  const double total_x = sum(sx);
  const double total_y = sum(sy);
  const Centred a(n, first_a, total_x, sum(sxx));
  const Centred b(n, first_b, total_y, sum(syy));
  sums.mean_a = a.mean, sums.m2_a = a.m2;
  sums.mean_b = b.mean, sums.m2_b = b.m2;
  sums.co = sum(sxy) - total_x * total_y / n;
  sums.d_abs = sum(d_abs);
  sums.d_squared = sum(d_squared);
  sums.d_relative = sum(d_relative);
}

// The records of a tile and what exceeds tolerance, exactly. Divides only where a product says that
// a record may fall.
template <class T>
void take_records(const T* at_a, const T* at_b, std::size_t count, const Tile& tile, Sums& sums) {
  const F64 f64;
  const Vec zero = hn::Zero(f64);
  const Vec atol = hn::Set(f64, tile.limit.atol);
  const Vec rtol = hn::Set(f64, tile.limit.rtol);
  double max_rel = tile.best.max_rel;
  double rtol_needed = tile.best.rtol_needed;
  // What a product of rounded numbers may hide is far below this.
  const auto just_below = [&](double record) HWY_ATTR {
    return hn::Set(f64, std::min(record, 1e300) * (1 - 1e-15));
  };
  Vec rel_bound = just_below(max_rel);
  Vec rtol_bound = just_below(rtol_needed);
  Vec max_abs = zero;
  for (std::size_t i = 0; i < count; i += hn::Lanes(f64)) {
    const Vec a = load(at_a + i);
    const Vec b = load(at_b + i);
    const Vec size = hn::Abs(hn::Sub(b, a));
    const Vec size_a = hn::Abs(a);
    const Vec larger = hn::Max(size_a, hn::Abs(b));
    max_abs = hn::Max(max_abs, size);
    sums.exceeding += hn::CountTrue(f64, hn::Gt(size, hn::Add(atol, hn::Mul(rtol, size_a))));
    const auto beats_rel = hn::Gt(size, hn::Mul(larger, rel_bound));
    const auto beats_rtol = hn::Gt(size, hn::MulAdd(size_a, rtol_bound, atol));
    if (HWY_LIKELY(hn::AllFalse(f64, hn::Or(beats_rel, beats_rtol)))) continue;
    const Vec ratio = hn::IfThenElseZero(hn::Gt(size, zero), hn::Div(size, larger));
    max_rel = std::max(max_rel, most(ratio));
    rel_bound = just_below(max_rel);
    const Vec over = hn::Sub(size, atol);
    const Vec needed = hn::IfThenElseZero(hn::Gt(over, zero), hn::Div(over, size_a));
    rtol_needed = std::max(rtol_needed, most(needed));
    rtol_bound = just_below(rtol_needed);
  }
  sums.max_abs = most(max_abs);
  sums.max_rel = max_rel;
  sums.rtol_needed = rtol_needed;
}

template <class T>
uint64_t position_of(const T* a, const T* b, std::size_t count, double distance) {
  for (std::size_t i = 0; i < count; ++i)
    if (std::abs(static_cast<double>(b[i]) - static_cast<double>(a[i])) == distance) return i;
  return 0;
}

template <class T>
std::size_t diff_tile(const T* a, const T* b, const Tile& tile, Sums& sums) {
  const std::size_t lanes = hn::Lanes(hn::ScalableTag<T>());
  const std::size_t count = tile.count / lanes * lanes;
  if (count == 0) return 0;
  const Survey found = survey(a, b, count, tile);
  if (!std::isfinite(found.distance)) return 0;

  sums = {};
  sums.count = sums.values = sums.a.count = sums.b.count = count;
  sums.equal = found.equal;
  const double largest = std::max({-found.min_a, found.max_a, -found.min_b, found.max_b});
  if (largest < kEstimateMax) {
    take_sums<true>(a, b, count, tile.ahead, sums);
  } else {
    take_sums<false>(a, b, count, tile.ahead, sums);
  }
  sums.a = {count, sums.mean_a, sums.m2_a, found.min_a, found.max_a, found.zeros_a, 0, 0};
  sums.b = {count, sums.mean_b, sums.m2_b, found.min_b, found.max_b, found.zeros_b, 0, 0};

  if (found.notable || found.distance >= tile.best.max_abs * kNearly)
    take_records(a, b, count, tile, sums);
  if (sums.max_abs > tile.best.max_abs)
    sums.max_abs_at = tile.first + (sums.max_abs > 0 ? position_of(a, b, count, sums.max_abs) : 0);
  else
    sums.max_abs = -1;
  return count;
}

template <class T>
std::size_t moments_tile(const T* values, std::size_t count, Moments& out) {
  const hn::ScalableTag<T> d;
  const F64 f64;
  const std::size_t lanes = hn::Lanes(d);
  count = count / lanes * lanes;
  auto lowest = hn::Set(d, std::numeric_limits<T>::infinity());
  auto highest = hn::Neg(lowest);
  auto poison = hn::Zero(d);  // x - x is NaN for NaN and the infinities, and NaN stays.
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
    __builtin_prefetch(values + i + kTileElements);
    const Vec x = hn::Sub(load(values + i), pivot);
    sx = hn::Add(sx, x);
    sxx = hn::MulAdd(x, x, sxx);
  }
  out = {};
  out.count = count;
  out.zeros = zeros;
  out.min = hn::GetLane(hn::MinOfLanes(d, lowest));
  out.max = hn::GetLane(hn::MaxOfLanes(d, highest));
  const Centred centred(static_cast<double>(count), first, sum(sx), sum(sxx));
  out.mean = centred.mean;
  out.m2 = centred.m2;
  return count;
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

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensordiff::kernels {

HWY_EXPORT(diff_f32);
HWY_EXPORT(diff_f64);
HWY_EXPORT(moments_f32);
HWY_EXPORT(moments_f64);

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

const char* target_name() {
  const int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
  return hwy::TargetName(best);
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
