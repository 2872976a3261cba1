// The first walk over a tile of f16 or bf16 as stored. Extremes, equality and steps are told by the
// words alone, twice as many at a time as floats; what is held against bounds is widened.
// vector.cpp includes it once for each instruction set, so it has no guard.

#include <hwy/highway.h>

#include <limits>

#include "compare/kernels/survey-inl.h"
#include "compare/kernels/tile.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Word = hn::ScalableTag<uint16_t>;
using SignedWord = hn::RebindToSigned<Word>;

// The pairs of a tile of f16 or bf16, which are left as floats in `a` and `b`.
template <bool kBf16>
struct Halves {
  using Value = float;
  static constexpr uint16_t kInfinity = kBf16 ? 0x7f80 : 0x7c00;

  static HWY_INLINE hn::Vec<F32> widened(hn::Vec<U16> words) {
    if constexpr (kBf16) return bf16_to_float(words);
    return half_to_float(words);
  }
  static HWY_INLINE hn::Vec<F32> widen(const uint16_t* from, float* to) {
    const auto values = widened(hn::LoadU(U16(), from));
    hn::StoreU(values, F32(), to);
    return values;
  }
  static float value_of(uint16_t word) { return hn::GetLane(widened(hn::Set(U16(), word))); }

  // What the walk leaves over.
  void finish(std::size_t first, std::size_t count) const {
    const auto step = [](const uint16_t* from, float* to) HWY_ATTR { widen(from, to); };
    each_vector(from_a + first, count - first, a + first, step);
    each_vector(from_b + first, count - first, b + first, step);
  }

  const uint16_t* from_a;
  const uint16_t* from_b;
  float* a;
  float* b;
};

// The words of the lowest and the highest float.
struct Ends {
  bool are_below(uint16_t infinity) const {
    return (lowest & 0x7fff) < infinity && (highest & 0x7fff) < infinity;
  }

  uint16_t lowest, highest;
  bool zero;  // Whether there is a zero, of either sign.
};

// Finds them. The words of floats below zero come last as unsigned numbers and first as signed
// ones; among themselves, the larger is the lower.
struct Range {
  HWY_INLINE Range() {}  // An implicit one would not be compiled for this instruction set.

  HWY_INLINE void add(hn::Vec<Word> words) {
    const auto with_sign = hn::BitCast(SignedWord(), words);
    least = hn::Min(least, words);
    most = hn::Max(most, words);
    least_signed = hn::Min(least_signed, with_sign);
    most_signed = hn::Max(most_signed, with_sign);
  }

  HWY_INLINE Ends ends() const {
    const uint16_t first = hn::GetLane(hn::MinOfLanes(Word(), least));
    const uint16_t last = hn::GetLane(hn::MaxOfLanes(Word(), most));
    const int16_t first_signed = hn::GetLane(hn::MinOfLanes(SignedWord(), least_signed));
    const int16_t last_signed = hn::GetLane(hn::MaxOfLanes(SignedWord(), most_signed));
    // Where there are zeros of both signs, the lowest has none.
    const uint16_t below_zero = first == 0 ? 0x8001 : 0x8000;
    return {last >= below_zero ? last : first,
            last_signed >= 0 ? static_cast<uint16_t>(last_signed) : first,
            first == 0 || first_signed == std::numeric_limits<int16_t>::min()};
  }

  hn::Vec<Word> least = hn::Set(Word(), 0xffff);
  hn::Vec<Word> most = hn::Zero(Word());
  hn::Vec<SignedWord> least_signed = hn::Set(SignedWord(), 0x7fff);
  hn::Vec<SignedWord> most_signed = hn::Set(SignedWord(), -0x8000);
};

// Holds pairs against the bounds. Products need no slack here: what is stored in 16 bits is a
// multiple of 2^-133, and two such are farther apart than floats of that size are rounded.
struct Held {
  struct Sizes {
    hn::Vec<F32> distance, a, larger;
  };

  explicit HWY_INLINE Held(const Tile& tile) : bounds(tile) {}

  static HWY_INLINE Sizes sizes(hn::Vec<F32> a, hn::Vec<F32> b) {
    const auto size_a = hn::Abs(a);
    return {hn::Abs(hn::Sub(b, a)), size_a, hn::Max(size_a, hn::Abs(b))};
  }
  static HWY_INLINE hn::Vec<F32> height(const Line<float>& line, hn::Vec<F32> at) {
    return hn::MulAdd(at, hn::Set(F32(), line.rtol), hn::Set(F32(), line.atol));
  }

  // Whether add would have anything to tell.
  HWY_INLINE hn::Mask<F32> comes_near(const Sizes& pair) const {
    const auto record = hn::Mul(pair.larger, hn::Set(F32(), bounds.relative));
    return hn::Gt(pair.distance, hn::Min(record, height(bounds.lowest, pair.a)));
  }
  HWY_INLINE void add(const Sizes& pair) {
    const F32 d;
    exceeding += hn::CountTrue(d, hn::Gt(pair.distance, height(bounds.above, pair.a)));
    reaching += hn::CountTrue(d, hn::Gt(pair.distance, height(bounds.below, pair.a)));
    beyond_relative = hn::Max(
        beyond_relative, hn::NegMulAdd(pair.larger, hn::Set(d, bounds.relative), pair.distance));
    beyond_needed = hn::Max(beyond_needed,
                            hn::NegMulAdd(pair.a, hn::Set(d, bounds.needed.rtol), pair.distance));
  }
  HWY_INLINE bool notable() const {
    const F32 d;
    return reaching != exceeding || hn::GetLane(hn::MaxOfLanes(d, beyond_relative)) > 0 ||
           hn::GetLane(hn::MaxOfLanes(d, beyond_needed)) > bounds.needed.atol;
  }

  Bounds<float> bounds;
  uint64_t exceeding = 0, reaching = 0;
  hn::Vec<F32> beyond_relative = hn::Zero(F32());
  hn::Vec<F32> beyond_needed = hn::Set(F32(), std::numeric_limits<float>::lowest());
};

// The pairs come by value, so that what is stored cannot change where they lie.
template <bool kCrowded, bool kBf16>
Survey survey(const Halves<kBf16> pairs, std::size_t count, const Tile& tile) {
  constexpr bool kTwice = HWY_TARGET != HWY_SCALAR;  // There, a vector has one word.
  const F32 d;
  const Word words;
  const Ahead ahead = tile.ahead;
  Range range_a, range_b;
  Held held(tile);
  auto distance = hn::Zero(d);
  auto steps = hn::Zero(words);
  uint64_t equal = 0;
  for (std::size_t i = 0; i < count; i += hn::Lanes(words)) {
    fetch(ahead, i / 2);
    const auto words_a = hn::LoadU(words, pairs.from_a + i);
    const auto words_b = hn::LoadU(words, pairs.from_b + i);
    range_a.add(words_a);
    range_b.add(words_b);
    raise_steps(words, steps, words_a, words_b);
    equal += hn::CountTrue(words, hn::Eq(words_a, words_b));
    const auto sizes = [&](std::size_t at) HWY_ATTR {
      return held.sizes(pairs.widen(pairs.from_a + at, pairs.a + at),
                        pairs.widen(pairs.from_b + at, pairs.b + at));
    };
    const auto lower = sizes(i);
    const auto upper = sizes(kTwice ? i + hn::Lanes(d) : i);
    distance = hn::Max(distance, hn::Max(lower.distance, upper.distance));
    if constexpr (!kCrowded)
      if (hn::AllFalse(d, hn::Or(held.comes_near(lower), held.comes_near(upper)))) continue;
    held.add(lower);
    if constexpr (kTwice) held.add(upper);
  }
  const Ends a = range_a.ends();
  const Ends b = range_b.ends();
  const bool finite = a.are_below(pairs.kInfinity) && b.are_below(pairs.kInfinity);
  Survey found{
      pairs.value_of(a.lowest),
      pairs.value_of(a.highest),
      pairs.value_of(b.lowest),
      pairs.value_of(b.highest),
      finite ? hn::GetLane(hn::MaxOfLanes(d, distance)) : std::numeric_limits<float>::infinity(),
      held.notable(),
      held.exceeding,
      equal,
      0,
      0,
      known_steps(hn::GetLane(hn::MaxOfLanes(words, steps)), 0x8000 - pairs.kInfinity)};
  if (a.zero || b.zero) count_zeros(pairs, count, found);
  return found;
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();
