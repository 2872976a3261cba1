#include "diagnose/hypotheses/row_order.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kRowsMax = uint64_t{1} << 20;
constexpr std::size_t kRuns = 4, kRunLength = 4;  // Four places of a row, one cache line each.
constexpr std::size_t kKept = kRuns * kRunLength;
// What rounding to bf16 leaves of a row; other rows of real values are farther off by far.
constexpr double kSame = 1.0 / 128;
constexpr uint64_t kLooksMax = 64;     // At the nearest rows, for each row,
constexpr uint64_t kPassedMax = 4096;  // and how many that are taken it passes: rows of zeros.

using Sketch = std::array<double, kKept>;

std::vector<Sketch> sketches(const Reader& reader, uint64_t rows, uint64_t features) {
  std::vector<Sketch> result(rows);
  for (uint64_t row = 0; row < rows; ++row)
    for (std::size_t run = 0; run < kRuns; ++run)
      reader.values(row * features + run * (features - kRunLength) / (kRuns - 1), kRunLength,
                    result[row].data() + run * kRunLength);
  return result;
}

double squared(const Sketch& x) {
  double sum = 0;
  for (const double value : x) sum += value * value;
  return sum;
}

bool same(const Sketch& a, const Sketch& b) {
  double apart = 0;
  for (std::size_t i = 0; i < kKept; ++i) apart += (b[i] - a[i]) * (b[i] - a[i]);
  return apart <= kSame * kSame * squared(a);
}

// Rows that are the same have nearly the same sum; it is what they are sorted by. Each value has a
// weight of its own, so that rows of the same values in another order have other sums.
double key_of(const Sketch& sketch) {
  double sum = 0;
  for (std::size_t i = 0; i < kKept; ++i)
    sum += sketch[i] * std::cos(static_cast<double>(3 * i + 1));
  return sum;
}

// Finds rows of a that no row of b has yet.
class Finder {
 public:
  explicit Finder(const std::vector<Sketch>& rows) : rows_(rows), used_(rows.size()) {
    for (uint64_t row = 0; row < rows.size(); ++row) sorted_.push_back({key_of(rows[row]), row});
    std::ranges::sort(sorted_);
  }

  bool take(uint64_t row, const Sketch& like) {
    if (used_[row] || !same(rows_[row], like)) return false;
    used_[row] = 1;
    return true;
  }

  // The nearest by their keys first.
  std::optional<uint64_t> find(const Sketch& like) {
    const double key = key_of(like);
    auto above = std::ranges::lower_bound(sorted_, std::pair(key, uint64_t{0}));
    auto below = above;
    uint64_t looks = 0, passed = 0;
    while (looks < kLooksMax && passed < kPassedMax) {
      if (above == sorted_.end() && below == sorted_.begin()) break;
      const bool up = below == sorted_.begin() ||
                      (above != sorted_.end() && above->first - key <= key - (below - 1)->first);
      const uint64_t row = up ? (above++)->second : (--below)->second;
      ++(used_[row] ? passed : looks);
      if (take(row, like)) return row;
    }
    return std::nullopt;
  }

 private:
  const std::vector<Sketch>& rows_;
  std::vector<char> used_;
  std::vector<std::pair<double, uint64_t>> sorted_;
};

}  // namespace

std::optional<std::vector<uint64_t>> order_of_rows(const AlignedPair& pair) {
  const Shape& shape = pair.a.shape;
  const uint64_t features = shape.size() < 2 ? 0 : shape.back();
  const uint64_t rows = features == 0 ? 0 : pair.a.elements() / features;
  if (rows < 2 || rows > kRowsMax || features < kKept) return std::nullopt;
  const Result<Reader> a = Reader::open(pair.a), b = Reader::open(pair.b);
  if (!a.ok() || !b.ok()) return std::nullopt;
  const std::vector<Sketch> of_a = sketches(a.value(), rows, features);
  const std::vector<Sketch> of_b = sketches(b.value(), rows, features);
  Finder finder(of_a);
  constexpr uint64_t kNone = UINT64_MAX;
  std::vector<uint64_t> source(rows, kNone);
  // Rows that are where they were stay there, though others may be the same.
  bool moved = false;
  for (uint64_t row = 0; row < rows; ++row) {
    if (finder.take(row, of_b[row])) source[row] = row;
    moved = moved || source[row] == kNone;
  }
  if (!moved) return std::nullopt;
  for (uint64_t row = 0; row < rows; ++row) {
    if (source[row] != kNone) continue;
    const std::optional<uint64_t> found = finder.find(of_b[row]);
    if (!found) return std::nullopt;
    source[row] = *found;
  }
  return source;
}

}  // namespace tensordiff
