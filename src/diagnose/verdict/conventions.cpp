#include "diagnose/verdict/conventions.h"

#include <algorithm>
#include <limits>

#include "diagnose/graph/roles.h"
#include "diagnose/limits.h"
#include "diagnose/sample/first_token.h"
#include "diagnose/verdict/judge.h"

namespace tensordiff {
namespace {

// A convention is undone by what reads it: the error there is that before, grown as noise grows.
constexpr double kGrowthBehind = 4;
constexpr double kShareBehind = 0.1;  // Of the error of the layout.
// Sums of narrow types are rounded once at the end; those of float32 at every step.
constexpr double kRoundoffsBehind = 1;
constexpr double kRoundoffsBehindWide = 16;
// At least: another layout is farther off than what comes in.
constexpr double kGrowthOfLayout = 1.2;

// Whether a step agrees to the bit in earlier layers, and so does all before the first difference:
// then it does here, too, wherever nothing but a layout went before.
bool exact_so_far(const Run& run, const Site& site, const Site& reader) {
  bool seen = false;
  for (const Site& other : run.sites) {
    if (&other == &site) break;
    if (other.compared() && other.comparison.diff.equal != other.comparison.diff.compared)
      return false;
    seen = seen || (other.role == reader.role && other.compared());
  }
  return seen;
}

// How far what reads a step is off. Where that has a mistake of its own, the first token tells: it
// sees itself alone, so that attention gives its value, whatever masks, RoPE and scales do. It
// tells of fused projections that moved by more than queries and keys, which are two thirds. Of
// these, later tokens tell that are right: those in front of what a mask hides.
double error_behind(const Site& site, const Site& reader) {
  if (!reader.bug()) return reader.error;
  const Diff& diff = site.comparison.diff;
  const bool moves_values = 3 * diff.exceeding > 2 * diff.compared;
  const double right = error_of_best_tokens(reader);
  return site.role == Role::fused_qkv && moves_values ? std::min(right, first_token_error(reader))
                                                      : right;
}

}  // namespace

const Site* reader_of(const Run& run, const Site& site) {
  if (site.role >= Role::query && site.role <= Role::value_final) {
    const Site* heads = find_role(run, site, Role::attention_heads);
    return heads ? heads : find_role(run, site, Role::attention_output);
  }
  if (site.role != Role::gate && site.role != Role::up) return nullptr;
  const Site* activation = find_role(run, site, Role::activation);
  const Site* output = find_role(run, site, Role::mlp_output);
  // An activation may be that of the gate alone; then the output tells of the other.
  return activation && !(output && output->bug()) ? activation : output;
}

bool gone_behind(const Run& run, const Site& site) {
  const Site* before =
      find_role(run, site, site.role >= Role::gate ? Role::mlp_norm : Role::attention_norm);
  const Site* reader = reader_of(run, site);
  if (!reader) return false;
  const double behind = error_behind(site, *reader);
  if (before && site.error < kGrowthOfLayout * before->error) return false;
  if (behind > 0 && exact_so_far(run, site, *reader)) return false;
  const double rounded =
      reader->roundoff < limits::kNarrow ? kRoundoffsBehindWide : kRoundoffsBehind;
  const double level = (before ? before->error : 0) + rounded * reader->roundoff;
  return behind <= std::min(kGrowthBehind * level, kShareBehind * site.error);
}

}  // namespace tensordiff
