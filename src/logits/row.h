// Two distributions over the words of a vocabulary, and how far apart they are.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace tensordiff {

// Turns logits into log-probabilities, in place. A row without a finite value is not a
// distribution.
bool to_log_probs(std::span<double> row);

// Σ p (log p − log q), never negative; infinite where q rules out what p allows.
double divergence(std::span<const double> log_p, std::span<const double> log_q);

inline constexpr std::size_t kTops[] = {5, 10};  // Of how many words the overlap is told.

// What one position says of both sides.
struct PositionDiff {
  bool usable = false;  // Both sides are distributions, and no mask leaves it out.
  double kl = 0;        // Of B from A: Σ p_A (log p_A − log p_B).
  bool same_top = false;
  int64_t top_a = -1, top_b = -1;
  double margin_a = 0, margin_b = 0;  // Between its most likely two words, as log-probabilities.
  double overlap[2] = {0, 0};         // Share of the most likely kTops words that both have.
  // Of the token that comes next, where it is told, else of A's most likely word.
  double log_prob_a = 0, log_prob_b = 0;
  bool told = false;  // Whether that token is told.
};

// `a` and `b` are log-probabilities of as many words.
PositionDiff compare_position(std::span<const double> a, std::span<const double> b,
                              std::optional<int64_t> next);

}  // namespace tensordiff
