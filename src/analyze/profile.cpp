#include "analyze/profile.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>
#include <utility>

#include "analyze/group_sums.h"
#include "analyze/low_rank.h"
#include "analyze/patch.h"
#include "base/parallel.h"

namespace tensordiff {
namespace {

constexpr std::size_t kDistributionValues = 4096;
constexpr double kDuplicateCosine = 0.999;  // Rows that point the same way to 2.6 degrees.

double decibels(double signal, double noise) { return 10 * std::log10(signal / noise); }

std::optional<double> median(std::vector<double> values) {
  if (values.empty()) return std::nullopt;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

// How many values at the front of a row are looked at before the others.
constexpr uint64_t kFront = 16;

// How many rows differ, each read only as far as it is the same on both sides.
uint64_t changed_rows(const AlignedPair& views, const Extents& extents) {
  const Result<Reader> a = Reader::open(views.a), b = Reader::open(views.b);
  if (!a.ok() || !b.ok()) return 0;
  std::vector<double> of_a(extents.columns), of_b(extents.columns);
  uint64_t changed = 0;
  for (uint64_t row = 0; row < extents.rows; ++row) {
    const auto same = [&](uint64_t from, uint64_t end) {
      a.value().values(row * extents.columns + from, end - from, of_a.data() + from);
      b.value().values(row * extents.columns + from, end - from, of_b.data() + from);
      return std::equal(of_a.begin() + static_cast<std::ptrdiff_t>(from),
                        of_a.begin() + static_cast<std::ptrdiff_t>(end),
                        of_b.begin() + static_cast<std::ptrdiff_t>(from));
    };
    const uint64_t front = std::min(kFront, extents.columns);
    changed += !same(0, front) || !same(front, extents.columns);
  }
  return changed;
}

// A row that is zero, or the same on both sides, is so in all its columns: where the comparison
// counted fewer such elements, no row has to be read.
void measure_rows(const Row& pair, Profile& profile) {
  const Extents extents = extents_of(pair.views.a.shape);
  const Comparison& it = pair.comparison;
  profile.rows = extents.rows;
  profile.columns = extents.columns;
  if (extents.rows < 2 || extents.rows > kGroupsMax || extents.columns == 0) return;
  profile.by_row = true;
  if (it.a.zeros >= extents.columns) profile.rows_a.dead = zero_rows(pair.views.a).size();
  if (!pair.changed())
    profile.rows_b.dead = profile.rows_a.dead;
  else if (it.b.zeros >= extents.columns)
    profile.rows_b.dead = zero_rows(pair.views.b).size();
  if (!pair.changed()) return;
  const uint64_t unchanged = it.diff.equal / extents.columns;  // At most.
  profile.rows_changed =
      2 * unchanged <= extents.rows ? extents.rows - unchanged : changed_rows(pair.views, extents);
}

uint64_t duplicate_rows(const Dense& products) {
  uint64_t duplicates = 0;
  for (std::size_t i = 0; i < products.rows; ++i) {
    const auto row = products.row(i);
    for (std::size_t j = 0; j < i; ++j) {
      const double lengths = std::sqrt(row[i] * products.row(j)[j]);
      if (lengths == 0 || row[j] < kDuplicateCosine * lengths) continue;
      ++duplicates;
      break;
    }
  }
  return duplicates;
}

// Whether the spectrum of a change could show a low rank: it tells ranks of up to half its length.
bool may_be_low(const Row& pair, double directions, const Dense& patch) {
  const double share = low_rank_share(pair);
  const auto half = static_cast<double>(std::min(patch.rows, patch.columns)) / 2;
  return share <= 0 || share * share * directions <= half;
}

void measure_patches(const Row& pair, Profile& profile) {
  const View& a = pair.views.a;
  if (profile.rows < 2 || profile.columns < 2) return;
  Result<Dense> patch_a = read_patch(a);
  Result<Dense> patch_b = read_patch(pair.views.b);
  if (!patch_a.ok() || !patch_b.ok()) {
    profile.fault = patch_a.ok() ? patch_b.error().message() : patch_a.error().message();
    return;
  }
  profile.sampled = is_sampled(a.shape);
  const auto measure = [](Dense patch, Spectrum& spectrum, RowFacts& rows) {
    const Scaled values = scaled(std::move(patch));
    spectrum = spectrum_of(values);
    rows.duplicates = duplicate_rows(values.rows);
  };
  if (pair.changed()) {
    const Scaled change = scaled(difference(patch_b.value(), patch_a.value()));
    profile.directions = directions_of(change, {profile.rows, profile.columns});
    if (may_be_low(pair, profile.directions, patch_a.value()))
      profile.spectrum_change = spectrum_of(change);
    measure(std::move(patch_b).value(), profile.spectrum_b, profile.rows_b);
  }
  measure(std::move(patch_a).value(), profile.spectrum_a, profile.rows_a);
  if (pair.changed()) return;
  profile.spectrum_b = profile.spectrum_a;
  profile.rows_b.duplicates = profile.rows_a.duplicates;
}

// Ascending, byte by byte from the last one: samples are of a few thousand values, most of which
// were stored in fewer bytes, whose lower ones are all zero and are passed over.
void sort_values(std::vector<double>& values) {
  constexpr uint64_t kSign = uint64_t{1} << 63;
  std::vector<uint64_t> keys(values.size()), other(values.size());
  std::array<std::array<uint32_t, 256>, 8> counts{};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto bits = std::bit_cast<uint64_t>(values[i]);
    keys[i] = bits & kSign ? ~bits : bits | kSign;  // In the order of the values.
    for (std::size_t byte = 0; byte < 8; ++byte) ++counts[byte][keys[i] >> 8 * byte & 255];
  }
  for (std::size_t byte = 0; byte < 8; ++byte) {
    const auto digit = [&](uint64_t key) { return key >> 8 * byte & 255; };
    if (keys.empty() || counts[byte][digit(keys[0])] == keys.size()) continue;
    uint32_t before = 0;
    for (uint32_t& count : counts[byte]) before += std::exchange(count, before);
    for (const uint64_t key : keys) other[counts[byte][digit(key)]++] = key;
    keys.swap(other);
  }
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = std::bit_cast<double>(keys[i] & kSign ? keys[i] & ~kSign : ~keys[i]);
}

Levels levels_of(DType dtype, const std::vector<double>& values) {
  Levels levels;
  const std::optional<double> largest = largest_value(dtype);
  uint64_t at_end = 0;
  for (const double value : values) at_end += largest && std::abs(value) >= *largest;
  if (!values.empty())
    levels.saturated = static_cast<double>(at_end) / static_cast<double>(values.size());
  return levels;
}

void measure_values(const Row& pair, Profile& profile) {
  Result<std::vector<double>> a = read_values(pair.views.a, kDistributionValues);
  Result<std::vector<double>> b = read_values(pair.views.b, kDistributionValues);
  if (!a.ok() || !b.ok()) return;
  for (std::vector<double>* values : {&a.value(), &b.value()})
    std::erase_if(*values, [](double value) { return !std::isfinite(value); });
  profile.levels_a = levels_of(pair.views.a.dtype, a.value());
  profile.levels_b = levels_of(pair.views.b.dtype, b.value());
  profile.distribution_values = std::min(a.value().size(), b.value().size());
  profile.distribution_distance = kolmogorov_smirnov(std::move(a).value(), std::move(b).value());
}

}  // namespace

RowNoise row_noise(const AlignedPair& views) {
  RowNoise noise;
  const Extents extents = extents_of(views.a.shape);
  if (extents.rows < 2 || extents.rows > kGroupsMax || extents.columns == 0) return noise;
  const Result<std::vector<GroupSum>> sums = group_sums(views, {extents.columns, extents.rows});
  if (!sums.ok()) return noise;
  std::vector<double> sqnr, fitted;
  double signal = 0, left = 0;
  for (const GroupSum& row : sums.value()) {
    if (row.aa > 0 && row.dd > 0) sqnr.push_back(decibels(row.aa, row.dd));
    const double unexplained = row.aa > 0 && row.bb > 0 ? 1 - row.ab * row.ab / row.aa / row.bb : 0;
    if (unexplained > 0) fitted.push_back(decibels(1, unexplained));
    signal += row.aa;
    left += row.bb > 0 ? row.aa * unexplained : row.aa;
  }
  if (signal > 0 && left > 0) noise.fitted = decibels(signal, left);
  if (!sqnr.empty()) noise.sqnr_min = *std::ranges::min_element(sqnr);
  if (!fitted.empty()) noise.fitted_min = *std::ranges::min_element(fitted);
  noise.sqnr_median = median(std::move(sqnr));
  noise.fitted_median = median(std::move(fitted));
  return noise;
}

std::vector<uint64_t> zero_rows(const View& view) {
  const Extents extents = extents_of(view.shape);
  std::vector<uint64_t> rows;
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok() || extents.columns == 0) return rows;
  std::vector<double> values(extents.columns);
  const uint64_t front = std::min(kFront, extents.columns);
  for (uint64_t row = 0; row < extents.rows; ++row) {
    const auto zero = [&](uint64_t from, uint64_t count) {
      reader.value().values(row * extents.columns + from, count, values.data());
      return std::all_of(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count),
                         [](double value) { return value == 0; });
    };
    if (zero(0, front) && zero(front, extents.columns - front)) rows.push_back(row);
  }
  return rows;
}

std::vector<uint64_t> zero_columns(const View& view) {
  if (view.shape.size() != 2 || view.shape[0] < 2 || view.shape[1] > kGroupsMax) return {};
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok()) return {};
  const uint64_t rows = view.shape[0], columns = view.shape[1];
  std::vector<uint64_t> left(columns);
  std::iota(left.begin(), left.end(), 0);
  std::vector<double> values(columns);
  // A row or two rule out nearly all that are not: only where some are left is more read.
  const std::vector<uint64_t> first = spread(rows, 16);
  for (uint64_t i = 0; i < rows + first.size() && !left.empty(); ++i) {
    const uint64_t row = i < first.size() ? first[i] : i - first.size();
    reader.value().values(row * columns, columns, values.data());
    std::erase_if(left, [&](uint64_t column) { return values[column] != 0; });
  }
  return left;
}

std::optional<double> largest_value(DType dtype) {
  if (is_packed(dtype)) return std::nullopt;
  switch (dtype) {
    case DType::f16:
      return 65504;
    case DType::f8_e4m3:
      return 448;
    case DType::f8_e5m2:
      return 57344;
    case DType::f8_e4m3fnuz:
      return 240;
    case DType::f8_e5m2fnuz:
      return 57344;
    case DType::i8:
      return 127;
    case DType::u8:
      return 255;
    default:
      return std::nullopt;
  }
}

double kolmogorov_smirnov(std::vector<double> x, std::vector<double> y) {
  sort_values(x);
  sort_values(y);
  if (x.empty() || y.empty()) return 0;
  double largest = 0;
  std::size_t i = 0, j = 0;
  while (i < x.size() && j < y.size()) {
    const double at = std::min(x[i], y[j]);
    while (i < x.size() && x[i] == at) ++i;
    while (j < y.size() && y[j] == at) ++j;
    const double apart = static_cast<double>(i) / static_cast<double>(x.size()) -
                         static_cast<double>(j) / static_cast<double>(y.size());
    largest = std::max(largest, std::abs(apart));
  }
  return largest;
}

std::vector<Profile> profile_weights(const Study& study) {
  const std::vector<const Row*>& weights = study.weights();
  std::vector<Profile> profiles(weights.size());
  for_each_index(weights.size(), [&](std::size_t i) {
    const Row& pair = *weights[i];
    Profile& profile = profiles[i];
    if (is_complex(pair.views.a.dtype) || is_complex(pair.views.b.dtype)) {
      profile.fault = "complex values";
      return;
    }
    measure_rows(pair, profile);
    if (pair.comparison.a.zeros >= profile.rows)
      profile.rows_a.dead_columns = zero_columns(pair.views.a).size();
    if (!pair.changed())
      profile.rows_b.dead_columns = profile.rows_a.dead_columns;
    else if (pair.comparison.b.zeros >= profile.rows)
      profile.rows_b.dead_columns = zero_columns(pair.views.b).size();
    measure_patches(pair, profile);
    measure_values(pair, profile);
  });
  return profiles;
}

}  // namespace tensordiff
