// Steps that multiply by weights, computed again in float64 from the dumped inputs (--weights).
//
// A few tokens and a few output features are enough to tell one weight from another. The form that
// a computes is learnt first, on a's own dumps: how the weight is stored, whether there is a bias,
// which activation. A mistake is then a form that turns b's own input into b's output.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/operators/weights.h"
#include "diagnose/replay/expected.h"

namespace tensordiff {

// What a step was computed from and gave, on the rows and features that are looked at.
struct Samples {
  std::vector<uint64_t> rows, features;
  Matrix in_a, in_b;    // These rows of the input, all features.
  Matrix out_a, out_b;  // These rows and features of the output.
};

// Nothing where the input is not in the dumps.
std::optional<Samples> samples_of(const Case& it, const Site& input, double work_per_row);

// ‖out − made‖ / ‖out‖
double misfit(const Matrix& made, const Matrix& out);

// in · wᵀ for some rows of w [out, in], between two input features. Empty when it cannot be read.
Matrix product(const Matrix& in, const View& weight, const std::vector<uint64_t>& features,
               uint64_t begin, uint64_t end);

// What a's form leaves of b and what a candidate leaves, as an explanation; settled where the
// candidate explains b down to the noise and a's form does not.
struct Replayed {
  double own = 1;     // What a's form leaves of a.
  double before = 1;  // What a's form leaves of b.
};
double noise_of(const Case& it, const Replayed& replayed);
Explanation explain_replay(const Case& it, const Samples& samples, const Replayed& replayed,
                           const Matrix& made, std::string text);

// What a's form makes of the first tokens of b's own input, with all features, where it is not what
// b holds. `make` computes these rows.
using MakeRows = std::function<Matrix(const Matrix& in, const std::vector<uint64_t>& features)>;
std::optional<Expected> expect_replay(const Case& it, const Site& input, const Replayed& replayed,
                                      double work_per_row, const MakeRows& make);

// Which projection a step is, for those that are one.
std::optional<Projection> projection_of(const Run& run, const Site& site);

// The projection of a step with its form, and what b makes of it.
std::optional<Explanation> replay_projection(const Case& it);

// The sum over all but one rank's part is missing.
std::optional<Explanation> replay_partial_sum(const Case& it);

// An MLP as a whole, from its norm to its output.
std::optional<Explanation> replay_mlp(const Case& it);

// A step as expect_replay tells it; nothing where a's form is not known.
std::optional<Expected> expect_projection(const Case& it);
std::optional<Expected> expect_mlp(const Case& it);

// What b does otherwise with the given weights, from its own inputs; nothing where they are not
// given, or no mistake explains it.
std::optional<Explanation> replay_weights(const Case& it);

}  // namespace tensordiff
