// b is a times a factor: one for all, or one for each head, token or feature.
//
// The least-squares factor is s = <a,b> / <a,a>. Factors of slices are tried from few to many, so
// that the simplest answer wins, and only where most slices are off: a few that are, are a region.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/noise/norms.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kPointsMin = 4;       // Values that each factor is found from.
constexpr double kOffFromOneMin = 1e-6;  // Nearer to 1 is no scale in any type.
constexpr uint64_t kBlocks[] = {2, 4, 8, 16, 32, 64, 128};

std::vector<uint64_t> named_sizes(const Case& it) {
  std::vector<uint64_t> sizes;
  if (it.a.heads > 0) sizes.push_back(it.a.features / it.a.heads);
  for (const Role role : {Role::query_final, Role::key_final}) {
    const Site* site = find_role(it.run, it.site, role);
    if (site && !site->views.a.shape.empty()) sizes.push_back(site->views.a.shape.back());
  }
  sizes.push_back(it.a.features);
  return sizes;
}

// Values that share a factor: so many features next to each other, of one token or of all.
struct Slices {
  std::string_view noun;
  uint64_t size;
  bool each_token = false;

  uint64_t per_row(const Matrix& matrix) const { return matrix.features / size; }
  uint64_t count(const Matrix& matrix) const {
    return per_row(matrix) * (each_token ? matrix.rows() : 1);
  }
  uint64_t of(const Matrix& matrix, uint64_t row, uint64_t column) const {
    return column / size + (each_token ? row * per_row(matrix) : 0);
  }
};

// The factor of each slice.
std::vector<double> factors_of(const Case& it, const Slices& slices) {
  std::vector<double> xy(slices.count(it.a)), xx(xy.size());
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    const auto of_a = it.a.row(row), of_b = it.b.row(row);
    uint64_t slice = slices.of(it.a, row, 0);
    for (uint64_t begin = 0; begin < it.a.features; begin += slices.size, ++slice) {
      for (uint64_t i = begin; i < begin + slices.size; ++i) {
        const double x = of_a[i], y = of_b[i];
        if (!std::isfinite(x) || !std::isfinite(y)) continue;
        xy[slice] += x * y;
        xx[slice] += x * x;
      }
    }
  }
  std::vector<double> factors(xy.size(), 1);
  for (std::size_t s = 0; s < factors.size(); ++s)
    if (xx[s] > 0) factors[s] = xy[s] / xx[s];
  return factors;
}

std::optional<Explanation> fit_slices(const Case& it, const Slices& slices) {
  const std::vector<double> factors = factors_of(it, slices);
  const double least_off = std::max(it.floor, kOffFromOneMin);
  const auto off = std::ranges::count_if(
      factors, [&](double factor) { return std::abs(factor - 1) > least_off; });
  const bool gone =
      std::ranges::any_of(factors, [&](double factor) { return std::abs(factor) < least_off; });
  if (2 * static_cast<std::size_t>(off) <= factors.size() || gone) return std::nullopt;
  Explanation result = explained_by(it, filled(it.a, [&](uint64_t row, uint64_t i) {
                                      return factors[slices.of(it.a, row, i)] * it.a.row(row)[i];
                                    }));
  const auto [least, most] = std::ranges::minmax(factors);
  result.text = fmt::format("B is A times a factor for each {}, {} to {}", slices.noun,
                            human_number(least), human_number(most));
  result.parameters = {
      {"per", std::string(slices.noun)}, {"factor_min", least}, {"factor_max", most}};
  return result;
}

std::optional<Explanation> fit_global(const Case& it) {
  const double factor = factor_between(it.a.values, it.b.values);
  if (std::abs(factor - 1) < kOffFromOneMin || factor == 0) return std::nullopt;
  Explanation result = explained_by(
      it, filled(it.a, [&](uint64_t row, uint64_t i) { return factor * it.a.row(row)[i]; }));
  const double tolerance = std::max(1e-6, std::min(0.01, it.site.roundoff * 4));
  const std::string text = factor_text(factor, named_sizes(it), tolerance);
  result.text = near(factor, -1, tolerance)
                    ? "B = −A"
                    : fmt::format("B = {} × A{}", human_number(factor),
                                  text.substr(std::min(text.find(' '), text.size())));
  if (it.site.role == Role::logits && factor > 0)
    result.text += fmt::format(": a temperature of {}", human_number(1 / factor));
  result.parameters = {{"factor", factor}};
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  if (it.a.values.size() < kPointsMin) return std::nullopt;
  std::optional<Explanation> best = fit_global(it);
  if (best && accepted(it, *best)) return best;
  std::vector<Slices> ways;
  const uint64_t features = it.a.features, rows = it.a.rows();
  std::vector<uint64_t> blocks;
  if (it.a.heads > 1) blocks.push_back(it.a.heads);
  for (const uint64_t count : kBlocks)
    if (count != it.a.heads) blocks.push_back(count);
  for (const uint64_t count : blocks) {
    if (features % count != 0 || features / count * rows < kPointsMin || count >= features)
      continue;
    ways.push_back({count == it.a.heads ? "head" : "block of features", features / count});
  }
  if (features >= kPointsMin)
    ways.push_back({it.run.activations ? "token" : "row", features, true});
  // A factor for each feature of a norm is its weight.
  if (rows >= kPointsMin && !is_norm(it.site.role)) ways.push_back({"feature", 1});
  for (const Slices& slices : ways) {
    std::optional<Explanation> found = fit_slices(it, slices);
    if (found && accepted(it, *found)) return found;
  }
  return best;
}

}  // namespace

constinit const Diagnosis diagnoses::scale = {
    .code = "scale",
    .question = "Is B a multiple of A?",
    .explains = "a factor missing, doubled or inverted; a sign; a dequantization scale",
    .examine = examine,
};

}  // namespace tensordiff
