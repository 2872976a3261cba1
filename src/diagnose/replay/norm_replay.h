// A norm, computed again from what goes into it.
//
// Where the residual stream was dumped, a norm is a straight line for each feature of the stream
// with mean 0 and size 1 (LayerNorm) or size 1 (RMSNorm). Where it was not, the norm before it
// still shows the stream: see norm_factors.h. Where the weights of both are given, they need not be
// learnt.

#pragma once

#include <optional>

#include "diagnose/site.h"

namespace tensordiff {

struct NormReplay {
  Matrix made;     // What a's norm makes of b's own inputs.
  Matrix b;        // What b made of them, for the same tokens.
  double own = 1;  // What a's norm leaves of a.
  // How well the size of its output is known: another epsilon makes something of tokens of another
  // size.
  double size_left = 1e-3;
  double left = 1;     // ‖b − made‖ / ‖b‖
  bool told = true;    // b's output is a norm of its inputs, with whatever weights.
  bool alone = false;  // b normalises what was added to the stream, without the stream.
  Matrix branch_made;  // Where it does: that, with the weights that fit it best.
  double branch_left = 1;
};

// Nothing where the site is no norm, or a's own dumps are not explained by one.
std::optional<NormReplay> replay_norm(const Run& run, const Site& site, const TokenRange& at);

}  // namespace tensordiff
