// The weight of a norm missing, or taken as 1 + w: each feature is off by a factor of its own.
//
// With n the normalised input, a = w · n + β. Then b = n + β is a missing weight and b − a = n, of
// size 1 in every token, is 1 + w in place of w. A straight line for each feature fits both; the
// size of the tokens tells which it is.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokensMin = 6;       // Two parameters for each feature need more points.
constexpr double kUnitTolerance = 0.02;  // How near 1 the size of a normalised token is.

struct Line {
  double slope = 0, start = 0;
};

Line line_of(const Case& it, uint64_t feature) {
  const double n = static_cast<double>(it.a.rows());
  double mean_x = 0, mean_y = 0, xx = 0, xy = 0;
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    mean_x += it.a.row(row)[feature] / n;
    mean_y += it.b.row(row)[feature] / n;
  }
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    const double x = it.a.row(row)[feature] - mean_x;
    xx += x * x;
    xy += x * (it.b.row(row)[feature] - mean_y);
  }
  const double slope = xx > 0 ? xy / xx : 1;
  return {slope, mean_y - slope * mean_x};
}

// Whether all tokens have root mean square 1, as what a norm has normalised.
bool unit_tokens(const Matrix& matrix) {
  for (uint64_t row = 0; row < matrix.rows(); ++row) {
    const double size = norm(matrix.row(row)) / std::sqrt(static_cast<double>(matrix.features));
    if (!near(size, 1, kUnitTolerance)) return false;
  }
  return true;
}

std::string what_happened(const Case& it) {
  const Matrix more =
      filled(it.a, [&](uint64_t r, uint64_t i) { return it.b.row(r)[i] - it.a.row(r)[i]; });
  const bool unit_b = unit_tokens(it.b), unit_a = unit_tokens(it.a);
  if (unit_b && !unit_a) return "b leaves the weight of the norm out";
  if (unit_a && !unit_b) return "b multiplies by a weight that a does not have";
  if (unit_tokens(more))
    return factor_between(it.a.values, it.b.values) > 1
               ? "b multiplies by 1 + w where a multiplies by w"
               : "b multiplies by w where a multiplies by 1 + w";
  return "each feature is off by a factor of its own: another weight of the norm";
}

std::optional<Explanation> examine(const Case& it) {
  const Role role = it.site.role;
  const bool is_norm =
      role == Role::attention_norm || role == Role::mlp_norm || role == Role::final_norm;
  if (!is_norm || it.a.rows() < kTokensMin) return std::nullopt;
  std::vector<Line> lines;
  double least = INFINITY, most = -INFINITY;
  for (uint64_t i = 0; i < it.a.features; ++i) {
    lines.push_back(line_of(it, i));
    least = std::min(least, lines.back().slope);
    most = std::max(most, lines.back().slope);
  }
  if (most - least < 10 * it.floor) return std::nullopt;  // One factor for all, or only an offset.
  Explanation result = explained_by(it, filled(it.a, [&](uint64_t row, uint64_t i) {
                                      return lines[i].slope * it.a.row(row)[i] + lines[i].start;
                                    }));
  result.text = fmt::format("{} (factors {} to {})", what_happened(it), human_number(least),
                            human_number(most));
  result.parameters = {{"factor_min", least}, {"factor_max", most}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::norm_weight = {
    .code = "norm_weight",
    .question = "Does a norm use another weight?",
    .explains = "a norm weight left out, applied twice, or taken as 1 + w",
    .examine = examine,
};

}  // namespace tensordiff
