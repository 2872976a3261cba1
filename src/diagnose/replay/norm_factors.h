// A norm as a sum of the norm before it and of what was added to the stream since.
//
// With n that norm, o what was added, and r_t, s_t unknown for each token, v_i, w_i for each
// feature, an RMSNorm is
//
//   norm_ti = r_t · v_i · n_ti + s_t · w_i · o_ti.
//
// A LayerNorm takes away what o has in common, and has two more unknowns for each feature, the
// biases of both norms:
//
//   norm_ti = r_t · (v_i · n_ti + c_i) + s_t · w_i · (o_ti − mean_t(o)) + d_i.
//
// Both have far more values than unknowns. They are found by turns: given those of the tokens,
// those of the features are a least-squares answer, and the other way round.

#pragma once

#include <vector>

#include "diagnose/sample/matrix.h"

namespace tensordiff {

// What a norm is made from and gives, on one side.
struct NormParts {
  Matrix stream, branch, out;
};

struct NormFactors {
  bool centred = false;
  std::vector<double> of_stream, of_branch;  // For each token: r, s.
  std::vector<double> w_stream, w_branch;    // For each feature: v, w.
  std::vector<double> shift, start;          // And where it is centred: c, d.
  double left = 1;
};

// ‖out − made‖ / ‖out‖
double left_of(const Matrix& made, const Matrix& out);

// The factors that fit best; those of the tokens are as good as they get at `exact`.
NormFactors factors_of(const NormParts& parts, bool centred, double exact);

// Those of the tokens, where those of the features are known.
void fit_tokens(const NormParts& parts, NormFactors& fit);

Matrix made_by(const NormParts& parts, const NormFactors& fit);

// What it is without the stream.
Matrix branch_part(const NormParts& parts, const NormFactors& fit);

// What a token of the output is before the weight and bias of its norm: its root mean square.
double size_of(std::span<const double> token, const NormFactors& fit);

}  // namespace tensordiff
