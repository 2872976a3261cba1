// A second mistake behind a first one.
//
// What goes into a step differs already, so that its output does, too. Where the step can be
// computed again from b's own inputs, that tells. Elsewhere an error of its own shows where one
// transform brings the difference down to what came in, though it explains nothing of what came in;
// or where every token is farther off than what came in accounts for.

#pragma once

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

// An error on top of a carried one must stand out of it so much to be told from it.
inline constexpr double kStandsOut = 3;

// Whether anything speaks for an error of its own: the output is farther off than what comes in, or
// of another size.
bool worth_a_look(const Run& run, const Site& site);

// Whether two sides hold the same values, as far as statistics tell.
bool same_statistics(const Stats& x, const Stats& y);

// An earlier step, of another layer, of which b seems to hold the same as of this one, and a does
// not: their statistics are the same.
const Site* held_before(const Run& run, const Site& site);

// The error that comes into a step, through the residual stream as well.
double carried_into(const Run& run, const Site& site);

// What a step may make of what comes in. Beyond it the step made an error of its own, whatever
// came.
double most_carried(const Run& run, const Site& site);

// The values of a pair without what its replays need; nothing where they cannot be read.
std::optional<Case> values_of(const Run& run, const Site& site);

// Some tokens of one side of a step; nothing where there is no such step or it cannot be read.
std::optional<Matrix> read_side(const Run& run, const Site* site, View AlignedPair::*side,
                                const TokenRange& at);

// How many tokens of each sequence so many values are.
uint64_t tokens_held(const Run& run, const Site& site, uint64_t values);

// Which token has the largest difference.
uint64_t worst_token(const Run& run, const Site& site);

// Where to read so many tokens of a tensor whose start does not show the difference: around the
// largest one, where that lies beyond it.
uint64_t window_of(const Run& run, const Site& site, uint64_t tokens);

// Whether the first tokens, which replays are computed from, have the error of the whole tensor.
bool shown_at_start(const Run& run, const Site& site);

// A step at a glance: what explains nothing of a part need not be tried on the whole.
class Glance {
 public:
  Glance(const Run& run, const Site& site);
  bool promises(const Diagnosis& diagnosis) const;
  const std::optional<Case>& tokens() const { return tokens_; }

 private:
  bool is_ruled_out(const Diagnosis& diagnosis) const;

  std::optional<Case> fewest_;    // Of wide ones, for orders of features: these take long to find.
  std::optional<Case> tokens_;    // A few tokens, with all features.
  std::optional<Case> features_;  // A few features, of all tokens.
};

// What an explanation may leave to be accepted, in the measure of Explanation::after.
double most_left(const Case& it, const Explanation& explanation);

// Whether an explanation of a step whose inputs differ tells of a mistake made there.
bool made_there(const Case& it, const Diagnosis& diagnosis, const Explanation& explanation);

// Tokens that b leaves empty, and that neither a nor what b computes them from does. No error that
// comes in does that.
std::vector<uint64_t> blank_tokens(const Run& run, const Site& site);

// Tokens that are off by far more than what comes in, and more than at steps of this kind. None
// where no step made them so.
struct Outgrown {
  std::vector<uint64_t> tokens;  // Of all sequences.
  bool all = false;              // Nearly all of them are.
};
Outgrown outgrown_tokens(const Run& run, const Site& site);

// That the difference which did not come in is confined to these tokens.
Explanation region_of(const Case& it, const std::vector<uint64_t>& tokens);

}  // namespace tensordiff
