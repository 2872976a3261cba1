// A norm, computed again from what goes into it.
//
// Where the residual stream was dumped, a norm is a straight line for each feature of the stream
// with mean 0 and size 1 (LayerNorm) or size 1 (RMSNorm). Where it was not, the norm before it
// still shows the stream, up to a factor for each token and one for each feature. With n that norm,
// o what was added to the stream since, and r_t, s_t unknown for each token, v_i, w_i for each
// feature,
//
//   norm_ti = r_t · v_i · n_ti + s_t · w_i · o_ti,
//
// which has far more values than unknowns. They are found by turns: given those of the tokens,
// those of the features are a least-squares answer, and the other way round.

#pragma once

#include <optional>

#include "diagnose/site.h"

namespace tensordiff {

struct NormReplay {
  Matrix made;         // What a's norm makes of b's own inputs.
  Matrix b;            // What b made of them, for the same tokens.
  double own = 1;      // What a's norm leaves of a.
  double left = 1;     // ‖b − made‖ / ‖b‖
  bool told = true;    // b's output is a norm of its inputs, with whatever weights.
  bool alone = false;  // b normalises what was added to the stream, without the stream.
  Matrix branch_made;  // Where it does: that, with the weights that fit it best.
  double branch_left = 1;
};

// Nothing where the site is no norm, or a's own dumps are not explained by one.
std::optional<NormReplay> replay_norm(const Run& run, const Site& site);

}  // namespace tensordiff
