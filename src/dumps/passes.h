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

// The tokens of a sequence from one position on, up to the next such part, were computed in one
// pass: a chunk of a prompt, or a step of decoding.
struct PassPart {
  int32_t sequence = 0, position = 0;
  int32_t pass = 0;
  bool placed = true;  // Sequence and position were told, and not only the pass.
};
using PassParts = std::vector<PassPart>;

// Keeps them with the dump, as a document without a path, which no file is; and finds them there.
void keep_passes(const PassParts& parts, Catalog& catalog);
PassParts passes_in(const Catalog& catalog);

struct RunTokens {
  std::vector<Token> tokens;                       // Sequence by sequence, by position.
  std::vector<TokenRow> rows;                      // Where each of them stands.
  std::map<int32_t, uint64_t> tokens_of, rows_of;  // By pass: those told, and rows of tensors.
  PassParts parts;                                 // Sequence by sequence, by position.
};

// What one pass tells of its tokens; lists that were not dumped are empty.
struct PassFacts {
  std::vector<int64_t> ids, positions, lengths;
  uint64_t rows = 0;      // Of its tensors, where nothing else tells how many tokens there are.
  TokenShare share = {};  // Of the tokens of its step.
};

// Processes that share the tokens of a step each have the positions of their own, or those of all:
// then the first of n has the first and the last of 2n pieces, the second those next to them, and
// so on, so that all have as much to attend to ("zigzag").
//
// Chunks of a prompt and single tokens of decoding continue the sequence whose length they start
// at; of several, the one that was continued last.
RunTokens tokens_of(const std::map<int32_t, PassFacts>& passes);

// Leaves a pass the ids and positions of its own share, where it has those of all. Its rows are
// known.
void take_share(PassFacts& facts);

// Reads the facts of a dump.
std::map<int32_t, PassFacts> facts_of(const Catalog& catalog, const Dump& dump);

}  // namespace tensordiff
