// Attention, replayed in float64 from the dumped queries, keys and values.
//
// The form that a computes (how many heads, which scale, which mask) is learnt from a's own dumps.
// The same form on b's inputs must then give b's output; where it does not, forms with one mistake
// are tried. So the inputs of b need not agree with those of a.

#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/replay/expected.h"
#include "diagnose/replay/rotation.h"

namespace tensordiff {

struct AttentionForm {
  uint64_t heads = 1;
  uint64_t kv_heads = 1;
  double scale = 1;
  bool masked = true;    // A token sees what came before it, up to itself …
  int64_t diagonal = 0;  // … or so many tokens further.
  uint64_t window = 0;   // Only the last so many tokens; 0: all.
  double cap = 0;        // Scores s become cap · tanh(s / cap); 0: they stay as they are.
  bool tiled = false;    // Head h reads key head h % kv_heads instead of h / (heads / kv_heads).
  bool alibi = false;    // Scores fall with the distance, in each head at its own rate.
  // RoPE, where queries and keys were dumped before it: features of each head that it turns (0:
  // none), their pairing, and the base of the angles.
  uint64_t turned = 0;
  RopePairing pairing = RopePairing::halves;
  double base = 0;
};

// One side's queries, keys and values.
struct AttentionInputs {
  Matrix query, key, value;
};

// Output tokens that are looked at: a few, spread over the sequence, in every sequence.
std::vector<uint64_t> rows_to_replay(const AttentionInputs& in, uint64_t heads);

// ‖out − attention(in)‖ / ‖out‖ over these rows.
double replay_error(const AttentionInputs& in, const AttentionForm& form, const Matrix& out,
                    const std::vector<uint64_t>& rows);

// How many tokens the last one of the first sequence sees, as its output tells: the window that
// brings a form with a mask nearest to it. 0: all of them.
uint64_t nearest_window(const AttentionInputs& in, AttentionForm form, const Matrix& out);

// Some of the tokens and heads of one side, to compute again.
struct AttentionProbe {
  AttentionInputs in;  // After RoPE.
  Matrix out;
  std::vector<uint64_t> rows;
  uint64_t heads = 1, kv_heads = 1;  // That are here.

  double error(AttentionForm form) const;  // Of the rows.
};

struct AttentionStep {
  AttentionForm form;  // That a computes.
  // What b computes from: the first tokens with all heads and, where there are more tokens than
  // can be held of all heads, all tokens with those that share the first key head.
  std::vector<AttentionProbe> b;
  double before = 0;  // What a's form leaves of b.
  double floor = 0;   // What it leaves of a, with room for noise.

  bool same() const { return before <= floor; }   // b computes what a computes.
  double error(const AttentionForm& form) const;  // The largest of all probes.
  const AttentionProbe& longest() const { return b.back(); }
};

// Nothing where the site is no attention, its inputs are not there, a's form is not found, or b
// computes what a computes.
std::shared_ptr<const AttentionStep> wrong_attention(const Case& it);

// Whether b's output is what a's form of attention makes of b's own inputs: then no error was made
// here, however far it is from a's. Nothing where that cannot be told.
std::optional<bool> attention_agrees(const Run& run, const Site& site);

// What a's form makes of b's own inputs, for the first tokens.
std::optional<Expected> attended(const Run& run, const Site& site);

// The explanation that b computes this form instead.
Explanation explain_form(const Case& it, const AttentionForm& form, std::string text);

}  // namespace tensordiff
