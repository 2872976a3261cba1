// How far apart two runs are in what they predict, over all positions that both have.

#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "logits/row.h"
#include "logits/sequences.h"

namespace tensordiff {

// Mean exp |log p_B − log p_A| above which two runs are not the same model: the bound that trainers
// use between rollout and training (NeMo-RL's token_mult_prob_error).
inline constexpr double kRatioErrorMax = 1.05;

// A mean over positions, with its standard error.
struct Estimate {
  double mean = 0;
  double error = 0;
};

// The median and the tails of something, at kShares.
inline constexpr double kShares[] = {0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999};
using Percentiles = std::array<double, std::size(kShares)>;

// Where both sides first choose another token.
struct OtherToken {
  std::size_t sequence = 0;
  uint64_t position = 0;
  int64_t a = 0, b = 0;               // Their most likely tokens.
  double margin_a = 0, margin_b = 0;  // Of each over the second, as log-probabilities.
};

// One position, for a plot and for whoever looks for the worst.
struct PositionPoint {
  std::size_t sequence = 0;
  uint64_t position = 0;
  double kl = 0;       // Of the distributions, or its estimate from one log-probability.
  double delta_p = 0;  // What B gives the token more than A.
};

struct LogitsDiff {
  uint64_t positions = 0;      // Compared.
  uint64_t unusable = 0;       // NaN, or no finite value, on one side.
  uint64_t vocabulary = 0;     // 0: only log-probabilities of single tokens are there.
  bool equal = true;           // To the bit, as distributions.
  std::optional<Estimate> kl;  // Nothing where no position is comparable.
  Percentiles kl_shares = {};
  double kl_max = 0;
  Percentiles delta_p = {};  // p_B − p_A of the next token, or of A's most likely one.
  Estimate delta_p_mean;
  double delta_p_rms = 0;
  bool told = false;  // The next tokens are told: perplexity has a meaning.
  std::optional<double> perplexity_a, perplexity_b;
  std::optional<Estimate> perplexity_ratio;      // B over A.
  std::optional<Estimate> same_top;              // Nothing without distributions or alternatives.
  std::optional<std::array<double, 2>> overlap;  // Of the kTops most likely words.
  double ratio_error = 1;            // Mean of exp |log p_B − log p_A|: 1 where they agree.
  std::vector<double> ratio_errors;  // The same for each sequence.
  std::optional<OtherToken> first_other;
  std::vector<PositionPoint> points;  // In order.
};

// Sequences of one run with those of another that have as many positions, one by one.
struct SequencePair {
  TokenSequence a, b;
};

Result<LogitsDiff> measure(const std::vector<SequencePair>& pairs);

// The log-probabilities of one position; nothing where it is not a distribution.
std::optional<std::vector<double>> log_probs_at(const Reader& logits, uint64_t position);

}  // namespace tensordiff
