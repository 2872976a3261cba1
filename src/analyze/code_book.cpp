#include "analyze/code_book.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace tensordiff {
namespace {

// Roundings that dequantizing in float32 may add to that of storage: a product of two scales, a
// product with the level and a sum.
constexpr double kOperations = 4 * 0x1p-24;

// QLoRA, Dettmers et al. 2023, appendix E: quantiles of a normal distribution.
const std::vector<double> kNf4 = {-1.0,
                                  -0.6961928009986877,
                                  -0.5250730514526367,
                                  -0.39491748809814453,
                                  -0.28444138169288635,
                                  -0.18477343022823334,
                                  -0.09105003625154495,
                                  0.0,
                                  0.07958029955625534,
                                  0.16093020141124725,
                                  0.24611230194568634,
                                  0.33791524171829224,
                                  0.44070982933044434,
                                  0.5626170039176941,
                                  0.7229568362236023,
                                  1.0};

// The negative of each beside it, and zero.
std::vector<double> mirrored(const std::vector<double>& positive) {
  std::vector<double> levels{0};
  for (const double level : positive) {
    levels.push_back(level);
    levels.push_back(-level);
  }
  std::ranges::sort(levels);
  return levels;
}

std::vector<double> levels_of_f8(DType dtype) {
  std::vector<double> positive;
  for (int code = 1; code < 128; ++code)
    if (const double value = f8_table(dtype)[code]; std::isfinite(value)) positive.push_back(value);
  return mirrored(positive);
}

struct Nearest {
  double level, gap;  // The level next to a value, and the room between levels there.
};

Nearest nearest(const CodeBook& book, double x) {
  if (book.levels.empty()) return {std::round(x), 1};
  const auto above = std::ranges::lower_bound(book.levels, x);
  if (above == book.levels.begin()) return {*above, above[1] - above[0]};
  if (above == book.levels.end()) return {above[-1], above[-1] - above[-2]};
  const double gap = above[0] - above[-1];
  return {x - above[-1] < above[0] - x ? above[-1] : above[0], gap};
}

// A value of a group, and how many of the group have it. Of symmetric levels the sign says nothing.
struct Value {
  double value = 0;
  double count = 0;
  bool negative = false, positive = false;  // Which signs it had, where these were dropped.
};

std::vector<Value> distinct(std::span<const double> values, const CodeBook& book) {
  const bool symmetric = !book.offset && (book.levels.empty() || book.symmetric());
  std::vector<double> sorted(values.begin(), values.end());
  const auto size_of = [&](double value) { return symmetric ? std::abs(value) : value; };
  std::ranges::sort(sorted, {}, size_of);
  std::vector<Value> all;
  for (const double value : sorted) {
    const double size = size_of(value);
    if (all.empty() || all.back().value != size) all.push_back({size});
    all.back().count += 1;
    all.back().negative |= symmetric && value < 0;
    all.back().positive |= !symmetric || value > 0;
  }
  return all;
}

// Values as multiples of a scale that is being tried.
class Trial {
 public:
  Trial(std::vector<Value> values, const Precision& precision, const CodeBook& book)
      : values_(std::move(values)), precision_(precision), book_(book) {
    for (const Value& each : values_) largest_ = std::max(largest_, std::abs(each.value));
  }

  // Whether all values are on levels, given that scale and offset are those of single values and
  // carry the rounding of these; then the best scale and offset, and whether all still are.
  std::optional<Fit> at(double scale, double offset) const {
    if (!possible(scale, offset)) return std::nullopt;
    refine(scale, offset);
    return settled(scale, offset);
  }

 private:
  bool possible(double scale, double offset) const {
    const double anchor = book_.offset ? std::abs(offset) : 0;
    for (const Value& each : values_) {
      const double value = each.value;
      const double slack =
          slack_of(value) + slack_of(anchor) + precision_.relative * std::abs(value - offset);
      if (off_level((value - offset) / scale) > slack / std::abs(scale)) return false;
    }
    return true;
  }

  double slack_of(double value) const {
    return precision_.relative * std::abs(value) + precision_.least;
  }
  double off_level(double x) const { return std::abs(x - nearest(book_, x).level); }

  // Least squares of the values on their levels, each by how exactly it is stored. Equal values
  // were rounded the same way, so they count once.
  void refine(double& scale, double& offset) const {
    const double floor = slack_of(largest_) / 16;  // Zeros are exact, but offsets are not.
    double n = 0, q = 0, v = 0, qq = 0, qv = 0;
    for (const Value& each : values_) {
      const double value = each.value;
      const double level = nearest(book_, (value - offset) / scale).level;
      const double slack = slack_of(value) + floor, weight = 1 / (slack * slack);
      n += weight, q += weight * level, v += weight * value;
      qq += weight * level * level, qv += weight * level * value;
    }
    if (!book_.offset) {
      if (qq > 0) scale = qv / qq;
      return;
    }
    const double spread = n * qq - q * q;
    if (spread <= 0) return;
    scale = (n * qv - q * v) / spread;
    offset = (v - scale * q) / n;
  }

  std::optional<Fit> settled(double scale, double offset) const {
    // Fitted from n roundings, scale and offset are that much better known than one value.
    const double unknown = std::min(1.0, 2 / std::sqrt(static_cast<double>(values_.size())));
    double low = 0, high = 0, evidence = 0, counted = 0;
    for (const Value& each : values_) {
      const double value = each.value;
      const double x = (value - offset) / scale;
      const auto [level, gap] = nearest(book_, x);
      const double of_fit = unknown * slack_of(book_.offset ? largest_ : value);
      const double slack =
          (slack_of(value) + of_fit + kOperations * std::abs(offset)) / std::abs(scale);
      if (std::abs(x - level) > slack) return std::nullopt;
      low = std::min(low, each.negative ? -level : level);
      if (each.positive) high = std::max(high, level);
      if (value == 0) continue;
      evidence -= each.count * std::log2(std::clamp(2 * slack / gap, 1e-9, 1.0));
      counted += each.count;
    }
    Fit fit{std::abs(scale), 0, evidence, counted};
    const double symmetric = book_.offset ? 0 : 2 * std::max(-low, high);
    fit.levels = static_cast<uint64_t>(std::max(high - low + 1, symmetric));
    return fit;
  }

  std::vector<Value> values_;
  const Precision& precision_;
  const CodeBook& book_;
  double largest_ = 0;
};

// A few values of a group, by which most scales are refused: what some of the values refuse, all of
// them do. Those that are known most exactly come first, since they refuse most. Most groups are on
// no book, and this shows it without sorting them.
class Sieve {
 public:
  struct Ends {
    double least, most;
  };
  Sieve(std::span<const double> values, const Precision& precision, const CodeBook& book,
        const Ends& ends)
      : book_(book) {
    const auto slack_of = [&](double value) {
      return precision.relative * std::abs(value) + precision.least;
    };
    // With an offset that is not known, values stand on levels seen from each other: from the one
    // that is known best.
    const double from = book.offset ? best_known(values) : 0;
    const double of_scale =
        book.offset ? (slack_of(ends.least) + slack_of(ends.most)) / (ends.most - ends.least)
                    : precision.relative;
    std::array<Point, kFewMost> kept;
    std::size_t count = 0;
    const std::size_t stride = std::max<std::size_t>(1, values.size() / kFewMost);
    for (std::size_t i = 0; i < values.size() && count < kFewMost; i += stride) {
      const double shifted = values[i] - from;
      if (shifted == 0) continue;  // On a level of every scale.
      kept[count++] = {shifted,
                       slack_of(values[i]) + slack_of(from) + of_scale * std::abs(shifted)};
    }
    const auto end = kept.begin() + static_cast<std::ptrdiff_t>(count);
    count_ = std::min(kFew, count);
    std::partial_sort(kept.begin(), kept.begin() + static_cast<std::ptrdiff_t>(count_), end,
                      [](const Point& x, const Point& y) { return x.slack < y.slack; });
    std::copy_n(kept.begin(), count_, points_.begin());
  }

  bool lets_through(double scale) const {
    const double inverse = 1 / scale, slack = std::abs(inverse);
    for (std::size_t i = 0; i < count_; ++i) {
      const double x = points_[i].shifted * inverse;
      const double level = book_.levels.empty() ? whole(x) : nearest(book_, x).level;
      if (std::abs(x - level) > points_[i].slack * slack) return false;
    }
    return true;
  }

 private:
  struct Point {
    double shifted = 0, slack = 0;
  };
  static double best_known(std::span<const double> values) {
    return *std::ranges::min_element(values, {}, [](double value) { return std::abs(value); });
  }
  // To the next whole number, for |x| below 2^51: what is added leaves no room for a fraction.
  static double whole(double x) {
    constexpr double kNoFraction = 0x1.8p52;
    return x + kNoFraction - kNoFraction;
  }

  static constexpr std::size_t kFew = 32, kFewMost = 256;
  const CodeBook& book_;
  std::size_t count_ = 0;
  std::array<Point, kFew> points_;
};

// The value that is farthest from zero stands for a level that is not known: all are tried.
std::vector<double> anchors_of(const CodeBook& book) {
  std::vector<double> levels;
  if (book.levels.empty())
    for (uint64_t step = 1; step < kUniformLevelsMax; ++step)
      levels.push_back(static_cast<double>(step));
  // The sign says nothing where each level has its negative. Of floats, those that are four times
  // as large stand where the smaller ones do, up to a power of two.
  const double largest = book.levels.empty() ? 0 : book.levels.back();
  const double smallest = book.bits == 8 ? largest / 4 : 0;
  for (const double level : book.levels)
    if (book.symmetric() ? level > smallest : level != 0) levels.push_back(level);
  // The largest first: it stands for a scale that the largest value was given.
  if (!book.levels.empty())
    std::ranges::sort(levels, [](double x, double y) { return std::abs(x) > std::abs(y); });
  return levels;
}

}  // namespace

bool CodeBook::symmetric() const {
  for (std::size_t i = 0; 2 * i < levels.size(); ++i)
    if (levels[i] != -levels[levels.size() - 1 - i]) return false;
  return true;
}

const std::vector<CodeBook>& code_books() {
  static const std::vector<CodeBook> kBooks = {
      {"int", 0},
      {"int with offset", 0, {}, true},
      {"nf4", 4, kNf4},
      // The eight of bitsandbytes, as shares of the largest.
      {"fp4", 4, mirrored({0.0625 / 12, 2.0 / 12, 3.0 / 12, 4.0 / 12, 6.0 / 12, 8.0 / 12, 1})},
      {"f4_e2m1", 4, mirrored({0.5, 1, 1.5, 2, 3, 4, 6})},
      {"iq4_nl", 4, {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}},
      {"f8_e4m3", 8, levels_of_f8(DType::f8_e4m3)},
      {"f8_e5m2", 8, levels_of_f8(DType::f8_e5m2)},
  };
  return kBooks;
}

Precision precision_of(DType dtype) {
  const int bits = info(dtype).mantissa_bits;
  constexpr double kOwn = 1e-12;  // What dividing in float64 leaves here, with room to spare.
  if (bits < 0 || bits > 23) return {kOwn, 0};
  // Half a step of the least exponent, below which f16 has no relative precision any more.
  const double least = dtype == DType::f16 ? 0x1p-25 : 0;
  return {std::ldexp(1.0, -bits - 1) + kOperations, least};
}

// Those of our own books are made once; others are left in `own`.
static const std::vector<double>& known_anchors(const CodeBook& book, std::vector<double>& own) {
  static const std::vector<std::vector<double>> kAnchors = [] {
    std::vector<std::vector<double>> all;
    for (const CodeBook& each : code_books()) all.push_back(anchors_of(each));
    return all;
  }();
  const std::vector<CodeBook>& books = code_books();
  for (std::size_t i = 0; i < books.size(); ++i)
    if (&books[i] == &book) return kAnchors[i];
  return own = anchors_of(book);
}

std::optional<Fit> fit(std::span<const double> values, const Precision& precision,
                       const CodeBook& book) {
  const auto [least, most] = std::ranges::minmax(values);
  if (least == most) return std::nullopt;
  std::vector<double> own;
  const std::vector<double>& anchors = known_anchors(book, own);
  double reach = most > -least ? most : least;
  if (book.offset)
    reach = most - least;
  else if (book.levels.empty() || book.symmetric())
    reach = std::abs(reach);
  const double offset = book.offset ? least : 0;
  const Sieve sieve(values, precision, book, {least, most});
  std::optional<Trial> trial;
  for (const double anchor : anchors) {
    if (!sieve.lets_through(reach / anchor)) continue;
    if (!trial) trial.emplace(distinct(values, book), precision, book);
    std::optional<Fit> found = trial->at(reach / anchor, offset);
    if (!found || (book.levels.empty() && found->levels > kUniformLevelsMax)) continue;
    // One value was spent on each of scale and offset.
    const double price = std::log2(static_cast<double>(anchors.size()));
    const double mean = found->bits_of_evidence / std::max(1.0, found->values);
    found->bits_of_evidence -= price + (book.offset ? 2 : 1) * mean;
    if (found->bits_of_evidence > 0) return found;
  }
  return std::nullopt;
}

double evidence_possible(std::span<const double> values, const Precision& precision) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  if (largest == 0) return 0;
  const double step = 2 * largest / static_cast<double>(kUniformLevelsMax);
  double evidence = 0;
  std::size_t count = 0;
  constexpr double kPlenty = 64;  // Of which no more has to be known.
  for (const double value : values) {
    if (value == 0) continue;
    if (count > 16 && evidence > kPlenty) break;
    ++count;
    const double slack = precision.relative * std::abs(value) + precision.least;
    evidence -= std::log2(std::clamp(2 * slack / step, 1e-9, 1.0));
  }
  if (count < 2) return 0;
  const auto n = static_cast<double>(count);
  return evidence * (n - 1) / n - std::log2(static_cast<double>(kUniformLevelsMax));
}

}  // namespace tensordiff
