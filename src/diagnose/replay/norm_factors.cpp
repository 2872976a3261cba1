#include "diagnose/replay/norm_factors.h"

#include <array>
#include <cmath>

#include "diagnose/replay/norm_lines.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kFeaturesTold = 128;  // Enough to find the factors of the tokens.
constexpr int kTurns = 100;
constexpr double kSettled = 0.98;  // A turn that leaves more than this of it is one of the last.
constexpr double kRidge = 1e-10;   // Where tokens do not tell two unknowns apart, both are small.
constexpr std::size_t kUnknowns = 4;

using Unknowns = std::array<double, kUnknowns>;

// The least-squares answer to sums of products.
struct Equations {
  std::array<Unknowns, kUnknowns> left = {};
  Unknowns right = {};

  void add(const Unknowns& terms, double value) {
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      for (std::size_t k = 0; k < kUnknowns; ++k) left[i][k] += terms[i] * terms[k];
      right[i] += terms[i] * value;
    }
  }

  // By elimination: with the ridge no pivot is 0, unless all terms are.
  Unknowns solved() {
    double trace = 0;
    for (std::size_t i = 0; i < kUnknowns; ++i) trace += left[i][i];
    if (!(trace > 0)) return {};
    for (std::size_t i = 0; i < kUnknowns; ++i) left[i][i] += kRidge * trace;
    for (std::size_t i = 0; i < kUnknowns; ++i) {
      for (std::size_t k = i + 1; k < kUnknowns; ++k) {
        const double factor = left[k][i] / left[i][i];
        for (std::size_t j = i; j < kUnknowns; ++j) left[k][j] -= factor * left[i][j];
        right[k] -= factor * right[i];
      }
    }
    Unknowns answer = {};
    for (std::size_t i = kUnknowns; i-- > 0;) {
      double rest = right[i];
      for (std::size_t j = i + 1; j < kUnknowns; ++j) rest -= left[i][j] * answer[j];
      answer[i] = rest / left[i][i];
    }
    return answer;
  }
};

void fit_centred_feature(const NormParts& parts, uint64_t i, NormFactors& fit) {
  Equations equations;
  for (uint64_t row = 0; row < parts.out.rows(); ++row) {
    const double r = fit.of_stream[row], s = fit.of_branch[row];
    const double n = parts.stream.row(row)[i], o = parts.branch.row(row)[i];
    const double value = parts.out.row(row)[i];
    if (std::isfinite(n + o + value)) equations.add({r * n, s * o, r, 1}, value);
  }
  const Unknowns answer = equations.solved();
  fit.w_stream[i] = answer[0];
  fit.w_branch[i] = answer[1];
  fit.shift[i] = answer[2];
  fit.start[i] = answer[3];
}

void fit_features(const NormParts& parts, NormFactors& fit) {
  for (std::vector<double>* each : {&fit.w_stream, &fit.w_branch, &fit.shift, &fit.start})
    each->assign(parts.out.features, 0);
  if (fit.centred) {
    for (uint64_t i = 0; i < parts.out.features; ++i) fit_centred_feature(parts, i, fit);
    return;
  }
  // Row after row, as they lie.
  std::vector<LeastSquares> sums(parts.out.features);
  for (uint64_t row = 0; row < parts.out.rows(); ++row) {
    const double of_stream = fit.of_stream[row], of_branch = fit.of_branch[row];
    const double* stream = parts.stream.row(row).data();
    const double* branch = parts.branch.row(row).data();
    const double* out = parts.out.row(row).data();
    for (uint64_t i = 0; i < parts.out.features; ++i)
      sums[i].add(of_stream * stream[i], of_branch * branch[i], out[i]);
  }
  for (uint64_t i = 0; i < parts.out.features; ++i) sums[i].solve(fit.w_stream[i], fit.w_branch[i]);
}

// Every so many features.
Matrix some_features(const Matrix& matrix) {
  const uint64_t step = std::max<uint64_t>(1, matrix.features / kFeaturesTold);
  Matrix result = matrix;
  result.features = (matrix.features + step - 1) / step;
  result.values.clear();
  for (uint64_t row = 0; row < matrix.rows(); ++row)
    for (uint64_t i = 0; i < matrix.features; i += step)
      result.values.push_back(matrix.row(row)[i]);
  return result;
}

}  // namespace

double left_of(const Matrix& made, const Matrix& out) {
  const double size = norm(out.values);
  return size > 0 ? distance(made.values, out.values) / size : 1;
}

void fit_tokens(const NormParts& parts, NormFactors& fit) {
  for (uint64_t row = 0; row < parts.out.rows(); ++row) {
    LeastSquares sums;
    for (uint64_t i = 0; i < parts.out.features; ++i)
      sums.add(fit.w_stream[i] * parts.stream.row(row)[i] + fit.shift[i],
               fit.w_branch[i] * parts.branch.row(row)[i], parts.out.row(row)[i] - fit.start[i]);
    sums.solve(fit.of_stream[row], fit.of_branch[row]);
  }
}

Matrix branch_part(const NormParts& parts, const NormFactors& fit) {
  return filled(parts.out, [&](uint64_t row, uint64_t i) {
    return fit.of_branch[row] * fit.w_branch[i] * parts.branch.row(row)[i] + fit.start[i];
  });
}

Matrix made_by(const NormParts& parts, const NormFactors& fit) {
  Matrix made = branch_part(parts, fit);
  for (uint64_t row = 0; row < made.rows(); ++row)
    for (uint64_t i = 0; i < made.features; ++i)
      made.row(row)[i] +=
          fit.of_stream[row] * (fit.w_stream[i] * parts.stream.row(row)[i] + fit.shift[i]);
  return made;
}

double size_of(std::span<const double> token, const NormFactors& fit) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < token.size(); ++i) {
    const double value = (token[i] - fit.start[i]) / fit.w_branch[i];
    if (std::isfinite(value)) sum += value * value, count += 1;
  }
  return count > 0 ? std::sqrt(sum / count) : 0;
}

NormFactors factors_of(const NormParts& whole, bool centred, double exact) {
  const NormParts few = {some_features(whole.stream), some_features(whole.branch),
                         some_features(whole.out)};
  NormFactors fit;
  fit.centred = centred;
  fit.of_stream.assign(few.out.rows(), 1);
  fit.of_branch.assign(few.out.rows(), 1);
  int idle = 0;
  for (int turn = 0; turn < kTurns && idle < 3 && fit.left > exact; ++turn) {
    fit_features(few, fit);
    fit_tokens(few, fit);
    const double left = left_of(made_by(few, fit), few.out);
    idle = left > kSettled * fit.left ? idle + 1 : 0;
    fit.left = left;
  }
  fit_features(whole, fit);
  fit.left = left_of(made_by(whole, fit), whole.out);
  return fit;
}

}  // namespace tensordiff
