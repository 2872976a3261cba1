#include "diagnose/sample/first_look.h"

#include <algorithm>
#include <cmath>

#include "diagnose/limits.h"
#include "diagnose/sample/fit.h"
#include "tensor/reader.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

// Rows that are read: as many as these values are, but at least so many. A factor or a shift for
// each feature fits noise in so few rows, and takes 1 − √(7/8) or 1 − √(3/4) of it away: less than
// what promises something.
constexpr uint64_t kValues = uint64_t{1} << 13;
constexpr uint64_t kRowsMin = 8, kRowsMinOfWide = 4;
constexpr uint64_t kWide = 8192;
constexpr std::size_t kGlimpsed = 16;
constexpr double kRoom = 3;  // For the chance that the values glimpsed are farther off than most.
// How many times less than there is reading these rows must cost, to be worth it.
constexpr uint64_t kWorth = 4;

uint64_t rows_read(const TokenView& tokens) {
  const uint64_t least = tokens.features > kWide ? kRowsMinOfWide : kRowsMin;
  return std::max(least, kValues / std::max<uint64_t>(1, tokens.features));
}

// Rows spread over a tensor, as if they were all of it; nothing where they cannot be read.
std::optional<Matrix> spread_rows(const View& view, const Extent& extent) {
  const TokenView tokens = by_tokens(view, extent);
  const Result<Reader> reader = Reader::open(tokens.view);
  if (!reader.ok() || is_complex(view.dtype)) return std::nullopt;
  Matrix matrix;
  matrix.features = tokens.features;
  matrix.tokens = rows_read(tokens);
  matrix.heads = tokens.heads;
  matrix.whole = false;
  matrix.values.resize(matrix.tokens * matrix.features);
  for (uint64_t row = 0; row < matrix.tokens; ++row)
    reader.value().values(row * tokens.tokens / matrix.tokens * matrix.features, matrix.features,
                          matrix.row(row).data());
  if (!reader.value().intact()) return std::nullopt;
  return matrix;
}

// Whether less is left to be read than a Case would hold.
bool is_large(const View& view, const Extent& extent) {
  const TokenView tokens = by_tokens(view, extent);
  const uint64_t held = std::min(kValuesMax, tokens.tokens * tokens.features);
  return tokens.batch == 1 && kWorth * rows_read(tokens) * tokens.features <= held &&
         !view.parts.empty();
}

// A few values of a tensor, read where others of its size are read.
std::vector<double> glimpse(const View& view) {
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok()) return {};
  return values_at(reader.value(), sample_positions(view.elements(), kGlimpsed));
}

// Whether B of a site may be A of another: nearer to it than to its own A, by the norms of both and
// by a few values.
bool may_be_same(const Site& site, const std::vector<double>& of_b, const Site& other) {
  const double size = site.comparison.a.norm.value_or(0);
  const double norm_b = site.comparison.b.norm.value_or(0);
  const double norm_other = other.comparison.a.norm.value_or(0);
  if (std::abs(norm_b - norm_other) > site.error * size) return false;
  const double share = static_cast<double>(of_b.size()) / double(site.views.a.elements());
  return distance(glimpse(other.views.a), of_b) <= kRoom * site.error * size * std::sqrt(share);
}

}  // namespace

FirstLook::FirstLook(const Run& run, const Site& site) {
  if (run.activations || !site.compared() || !is_large(site.views.a, run.extent)) return;
  std::optional<Matrix> a = spread_rows(site.views.a, run.extent);
  std::optional<Matrix> b = spread_rows(site.views.b, run.extent);
  if (!a || !b || !same_form(*a, *b)) return;
  Case rows(run, site, std::move(*a), std::move(*b));
  measure(rows);
  rows.floor = site.budget;
  if (rows.before >= limits::kShown * site.error && rows.before > 0) rows_.emplace(std::move(rows));
}

bool FirstLook::may_be_another() const {
  const Site& site = rows_->site;
  const std::vector<double> of_b = glimpse(site.views.b);
  return std::ranges::any_of(rows_->run.sites, [&](const Site& other) {
    return &other != &site && other.compared() &&
           other.views.a.elements() == site.views.a.elements() && may_be_same(site, of_b, other);
  });
}

bool FirstLook::rules_out(const Diagnosis& diagnosis) const {
  if (!rows_) return false;
  // Rows, or features, that moved are told by all of them.
  if (diagnosis.layout) return !may_be_moved(rows_->site);
  if (&diagnosis == &diagnoses::other_tensor) return !may_be_another();
  const std::optional<Explanation> found = diagnosis.examine(*rows_);
  if (!found || found->settled) return !found;
  return found->after > limits::kPromising * found->before.value_or(rows_->before);
}

}  // namespace tensordiff
