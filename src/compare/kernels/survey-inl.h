// The first walk over a tile, in the lanes of the stored type: what can be told without float64.
// vector.cpp includes it once for each instruction set, so it has no guard.

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

// The survey rounds to the stored type; what comes within this of a bound is looked at exactly.
constexpr double kMargin = 1e-5;

// What it can tell.
struct Survey {
  double min_a, max_a, min_b, max_b;
  double distance;  // Largest |b - a|, rounded; infinite or NaN when a value is.
  bool notable;     // An element may beat a record relative to its size, or is so near to its
                    // tolerance that rounding hides on which side.
  uint64_t exceeding, equal, zeros_a, zeros_b;
};

// What an element's |d| is held against: rtol·|a| + atol.
template <class T>
struct Line {
  Line(double slope, double start) : rtol(static_cast<T>(slope)), atol(static_cast<T>(start)) {}
  T rtol, atol;
};

// The bounds of the survey, each a little on the safe side of the exact one.
template <class T>
struct Bounds {
  // Where products may fall below the normal numbers, a margin relative to them is none.
  static double guard(const Threshold& limit) {
    constexpr double kTiny = 16.0 * std::numeric_limits<T>::min();
    const bool exact_zero = limit.atol == 0 && limit.rtol == 0;
    return exact_zero || limit.atol > 1e6 * kTiny ? 0 : kTiny;
  }

  // Two ratios of differences of 11 bits to values of 11 bits are the same or at least 2^-22 apart,
  // and such differences are exact: the next float tells more from a tie, of which small types have
  // many. Beyond 1/2 a difference may have more bits.
  static T relative_bound(const Tile& tile) {
    const double record = tile.best.max_rel;
    if (!tile.narrow || record >= 0.5) return static_cast<T>(record * (1 - kMargin));
    const T near = static_cast<T>(record);
    return static_cast<double>(near) >= record
               ? near
               : std::nextafter(near, std::numeric_limits<T>::infinity());
  }

  explicit Bounds(const Tile& tile)
      : below(tile.limit.rtol * (1 - kMargin), tile.limit.atol * (1 - kMargin) - guard(tile.limit)),
        above(tile.limit.rtol * (1 + kMargin), tile.limit.atol * (1 + kMargin) + guard(tile.limit)),
        needed(tile.best.rtol_needed * (1 - kMargin), below.atol),
        lowest(std::min(below.rtol, needed.rtol), below.atol),
        relative(relative_bound(tile)) {}

  Line<T> below, above;  // Of the tolerance.
  Line<T> needed;        // Of a new largest rtol.
  Line<T> lowest;        // What lies under it is none of them.
  T relative;
  T tiny = std::numeric_limits<T>::min() * static_cast<T>(1 << 26);
};

// 1 / size to 12 bits or more, as floats.
HWY_INLINE void guess_inverse(hn::Vec<hn::ScalableTag<float>> size, float* to) {
  const hn::ScalableTag<float> d;
  auto r = hn::ApproximateReciprocal(size);
#if !(HWY_ARCH_X86)
  r = hn::MulAdd(hn::NegMulAdd(size, r, hn::Set(d, 1.0F)), r, r);  // Others guess 8 bits only.
#endif
  hn::StoreU(r, d, to);
}
HWY_INLINE void guess_inverse(Vec size, float* to) {
  const HalfF32 d;
  const auto narrow = hn::DemoteTo(d, size);
  auto r = hn::ApproximateReciprocal(narrow);
#if !(HWY_ARCH_X86)
  r = hn::MulAdd(hn::NegMulAdd(narrow, r, hn::Set(d, 1.0F)), r, r);
#endif
  hn::StoreU(r, d, to);
}

template <class T>
uint64_t zeros_among(const T* values, std::size_t count) {
  const hn::ScalableTag<T> d;
  uint64_t zeros = 0;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d))
    zeros += hn::CountTrue(d, hn::Eq(hn::LoadU(d, values + i), hn::Zero(d)));
  return zeros;
}

// `inverses` takes a guess of 1 / (|a| + 1e-8) for each element.
template <class T>
Survey survey(const T* at_a, const T* at_b, std::size_t count, const Tile& tile, float* inverses) {
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> bits;  // Sizes order like integers, and NaN comes last.
  const Bounds<T> bounds(tile);
  const auto zero = hn::Zero(d);
  auto min_a = hn::Set(d, std::numeric_limits<T>::infinity());
  auto max_a = hn::Neg(min_a);
  auto min_b = min_a, max_b = max_a, smallest = min_a;
  auto distance = hn::Zero(bits);
  auto notable = hn::Lt(min_a, max_a);  // None yet.
  uint64_t exceeding = 0, equal = 0;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto a = hn::LoadU(d, at_a + i);
    const auto b = hn::LoadU(d, at_b + i);
    const auto size = hn::Abs(hn::Sub(b, a));
    const auto size_a = hn::Abs(a);
    const auto size_b = hn::Abs(b);
    const auto larger = hn::Max(size_a, size_b);
    guess_inverse(hn::Add(size_a, hn::Set(d, static_cast<T>(1e-8))), inverses + i);
    min_a = hn::Min(min_a, a);
    max_a = hn::Max(max_a, a);
    min_b = hn::Min(min_b, b);
    max_b = hn::Max(max_b, b);
    smallest = hn::Min(smallest, hn::Min(size_a, size_b));
    distance = hn::Max(distance, hn::BitCast(bits, size));
    equal += hn::CountTrue(d, hn::Eq(a, b));
    // A fused product has the right sign; only among the tiniest numbers it may round to nothing.
    const auto relative =
        hn::IfThenElseZero(hn::Ge(larger, hn::Set(d, bounds.tiny)), hn::Set(d, bounds.relative));
    notable = hn::Or(notable, hn::Gt(hn::NegMulAdd(larger, relative, size), zero));
    const auto line = [&](const Line<T>& at) HWY_ATTR {
      return hn::MulAdd(size_a, hn::Set(d, at.rtol), hn::Set(d, at.atol));
    };
    if (HWY_LIKELY(hn::AllFalse(d, hn::Gt(size, line(bounds.lowest))))) continue;
    const auto beyond = hn::Gt(size, line(bounds.above));
    const auto near = hn::AndNot(beyond, hn::Gt(size, line(bounds.below)));
    notable = hn::Or(notable, hn::Or(near, hn::Gt(size, line(bounds.needed))));
    exceeding += hn::CountTrue(d, beyond);
  }
  HWY_ALIGN hn::TFromD<decltype(bits)> sizes[hn::MaxLanes(d)];
  hn::Store(distance, bits, sizes);
  const auto farthest = *std::max_element(sizes, sizes + hn::Lanes(d));
  const auto lowest = [&](auto v) HWY_ATTR { return hn::GetLane(hn::MinOfLanes(d, v)); };
  const auto highest = [&](auto v) HWY_ATTR { return hn::GetLane(hn::MaxOfLanes(d, v)); };
  Survey found{lowest(min_a),
               highest(max_a),
               lowest(min_b),
               highest(max_b),
               std::bit_cast<T>(farthest),
               !hn::AllFalse(d, notable),
               exceeding,
               equal,
               0,
               0};
  if (lowest(smallest) > 0) return found;
  found.zeros_a = zeros_among(at_a, count);
  found.zeros_b = zeros_among(at_b, count);
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();
