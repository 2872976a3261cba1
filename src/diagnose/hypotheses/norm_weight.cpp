// The weight of a norm missing, applied twice, or taken as 1 + w: each feature is off by a factor
// of its own.
//
// With n the normalised input, a = w · n + β. Then b = n + β is a missing weight and b − a = n, of
// size 1 in every token, is 1 + w in place of w. A straight line for each feature fits both, far
// better than one factor for all; the size of the tokens tells which it is. The norms that some
// models put on each head before RoPE are learnt with the rotation.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/noise/norms.h"
#include "diagnose/replay/rotation.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokensMin = 6;       // Two parameters for each feature need more points.
constexpr double kUnitTolerance = 0.02;  // How near 1 the size of a normalised token is.
// Factors of their own must leave less than this share of what one factor for all leaves.
constexpr double kClearlyBetter = 0.5;
constexpr double kSizeOff = 0.4;
// How far the weights of heads must be apart: they are learnt to some roundoffs.
constexpr double kWeightOff = 0.02;
constexpr double kWeightRoundoffs = 8;

struct Line {
  double slope = 0, start = 0;
  double mean_x = 0, mean_y = 0, xx = 0;
};

Line line_of(const Case& it, uint64_t feature) {
  const double n = static_cast<double>(it.a.rows());
  Line line;
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    line.mean_x += it.a.row(row)[feature] / n;
    line.mean_y += it.b.row(row)[feature] / n;
  }
  double xy = 0;
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    const double x = it.a.row(row)[feature] - line.mean_x;
    line.xx += x * x;
    xy += x * (it.b.row(row)[feature] - line.mean_y);
  }
  line.slope = line.xx > 0 ? xy / line.xx : 1;
  line.start = line.mean_y - line.slope * line.mean_x;
  return line;
}

Matrix on_lines(const Case& it, const std::vector<Line>& lines) {
  return filled(it.a, [&](uint64_t row, uint64_t i) {
    return lines[i].slope * it.a.row(row)[i] + lines[i].start;
  });
}

// The same with one slope for all features.
std::vector<Line> with_one_slope(std::vector<Line> lines) {
  double sum = 0, all = 0;
  for (const Line& line : lines) sum += line.xx * line.slope, all += line.xx;
  for (Line& line : lines) {
    line.slope = all > 0 ? sum / all : 1;
    line.start = line.mean_y - line.slope * line.mean_x;
  }
  return lines;
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
  if (unit_b && !unit_a) return "B omits the weight of the norm";
  if (unit_a && !unit_b) return "B multiplies by a weight that A does not have";
  if (unit_tokens(more))
    return factor_between(it.a.values, it.b.values) > 1 ? "B multiplies by 1 + w, A by w"
                                                        : "B multiplies by w, A by 1 + w";
  return "each feature is off by a factor of its own: another weight of the norm";
}

std::optional<Explanation> of_tokens(const Case& it) {
  if (!is_norm(it.site.role) || it.a.rows() < kTokensMin) return std::nullopt;
  std::vector<Line> lines;
  double least = INFINITY, most = -INFINITY;
  for (uint64_t i = 0; i < it.a.features; ++i) {
    lines.push_back(line_of(it, i));
    least = std::min(least, lines.back().slope);
    most = std::max(most, lines.back().slope);
  }
  Explanation result = explained_by(it, on_lines(it, lines));
  const double with_one = left_by(it, on_lines(it, with_one_slope(lines)));
  // What comes in blurs the factors, but the size of what a norm gives is all its own.
  const bool other_size = it.carried > 0 && !near(norm(it.b.values) / it.norm_a, 1, kSizeOff);
  if (result.after >= kClearlyBetter * with_one && !other_size) return std::nullopt;
  result.text = fmt::format("{} (factors {} to {})", what_happened(it), human_number(least),
                            human_number(most));
  result.parameters = {{"factor_min", least}, {"factor_max", most}};
  return result;
}

std::optional<Explanation> of_heads(const Case& it) {
  if (!it.rotary || !it.rotary->same_pairing() || !it.rotary->same_size()) return std::nullopt;
  const Rotation &a = it.rotary->a, &b = it.rotary->b;
  if (!a.form.normed && !b.form.normed) return std::nullopt;
  if (!it.rotary->same_norm())
    return explain_rotation(it, b.form.normed ? "B normalizes each head before RoPE and A does not"
                                              : "B omits the norm of each head before RoPE");
  const double apart = distance(a.weight, b.weight) / std::max(norm(a.weight), 1e-30);
  if (apart < std::max(kWeightOff, kWeightRoundoffs * it.site.roundoff)) return std::nullopt;
  const std::vector<double> ones(b.weight.size(), 1);
  const bool left_out = distance(b.weight, ones) / norm(ones) < kWeightOff;
  Explanation result =
      explain_rotation(it, left_out ? "B omits the weight of the norm of each head"
                                    : "the norm of each head has a different weight");
  result.parameters = {{"weight_apart", apart}};
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  std::optional<Explanation> found = of_tokens(it);
  return found ? found : of_heads(it);
}

}  // namespace

constinit const Diagnosis diagnoses::norm_weight = {
    .code = "norm_weight",
    .question = "Does a norm use another weight?",
    .explains =
        "a norm weight left out, applied twice, or taken as 1 + w; a norm of heads left out",
    .examine = examine,
};

}  // namespace tensordiff
