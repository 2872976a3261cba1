// The vector kernels: one body for all instruction sets, chosen when the program starts.
//
// A tile is walked up to three times while it lies in the first-level cache. The survey runs in the
// lanes of the stored type: extremes, equality, steps, what exceeds tolerance, and whether anything
// here may be a record. The sums are then taken in f64, widened in registers. Only a tile that may
// hold a record (a new largest |d|, |d| / max(|a|, |b|) or rtol needed) or an element too near to
// its tolerance to tell is walked again, exactly.
//
// The fractions |d| / (|a| + 1e-8) are added as fractions, four at a time, and the sum multiplied
// by a reciprocal: a guess of 12 bits and one quartic step, e = 1 - x·r, r ← r·(1 + e + e² + e³),
// which leaves 2^-45 or less.
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

#include "compare/kernels/halves-inl.h"
#include "compare/kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The largest |a| of which four multiply to a float: beyond it there is no guess.
constexpr double kGuessMax = 1e9;

Vec load(const float* at) { return hn::PromoteTo(F64(), hn::LoadU(HalfF32(), at)); }
Vec load(const double* at) { return hn::LoadU(F64(), at); }

double sum(Vec v) { return hn::GetLane(hn::SumOfLanes(F64(), v)); }
double most(Vec v) { return hn::GetLane(hn::MaxOfLanes(F64(), v)); }

// 1 / size, where that is a normal float.
HWY_INLINE Vec reciprocal(Vec size) {
  const HalfF32 f32;
  const auto narrow = hn::DemoteTo(f32, size);
  auto guess = hn::ApproximateReciprocal(narrow);
#if !(HWY_ARCH_X86)
  // Others guess 8 bits only.
  guess = hn::MulAdd(hn::NegMulAdd(narrow, guess, hn::Set(f32, 1.0F)), guess, guess);
#endif
  const Vec r = hn::PromoteTo(F64(), guess);
  const Vec e = hn::NegMulAdd(size, r, hn::Set(F64(), 1.0));
  return hn::MulAdd(hn::MulAdd(hn::MulAdd(e, e, e), e, e), r, r);
}

struct Fraction {
  Vec over, under;
};
HWY_INLINE Fraction operator+(const Fraction& p, const Fraction& q) {
  return {hn::MulAdd(p.over, q.under, hn::Mul(q.over, p.under)), hn::Mul(p.under, q.under)};
}

// Mean and centred sum of squares, from Σx and Σx² about a pivot.
struct Centred {
  Centred(double count, double pivot, double x, double xx)
      : mean(pivot + x / count), m2(std::max(0.0, xx - x * x / count)) {}
  double mean, m2;
};

// Values on both sides of zero need no pivot: their mean is never far larger than their spread.
template <bool kGuess, bool kPivot, class T>
void take_sums(const T* at_a, const T* at_b, const Tile& tile, std::size_t count, Sums& sums) {
  const F64 f64;
  const std::size_t lanes = hn::Lanes(f64);
  const double first_a = kPivot ? at_a[0] : 0;
  const double first_b = kPivot ? at_b[0] : 0;
  const Vec pivot_a = hn::Set(f64, first_a);
  const Vec pivot_b = hn::Set(f64, first_b);
  const Vec guard = hn::Set(f64, 1e-8);
  Vec sx = hn::Zero(f64);
  Vec sy = sx, sxx = sx, syy = sx, sxy = sx, d_abs = sx, d_squared = sx, d_relative = sx;
  const auto add = [&](std::size_t i) HWY_ATTR {
    const Vec a = load(at_a + i);
    const Vec b = load(at_b + i);
    const Vec d = hn::Sub(b, a);
    const Vec size = hn::Abs(d);
    const Vec x = kPivot ? hn::Sub(a, pivot_a) : a;
    const Vec y = kPivot ? hn::Sub(b, pivot_b) : b;
    sx = hn::Add(sx, x);
    sy = hn::Add(sy, y);
    sxx = hn::MulAdd(x, x, sxx);
    syy = hn::MulAdd(y, y, syy);
    sxy = hn::MulAdd(x, y, sxy);
    d_abs = hn::Add(d_abs, size);
    d_squared = hn::MulAdd(d, d, d_squared);
    return Fraction{size, hn::Add(hn::Abs(a), guard)};
  };
  for (std::size_t i = 0; i < count; i += 4 * lanes) {
    fetch(tile.ahead, (count + i) / 2);
    fetch(tile.ahead, (count + i) / 2 + lanes);
    if constexpr (kGuess) {
      const Fraction all = (add(i) + add(i + lanes)) + (add(i + 2 * lanes) + add(i + 3 * lanes));
      d_relative = hn::MulAdd(all.over, reciprocal(all.under), d_relative);
    } else {
      for (std::size_t k = 0; k < 4; ++k) {
        const Fraction one = add(i + k * lanes);
        d_relative = hn::Add(d_relative, hn::Div(one.over, one.under));
      }
    }
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
  sums.exceeding = 0;
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

// Whether the largest |d| may beat the record. A difference of narrow values is exact, unless one
// is a thousand times the other, which is notable where the record is below a half.
bool may_be_farthest(const Survey& found, const Tile& tile) {
  const bool exact = tile.narrow && tile.best.max_rel < 0.5;
  const double record = tile.best.max_abs;
  return exact ? found.distance > record : found.distance >= record * (1 - kMargin);
}

// As many elements as the kernels take at once.
std::size_t whole_steps(std::size_t count) {
  const std::size_t step = 4 * hn::Lanes(F64());
  return count / step * step;
}

template <class Pairs>
std::size_t diff_tile(const Pairs& pairs, const Tile& tile, Sums& sums) {
  const std::size_t count = whole_steps(tile.count);
  if (count == 0) return 0;
  const Survey found =
      tile.crowded ? survey<true>(pairs, count, tile) : survey<false>(pairs, count, tile);
  if (!std::isfinite(found.distance)) return 0;

  const typename Pairs::Value* a = pairs.a;
  const typename Pairs::Value* b = pairs.b;
  sums = {};
  sums.count = sums.values = sums.a.count = sums.b.count = count;
  sums.equal = found.equal;
  sums.exceeding = found.exceeding;
  sums.ulp = found.steps;
  const double largest = std::max({-found.min_a, found.max_a, -found.min_b, found.max_b});
  const bool about_zero =
      std::max(found.min_a, found.min_b) <= 0 && std::min(found.max_a, found.max_b) >= 0;
  if (largest >= kGuessMax) {
    take_sums<false, true>(a, b, tile, count, sums);
  } else if (about_zero) {
    take_sums<true, false>(a, b, tile, count, sums);
  } else {
    take_sums<true, true>(a, b, tile, count, sums);
  }
  sums.a = {count, sums.mean_a, sums.m2_a, found.min_a, found.max_a, found.zeros_a, 0, 0};
  sums.b = {count, sums.mean_b, sums.m2_b, found.min_b, found.max_b, found.zeros_b, 0, 0};

  if (found.notable || may_be_farthest(found, tile)) take_records(a, b, count, tile, sums);
  if (sums.max_abs > tile.best.max_abs)
    sums.max_abs_at = tile.first + (sums.max_abs > 0 ? position_of(a, b, count, sums.max_abs) : 0);
  else
    sums.max_abs = -1;
  return count;
}

// The moments of values; with a twin, only if that has the same bits.
template <bool kTwin, class T>
std::size_t moments_tile(const T* values, const T* twin, std::size_t count, Moments& out) {
  const hn::ScalableTag<T> d;
  const hn::RebindToUnsigned<decltype(d)> bits;
  const F64 f64;
  const std::size_t lanes = hn::Lanes(d);
  // NOLINTNEXTLINE(bugprone-sizeof-expression): T may be double, and then there is one.
  constexpr std::size_t kHalves = HWY_TARGET == HWY_SCALAR ? 1 : sizeof(double) / sizeof(T);
  const double first = values[0];
  const Vec pivot = hn::Set(f64, first);
  // One sum for each half of a vector of floats, so that additions wait less for each other.
  Vec sx[2] = {hn::Zero(f64), hn::Zero(f64)};
  Vec sxx[2] = {hn::Zero(f64), hn::Zero(f64)};
  auto lowest = hn::Set(d, std::numeric_limits<T>::infinity());
  auto highest = hn::Neg(lowest);
  auto differing = hn::Zero(bits);
  uint64_t zeros = 0;
  count = count / lanes * lanes;
  for (std::size_t i = 0; i < count;) {
    for (const std::size_t end = std::min(count, i + 8 * lanes); i < end; i += lanes) {
      const auto v = hn::LoadU(d, values + i);
      if constexpr (kTwin) {
        const auto other = hn::BitCast(bits, hn::LoadU(d, twin + i));
        differing = hn::Or(differing, hn::Xor(hn::BitCast(bits, v), other));
      }
      lowest = hn::Min(lowest, v);
      highest = hn::Max(highest, v);
      zeros += hn::CountTrue(d, hn::Eq(v, hn::Zero(d)));
      HWY_UNROLL(2)
      for (std::size_t half = 0; half < kHalves; ++half) {
        const Vec x = hn::Sub(load(values + i + half * hn::Lanes(f64)), pivot);
        sx[half] = hn::Add(sx[half], x);
        sxx[half] = hn::MulAdd(x, x, sxx[half]);
      }
    }
    if (kTwin && !hn::AllTrue(bits, hn::Eq(differing, hn::Zero(bits)))) return 0;
  }
  const double squares = sum(hn::Add(sxx[0], sxx[1]));
  if (count == 0 || !std::isfinite(squares)) return 0;  // What is not finite makes it so.
  out = {};
  out.count = count;
  out.zeros = zeros;
  out.min = hn::GetLane(hn::MinOfLanes(d, lowest));
  out.max = hn::GetLane(hn::MaxOfLanes(d, highest));
  const Centred centred(static_cast<double>(count), first, sum(hn::Add(sx[0], sx[1])), squares);
  out.mean = centred.mean;
  out.m2 = centred.m2;
  return count;
}

template <bool kBf16>
std::size_t diff_halves(const Words& words, const Tile& tile, Sums& out) {
  const Halves<kBf16> pairs{words.a, words.b, words.to_a, words.to_b};
  pairs.finish(whole_steps(tile.count), tile.count);
  return diff_tile(pairs, tile, out);
}

std::size_t diff_f32(const float* a, const float* b, const Tile& tile, Sums& out) {
  return diff_tile(Plain<float>{a, b}, tile, out);
}
std::size_t diff_f64(const double* a, const double* b, const Tile& tile, Sums& out) {
  return diff_tile(Plain<double>{a, b}, tile, out);
}
std::size_t diff_f16(const Words& words, const Tile& tile, Sums& out) {
  return diff_halves<false>(words, tile, out);
}
std::size_t diff_bf16(const Words& words, const Tile& tile, Sums& out) {
  return diff_halves<true>(words, tile, out);
}
std::size_t moments_f32(const float* values, std::size_t count, Moments& out) {
  return moments_tile<false>(values, values, count, out);
}
std::size_t moments_f64(const double* values, std::size_t count, Moments& out) {
  return moments_tile<false>(values, values, count, out);
}
std::size_t moments_if_same_f32(const float* a, const float* b, std::size_t count, Moments& out) {
  return moments_tile<true>(a, b, count, out);
}
std::size_t moments_if_same_f64(const double* a, const double* b, std::size_t count, Moments& out) {
  return moments_tile<true>(a, b, count, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
// Highway's library measures the resolution of its timer whenever a program starts, which takes
// milliseconds, for a benchmark that is not used here. The name found first wins, so this does.
namespace hwy::platform {
HWY_DLLEXPORT uint64_t TimerResolution() { return 1; }  // NOLINT(readability-identifier-naming)
}  // namespace hwy::platform

namespace tensordiff::kernels {

HWY_EXPORT(diff_f32);
HWY_EXPORT(diff_f64);
HWY_EXPORT(diff_f16);
HWY_EXPORT(diff_bf16);
HWY_EXPORT(moments_f32);
HWY_EXPORT(moments_f64);
HWY_EXPORT(moments_if_same_f32);
HWY_EXPORT(moments_if_same_f64);

std::size_t diff(const float* a, const float* b, const Tile& tile, Sums& out) {
  return HWY_DYNAMIC_DISPATCH(diff_f32)(a, b, tile, out);
}
std::size_t diff(const double* a, const double* b, const Tile& tile, Sums& out) {
  return HWY_DYNAMIC_DISPATCH(diff_f64)(a, b, tile, out);
}
std::size_t diff(const Words& words, const Tile& tile, Sums& out) {
  return words.bf16 ? HWY_DYNAMIC_DISPATCH(diff_bf16)(words, tile, out)
                    : HWY_DYNAMIC_DISPATCH(diff_f16)(words, tile, out);
}
std::size_t moments(const float* values, std::size_t count, Moments& out) {
  return HWY_DYNAMIC_DISPATCH(moments_f32)(values, count, out);
}
std::size_t moments(const double* values, std::size_t count, Moments& out) {
  return HWY_DYNAMIC_DISPATCH(moments_f64)(values, count, out);
}
std::size_t moments_if_same(const float* a, const float* b, std::size_t count, Moments& out) {
  return HWY_DYNAMIC_DISPATCH(moments_if_same_f32)(a, b, count, out);
}
std::size_t moments_if_same(const double* a, const double* b, std::size_t count, Moments& out) {
  return HWY_DYNAMIC_DISPATCH(moments_if_same_f64)(a, b, count, out);
}

const char* target_name() {
  const int64_t best = hwy::SupportedTargets() & -hwy::SupportedTargets();
  return hwy::TargetName(best);
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
