#include "diagnose/replay/epsilon_fit.h"

#include <algorithm>
#include <cmath>

#include "diagnose/replay/norm_factors.h"
#include "diagnose/replay/norm_lines.h"
#include "diagnose/sample/fit.h"
#include "diagnose/verdict/carried.h"

namespace tensordiff {
namespace {

constexpr uint64_t kTokensMin = 8;  // Three unknowns, from half of the tokens.
constexpr uint64_t kValuesRead = uint64_t{1} << 16;
constexpr int kTurns = 200;
constexpr double kTurnedEnough = 1e-13;  // Change of h in a turn.
// What the norm may leave of its output: a few roundings of input and output.
constexpr double kRoundoffs = 8;
constexpr double kLeftMin = 1e-6;
// Halves of the tokens that give the same number to this share have measured it.
constexpr double kAgree = 0.1;

// What goes into a norm, ready for its weight, and what comes out.
struct NormSide {
  Matrix unit, out;
  std::vector<double> variance;
  std::vector<double> h;
};

NormSide side_of(const Matrix& x, Matrix out, bool centred) {
  NormSide side;
  side.out = std::move(out);
  const Matrix centre = centred ? without_means(x) : x;
  for (uint64_t row = 0; row < x.rows(); ++row) {
    const double size = norm(centre.row(row));
    side.variance.push_back(size * size / static_cast<double>(x.features));
  }
  side.unit = unit_tokens(x, centred);
  side.h.assign(x.rows(), 1);
  return side;
}

Matrix scaled(const NormSide& side) {
  return filled(side.unit,
                [&](uint64_t row, uint64_t i) { return side.h[row] * side.unit.row(row)[i]; });
}

// h of each token, from the lines. Says by how much any changed.
double fit_tokens(const NormLines& lines, NormSide& side) {
  double changed = 0;
  for (uint64_t row = 0; row < side.out.rows(); ++row) {
    double top = 0, bottom = 0;
    for (uint64_t i = 0; i < side.out.features; ++i) {
      const double base = lines.slope[i] * side.unit.row(row)[i];
      top += base * (side.out.row(row)[i] - lines.start[i]);
      bottom += base * base;
    }
    const double h = bottom > 0 ? top / bottom : 0;
    changed = std::max(changed, std::abs(h - side.h[row]));
    side.h[row] = h;
  }
  return changed;
}

double left_by(const NormLines& lines, const NormSide& side) {
  return left_of(on_lines(scaled(side), lines), side.out);
}

// 1 = p · h² + q · h² / v for both sides, with p for both, by least squares in what is relative:
// epsilon = q / p. `parity` leaves out every other token; 2: none.
struct Line {
  double a = 0, b = 0;
};
std::optional<Line> line_of(const NormSide& a, const NormSide& b, uint64_t parity) {
  // Normal equations of three unknowns: p, q_a, q_b.
  double m[3][4] = {};
  for (const int which : {0, 1}) {
    const NormSide& side = which == 0 ? a : b;
    for (uint64_t row = 0; row < side.h.size(); ++row) {
      const double v = side.variance[row], h = side.h[row] * side.h[row];
      if ((parity < 2 && row % 2 != parity) || v <= 0 || h <= 0) continue;
      double x[3] = {h, 0, 0};
      x[1 + which] = h / v;
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) m[i][j] += x[i] * x[j];
        m[i][3] += x[i];
      }
    }
  }
  // Unknowns are brought to one size, so that a pivot tells whether they are known.
  double size[3];
  for (int i = 0; i < 3; ++i) size[i] = std::sqrt(m[i][i]);
  for (int i = 0; i < 3; ++i) {
    if (!(size[i] > 0)) return std::nullopt;
    for (int j = 0; j < 3; ++j) m[i][j] /= size[i] * size[j];
    m[i][3] /= size[i];
  }
  constexpr double kPivotMin = 1e-14;
  for (int i = 0; i < 3; ++i) {
    if (!(m[i][i] > kPivotMin)) return std::nullopt;
    for (int j = i + 1; j < 3; ++j) {
      const double factor = m[j][i] / m[i][i];
      for (int k = i; k < 4; ++k) m[j][k] -= factor * m[i][k];
    }
  }
  double x[3];
  for (int i = 2; i >= 0; --i) {
    x[i] = m[i][3];
    for (int k = i + 1; k < 3; ++k) x[i] -= m[i][k] * x[k];
    x[i] /= m[i][i];
  }
  const double p = x[0] / size[0];
  if (!(p > 0)) return std::nullopt;
  return Line{x[1] / size[1] / p, x[2] / size[2] / p};
}

std::optional<double> agreed(double all, double even, double odd) {
  const bool same = near(even, odd, kAgree) && near(all, even, kAgree) && near(all, odd, kAgree);
  return all > 0 && same ? std::optional(all) : std::nullopt;
}

// What a way of computing the norm leaves, and the epsilons it gives.
struct Fitted {
  double left = 1;
  Epsilons epsilons;
};

Fitted fitted(const Matrix (&x)[2], const Matrix (&out)[2], bool centred) {
  NormSide a = side_of(x[0], out[0], centred), b = side_of(x[1], out[1], centred);
  NormLines lines = lines_between(a.unit, a.out, centred);
  for (int turn = 0; turn < kTurns; ++turn) {
    if (fit_tokens(lines, a) < kTurnedEnough) break;
    lines = lines_between(scaled(a), a.out, centred);
  }
  fit_tokens(lines, b);
  Fitted result{std::max(left_by(lines, a), left_by(lines, b)), {}};
  const auto all = line_of(a, b, 2), even = line_of(a, b, 0), odd = line_of(a, b, 1);
  if (!all || !even || !odd) return result;
  result.epsilons = {agreed(all->a, even->a, odd->a), agreed(all->b, even->b, odd->b)};
  return result;
}

// The sum of some inputs of a norm, on one side.
std::optional<Matrix> sum_of(const Case& it, const std::vector<std::size_t>& inputs,
                             View AlignedPair::*side, const TokenRange& at) {
  std::optional<Matrix> sum;
  for (const std::size_t input : inputs) {
    std::optional<Matrix> read = read_side(it.run, &it.run.sites[input], side, at);
    if (!read || (sum && !same_form(*sum, *read))) return std::nullopt;
    if (!sum)
      sum = std::move(read);
    else
      for (std::size_t i = 0; i < sum->values.size(); ++i) sum->values[i] += read->values[i];
  }
  return sum;
}

}  // namespace

Epsilons fit_epsilons(const Case& it) {
  const TokenRange at{it.a.first_token,
                      std::min(it.a.tokens, tokens_held(it.run, it.site, kValuesRead))};
  std::vector<std::vector<std::size_t>> ways;
  for (const std::size_t input : it.site.inputs) ways.push_back({input});
  if (it.site.inputs.size() > 1) ways.push_back(it.site.inputs);
  const double most = std::max(kLeftMin, kRoundoffs * it.site.roundoff);
  const auto out_a = read_side(it.run, &it.site, &AlignedPair::a, at);
  const auto out_b = read_side(it.run, &it.site, &AlignedPair::b, at);
  if (!out_a || !out_b || out_a->rows() < kTokensMin) return {};
  Fitted best;
  for (const std::vector<std::size_t>& way : ways) {
    const auto x_a = sum_of(it, way, &AlignedPair::a, at);
    const auto x_b = sum_of(it, way, &AlignedPair::b, at);
    if (!x_a || !x_b || !same_form(*x_a, *out_a) || !same_form(*x_b, *out_b)) continue;
    for (const bool centred : {false, true}) {
      const Fitted found = fitted({*x_a, *x_b}, {*out_a, *out_b}, centred);
      if (found.left < best.left) best = found;
    }
  }
  if (best.left > most) return {};
  // A is known from the configuration more surely than from here.
  if (it.run.facts.norm_epsilon) best.epsilons.a = it.run.facts.norm_epsilon;
  return best.epsilons;
}

}  // namespace tensordiff
