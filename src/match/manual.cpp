// Pairs what the user said belongs together (--pairs), whatever the names.

#include "match/by_name.h"

namespace tensordiff {
namespace {

Result<Proposal> propose(const MatchInput& input) {
  return pairs_by_name(input, input.options.pairs);
}

}  // namespace

constinit const Matcher matchers::manual = {
    .name = "manual",
    .summary = "given by the user with --pairs",
    .propose = propose,
};

}  // namespace tensordiff
