#include "align/evidence.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 256;
constexpr std::size_t kPiece = 1 << 14;  // Elements compared at a time.

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// What a cast leaves where two float types differ: the narrower one keeps fewer bits of the
// fraction (and of small numbers, float16). One step, since some programs cut and do not round.
struct CastError {
  double relative = 0, absolute = 0;

  CastError(DType a, DType b) {
    const DTypeInfo &x = info(a), &y = info(b);
    const bool wide = x.bits >= 16 && y.bits >= 16 && !is_in_blocks(a) && !is_in_blocks(b);
    if (a == b || !is_float(a) || !is_float(b) || !wide) return;
    relative = std::ldexp(1, -std::min(x.mantissa_bits, y.mantissa_bits));
    if (a == DType::f16 || b == DType::f16) absolute = std::ldexp(1, -24);  // Its smallest number.
  }

  bool covers(double a, double b) const {
    return same(a, b) || std::abs(a - b) <= std::max(absolute, relative * std::abs(a));
  }
};

// A piece of both sides at a time, kept to reuse its memory.
class PieceCompare {
 public:
  PieceCompare(const Reader& a, const Reader& b, const CastError& cast)
      : a_(a), b_(b), cast_(cast) {}

  bool agrees(uint64_t first, std::size_t count) {
    const DType dtype = a_.view().dtype;
    // Large integers do not survive the way through float64.
    if (is_integer(dtype) && dtype == b_.view().dtype) {
      const std::byte* from_a = a_.raw(first, count, raw_a_);
      const std::byte* from_b = b_.raw(first, count, raw_b_);
      if (std::memcmp(from_a, from_b, count * item_bytes(dtype)) != 0) return false;
    }
    read(a_, first, count, values_a_);
    read(b_, first, count, values_b_);
    if (values_a_.size() != values_b_.size()) return false;  // Complex against real.
    const auto agree = [&](double x, double y) { return cast_.covers(x, y); };
    if (!std::ranges::equal(values_a_, values_b_, agree)) return false;
    if (first == 0) first_value_ = values_a_[0];
    varied_ |= !std::ranges::all_of(values_a_, [&](double v) { return same(v, first_value_); });
    return true;
  }

  bool varied() const { return varied_; }

 private:
  static void read(const Reader& reader, uint64_t first, std::size_t count,
                   std::vector<double>& values) {
    values.resize(count * (is_complex(reader.view().dtype) ? 2 : 1));
    reader.components(first, count, values.data());
  }

  const Reader& a_;
  const Reader& b_;
  const CastError& cast_;
  std::vector<std::byte> raw_a_, raw_b_;
  std::vector<double> values_a_, values_b_;
  double first_value_ = 0;
  bool varied_ = false;
};

}  // namespace

std::optional<std::vector<double>> sample_of(const View& view) {
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok()) return std::nullopt;
  return values_at(reader.value(), sample_positions(view.elements(), kSample));
}

bool equal_samples(std::span<const double> a, std::span<const double> b) {
  return std::ranges::equal(a, b, same);
}

double sampled_disagreement(const AlignedPair& pair) {
  const auto a = sample_of(pair.a), b = sample_of(pair.b);
  return a && b ? unexplained(*a, *b) : 1;
}

bool samples_equal(const AlignedPair& pair) {
  const auto a = sample_of(pair.a), b = sample_of(pair.b);
  return a && b && equal_samples(*a, *b);
}

double disagreement_max(uint64_t elements, std::size_t plans) {
  // The squared correlation of n unrelated pairs falls off like exp(-n r^2 / 2), so the best of k
  // is rarely above (2 ln k + 8) / n. A layout that explains less than half is none in any case.
  const double sampled = static_cast<double>(std::min<uint64_t>(elements, kSample));
  const double by_chance = (2 * std::log(static_cast<double>(plans)) + 8) / sampled;
  return 1 - std::clamp(by_chance, 0.5, 0.99);
}

bool hold_same_values(const AlignedPair& pair) {
  const Result<Reader> a = Reader::open(pair.a);
  const Result<Reader> b = Reader::open(pair.b);
  const uint64_t count = pair.a.elements();
  if (!a.ok() || !b.ok() || count == 0) return false;
  const CastError cast(pair.a.dtype, pair.b.dtype);
  // Nearly always a sample tells, and saves reading both sides.
  for (const uint64_t position : sample_positions(count, kSample))
    if (!cast.covers(a.value().value(position), b.value().value(position))) return false;

  PieceCompare compare(a.value(), b.value(), cast);
  for (uint64_t first = 0; first < count; first += kPiece)
    if (!compare.agrees(first, std::min<uint64_t>(kPiece, count - first))) return false;
  return compare.varied();
}

}  // namespace tensordiff
