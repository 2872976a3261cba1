// What a run of a language model says of its tokens: logits or log-probabilities by position.
//
// Found in a Catalog by names and shapes: [positions, words], also of several sequences; lists of
// log-probabilities with the ids of their tokens; the padded batches of trainers with their masks.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

struct Alternative {
  int64_t id = 0;
  double log_prob = 0;
};

struct TokenSequence {
  std::string name;        // Of the tensor, with the number of the sequence where it has more.
  std::size_t tensor = 0;  // In the catalog.
  std::optional<View>
      logits;                // [positions, words], up to a constant for each position; may be none.
  std::vector<int64_t> ids;  // The token that each position predicts; empty: not told.
  std::vector<double> log_probs = {};  // Of these tokens, where there are no logits.
  std::vector<std::vector<Alternative>> alternatives = {};  // Beside each log_prob; may be empty.
  std::vector<bool> is_none = {};  // Positions that a mask leaves out; empty: none.

  uint64_t positions() const { return logits ? logits->shape[0] : log_probs.size(); }
};

// All sequences of a run. An error says what was looked for where there is none.
Result<std::vector<TokenSequence>> sequences_of(const Catalog& catalog);

// Whether a tensor holds what else could have come at each position: "sequence_0/top_log_probs".
bool is_alternatives(std::string_view name);

// Whether logits, log-probabilities and what belongs to them are all there is.
bool holds_only_sequences(const Catalog& catalog);

}  // namespace tensordiff
