// The tokens of a dump: which row of which pass is which token of which sequence.

#pragma once

#include <map>
#include <vector>

#include "dumps/layout.h"

namespace tensordiff {

// A row of the tensors of one pass.
struct TokenRow {
  int32_t pass = 0;
  uint64_t row = 0;
};

struct RunTokens {
  std::vector<Token> tokens;                       // Sequence by sequence, by position.
  std::vector<TokenRow> rows;                      // Where each of them stands.
  std::map<int32_t, uint64_t> tokens_of, rows_of;  // By pass: those told, and rows of tensors.
};

// What one pass tells of its tokens; lists that were not dumped are empty.
struct PassFacts {
  std::vector<int64_t> ids, positions, lengths;
  uint64_t rows = 0;  // Of its tensors, where nothing else tells how many tokens there are.
};

// Chunks of a prompt and single tokens of decoding continue the sequence whose length they start
// at; of several, the one that was continued last.
RunTokens tokens_of(const std::map<int32_t, PassFacts>& passes);

// Reads the facts of a dump.
std::map<int32_t, PassFacts> facts_of(const Catalog& catalog, const Dump& dump);

}  // namespace tensordiff
