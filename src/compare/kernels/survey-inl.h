// The first walk over a tile, in the lanes of the stored type: what can be told without float64.
// vector.cpp includes it once for each instruction set, so it has no guard.

#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "compare/kernels/half-inl.h"
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
  uint64_t steps;  // Between the two of a pair, at most; kStepsUnknown where signs differ.
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
  // A slope without limit would make no number of a zero.
  static constexpr double kMost = std::numeric_limits<T>::max();

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
    const double record = std::min(tile.best.max_rel, 2.0);  // No ratio is larger.
    if (!tile.narrow || record >= 0.5) return static_cast<T>(record * (1 - kMargin));
    const T near = static_cast<T>(record);
    return static_cast<double>(near) >= record
               ? near
               : std::nextafter(near, std::numeric_limits<T>::infinity());
  }

  explicit Bounds(const Tile& tile)
      : below(tile.limit.rtol * (1 - kMargin), tile.limit.atol * (1 - kMargin) - guard(tile.limit)),
        above(tile.limit.rtol * (1 + kMargin), tile.limit.atol * (1 + kMargin) + guard(tile.limit)),
        needed(std::min(tile.best.rtol_needed * (1 - kMargin), kMost),
               std::isinf(tile.best.rtol_needed) ? tile.best.rtol_needed : below.atol),
        lowest(std::min(below.rtol, needed.rtol), below.atol),
        relative(relative_bound(tile)),
        slack(relative * std::numeric_limits<T>::min() * static_cast<T>(1 << 26)) {}

  Line<T> below, above;  // Of the tolerance.
  Line<T> needed;        // Of a new largest rtol.
  Line<T> lowest;        // What lies under it is none of them.
  T relative;
  T slack;  // Among the tiniest numbers a product may round to nothing: there, all beat it.
};

template <class D>
hn::TFromD<D> largest_lane(D d, hn::Vec<D> v) {
  HWY_ALIGN hn::TFromD<D> lanes[hn::MaxLanes(d)];
  hn::Store(v, d, lanes);
  return *std::max_element(lanes, lanes + hn::Lanes(d));
}

// Floats of one sign are as many steps apart as their bits. Those of opposite signs are so far
// apart, modulo the size of a word, that more than `most` may be either.
template <class D>
HWY_INLINE void raise_steps(D d, hn::Vec<D>& most, hn::Vec<D> a, hn::Vec<D> b) {
  const hn::RebindToSigned<D> bits;
  const auto apart = hn::Abs(hn::Sub(hn::BitCast(bits, a), hn::BitCast(bits, b)));
  most = hn::Max(most, hn::BitCast(d, apart));
}
inline uint64_t known_steps(uint64_t found, uint64_t most) {
  return found <= most ? found : kStepsUnknown;
}

template <class T>
struct Both {
  hn::Vec<hn::ScalableTag<T>> a, b;
};

// The pairs of a tile, of floats or doubles as they lie. Steps of doubles have a kernel of their
// own.
template <class T>
struct Plain {
  using Value = T;
  using Bits = U32;
  static constexpr bool kCountsSteps = sizeof(T) == sizeof(float);
  static constexpr uint64_t kStepsMax = 1U << 23;

  HWY_INLINE Both<T> load(std::size_t i, hn::Vec<Bits>& steps) const {
    const hn::ScalableTag<T> d;
    const Both<T> both{hn::LoadU(d, a + i), hn::LoadU(d, b + i)};
    if constexpr (kCountsSteps)
      raise_steps(Bits(), steps, hn::BitCast(Bits(), both.a), hn::BitCast(Bits(), both.b));
    return both;
  }

  const T* a;
  const T* b;
};

// Zero has two signs, so words do not tell all that are equal to it.
template <class Pairs>
void count_zeros(const Pairs& pairs, std::size_t count, Survey& found) {
  const hn::ScalableTag<typename Pairs::Value> d;
  found.zeros_a = found.zeros_b = found.equal = 0;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto a = hn::LoadU(d, pairs.a + i);
    const auto b = hn::LoadU(d, pairs.b + i);
    found.zeros_a += hn::CountTrue(d, hn::Eq(a, hn::Zero(d)));
    found.zeros_b += hn::CountTrue(d, hn::Eq(b, hn::Zero(d)));
    found.equal += hn::CountTrue(d, hn::Eq(a, b));
  }
}

// Fetches an element of the next tile. The survey fetches the first half of these, the sums the
// second, so that memory is never idle.
HWY_INLINE void fetch(const Ahead& ahead, std::size_t at) {
  __builtin_prefetch(ahead.a + at * ahead.item_a);
  __builtin_prefetch(ahead.b + at * ahead.item_b);
}

// Where few elements come near to a bound, a vector without any is left early. Where many do, that
// would be a guess that fails too often: all vectors are then looked at alike.
template <bool kCrowded, class T>
Survey survey(const Plain<T> pairs, std::size_t count, const Tile& tile) {
  using Pairs = Plain<T>;
  const hn::ScalableTag<T> d;
  const hn::RebindToSigned<decltype(d)> bits;  // Sizes order like integers, and NaN comes last.
  const Bounds<T> bounds(tile);
  const Ahead ahead = tile.ahead;
  const auto zero = hn::Zero(d);
  auto min_a = hn::Set(d, std::numeric_limits<T>::infinity());
  auto max_a = hn::Neg(min_a);
  auto min_b = min_a, max_b = max_a, smallest = min_a;
  auto distance = hn::Zero(bits);
  auto notable = hn::Lt(min_a, max_a);  // None yet.
  const typename Pairs::Bits words;
  auto steps = hn::Zero(words);
  uint64_t exceeding = 0, reaching = 0, equal = 0;
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    fetch(ahead, i / 2);
    const auto [a, b] = pairs.load(i, steps);
    const auto size = hn::Abs(hn::Sub(b, a));
    const auto size_a = hn::Abs(a);
    const auto size_b = hn::Abs(b);
    const auto larger = hn::Max(size_a, size_b);
    min_a = hn::Min(min_a, a);
    max_a = hn::Max(max_a, a);
    min_b = hn::Min(min_b, b);
    max_b = hn::Max(max_b, b);
    smallest = hn::Min(smallest, hn::Min(size_a, size_b));
    distance = hn::Max(distance, hn::BitCast(bits, size));
    equal += hn::CountTrue(d, hn::Eq(a, b));
    const auto line = [&](const Line<T>& at) HWY_ATTR {
      return hn::MulAdd(size_a, hn::Set(d, at.rtol), hn::Set(d, at.atol));
    };
    const auto record =
        hn::Max(zero, hn::MulSub(larger, hn::Set(d, bounds.relative), hn::Set(d, bounds.slack)));
    if constexpr (!kCrowded)
      if (hn::AllFalse(d, hn::Gt(size, hn::Min(record, line(bounds.lowest))))) continue;
    exceeding += hn::CountTrue(d, hn::Gt(size, line(bounds.above)));
    reaching += hn::CountTrue(d, hn::Gt(size, line(bounds.below)));
    notable = hn::Or(notable, hn::Gt(size, hn::Min(record, line(bounds.needed))));
  }
  const auto lowest = [&](auto v) HWY_ATTR { return hn::GetLane(hn::MinOfLanes(d, v)); };
  const auto highest = [&](auto v) HWY_ATTR { return hn::GetLane(hn::MaxOfLanes(d, v)); };
  Survey found{lowest(min_a),
               highest(max_a),
               lowest(min_b),
               highest(max_b),
               std::bit_cast<T>(largest_lane(bits, distance)),
               reaching != exceeding || !hn::AllFalse(d, notable),
               exceeding,
               equal,
               0,
               0,
               Pairs::kCountsSteps ? known_steps(largest_lane(words, steps), Pairs::kStepsMax)
                                   : kStepsUnknown};
  if (lowest(smallest) <= 0) count_zeros(pairs, count, found);
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();
