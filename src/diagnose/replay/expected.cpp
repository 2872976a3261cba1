#include "diagnose/replay/expected.h"

#include <algorithm>
#include <cmath>

#include "diagnose/limits.h"
#include "diagnose/noise/norms.h"
#include "diagnose/replay/activation.h"
#include "diagnose/replay/attention.h"
#include "diagnose/replay/linear_replay.h"
#include "diagnose/replay/norm_replay.h"
#include "diagnose/replay/rotation.h"
#include "diagnose/sample/fit.h"
#include "diagnose/verdict/carried.h"

namespace tensordiff {
namespace {

// Of every step behind a mistake, at first: as many tokens as these values are, but at least so
// many.
constexpr uint64_t kValuesRead = uint64_t{1} << 15;
constexpr uint64_t kTokensRead = 16;
constexpr double kOutlier = 2;  // How much farther off than all a token is that is wrong by itself.

double gap_between(const Matrix& made, const Matrix& out) {
  const double size = norm(out.values);
  return size > 0 ? distance(made.values, out.values) / size : 1;
}

// From what a's way leaves of a's own output.
Expected judged(Matrix made, Matrix b, double own, double least) {
  Expected result;
  result.left = gap_between(made, b);
  result.floor = std::max(4 * own, least);
  result.made = std::move(made);
  result.b = std::move(b);
  return result;
}

std::optional<Expected> rotated(const Run& run, const Site& site, const TokenRange& at) {
  auto a = read_side(run, &site, &AlignedPair::a, at),
       b = read_side(run, &site, &AlignedPair::b, at);
  if (!a || !b) return std::nullopt;
  const Role from = site.role == Role::query_final ? Role::query : Role::key;
  const auto in = read_side(run, find_role(run, site, from), &AlignedPair::b, at);
  const auto of_a = learn_rotation_of_a(Case(run, site, std::move(*a), {}));
  if (!of_a || !in || !same_form(*in, *b)) return std::nullopt;
  return judged(rotate(*in, *of_a), std::move(*b), of_a->left,
                std::max(limits::kTurn, limits::kReplayed * site.roundoff));
}

// One side of a step as A makes it of earlier ones, with the size of what was added up.
struct Remade {
  Matrix made, out;
  double added = 0;
};

std::optional<Remade> remade(const Run& run, const Site& site, View AlignedPair::*side,
                             const TokenRange& at, const MadeOf& of) {
  auto out = read_side(run, &site, side, at);
  if (!out) return std::nullopt;
  Remade result{like(*out), std::move(*out)};
  for (const std::size_t term : of.terms) {
    if (run.sites[term].aside) return std::nullopt;
    const auto part = read_side(run, &run.sites[term], side, at);
    if (!part || !same_form(*part, result.out)) return std::nullopt;
    for (std::size_t i = 0; i < part->values.size(); ++i) result.made.values[i] += part->values[i];
    result.added = std::hypot(result.added, norm(part->values));
  }
  if (of.function)
    std::ranges::transform(result.made.values, result.made.values.begin(), of.function->value);
  if (!of.factor) return result;
  const auto factor = read_side(run, &run.sites[*of.factor], side, at);
  if (!factor || !same_form(*factor, result.out)) return std::nullopt;
  for (std::size_t i = 0; i < factor->values.size(); ++i)
    result.made.values[i] *= factor->values[i];
  return result;
}

// What A's way makes of b's, where it makes A's own.
std::optional<Expected> remade(const Run& run, const Site& site, const TokenRange& at,
                               const MadeOf& of) {
  const auto a = remade(run, site, &AlignedPair::a, at, of);
  auto b = a ? remade(run, site, &AlignedPair::b, at, of) : std::nullopt;
  if (!b) return std::nullopt;
  const double own = gap_between(a->made, a->out);
  double roundoff = site.roundoff;
  for (const std::size_t term : of.terms) roundoff = std::max(roundoff, run.sites[term].roundoff);
  // Where terms cancel, their rounding is large next to the sum.
  const double size = norm(b->out.values);
  const double grown = size > 0 && !of.factor ? std::max(1.0, b->added / size) : 1;
  const double noise = of.function ? std::max(limits::kReplayed * roundoff, activation_limit(site))
                                   : limits::kReplayed * roundoff * grown;
  if (own > noise) return std::nullopt;
  return judged(std::move(b->made), std::move(b->out), own, noise);
}

std::optional<Expected> summed(const Run& run, const Site& site, const TokenRange& at,
                               const std::vector<const Site*>& terms) {
  MadeOf of;
  for (const Site* term : terms) {
    if (!term) return std::nullopt;
    of.terms.push_back(static_cast<std::size_t>(term - run.sites.data()));
  }
  return remade(run, site, at, of);
}

std::optional<Expected> stream_summed(const Run& run, const Site& site, const TokenRange& at) {
  Site before;
  before.block = site.block ? std::optional(*site.block - 1) : std::nullopt;
  return summed(
      run, site, at,
      {find_role(run, before, Role::layer_output), find_role(run, site, Role::attention_output),
       find_role(run, site, Role::mlp_output)});
}

std::optional<Expected> activated(const Run& run, const Site& site, const TokenRange& at) {
  const ActivationFunction* function = function_of(run, site, &AlignedPair::a);
  const auto in = read_side(run, activation_input(run, site), &AlignedPair::b, at);
  auto b = read_side(run, &site, &AlignedPair::b, at);
  if (!function || !in || !b || !same_form(*in, *b)) return std::nullopt;
  Matrix made = *in;
  std::ranges::transform(made.values, made.values.begin(), function->value);
  return judged(std::move(made), std::move(*b), 0, activation_limit(site));
}

std::optional<Expected> normalised(const Run& run, const Site& site, const TokenRange& at) {
  std::optional<NormReplay> norm = replay_norm(run, site, at);
  if (!norm) return std::nullopt;
  Expected result = judged(std::move(norm->made), std::move(norm->b), norm->own,
                           std::max(norm->size_left, limits::kReplayed * site.roundoff));
  if (norm->alone) result.left = 1;
  return result;
}

std::optional<Expected> multiplied(const Run& run, const Site& site) {
  const std::optional<Case> it = run.weights.empty() ? std::nullopt : values_of(run, site);
  if (!it) return std::nullopt;
  std::optional<Expected> projected = expect_projection(*it);
  return projected ? std::move(projected) : expect_mlp(*it);
}

// Whether something that attention reads beside queries, keys and values is wrong, as probabilities
// that dropout changed: what it makes of those three then tells nothing.
bool reads_a_mistake(const Run& run, const Site& site) {
  return std::ranges::any_of(site.inputs, [&](std::size_t input) {
    const Site& read = run.sites[input];
    const bool known = read.role >= Role::query && read.role <= Role::value_final;
    return read.bug() && !known && read.role != Role::fused_qkv;
  });
}

// Steps whose tokens are computed each by itself.
std::optional<Expected> computed(const Run& run, const Site& site, const TokenRange& at) {
  if (site.made_of)
    if (std::optional<Expected> made = remade(run, site, at, *site.made_of)) return made;
  if (site.copy_of) return summed(run, site, at, {&run.sites[*site.copy_of]});
  switch (site.role) {
    case Role::value_final:
      return summed(run, site, at, {find_role(run, site, Role::value)});
    case Role::activation:
      return activated(run, site, at);
    case Role::layer_output:
      return stream_summed(run, site, at);
    default:
      return is_norm(site.role) ? normalised(run, site, at) : rotated(run, site, at);
  }
}

// Whether the token with the largest difference is off by more than the others.
bool has_outlier(const Run& run, const Site& site, uint64_t token) {
  const auto a = read_side(run, &site, &AlignedPair::a, {token, 1});
  const auto b = read_side(run, &site, &AlignedPair::b, {token, 1});
  return a && b && distance(a->values, b->values) > kOutlier * site.error * norm(a->values);
}

// A few tokens tell of most mistakes, and the one that is the farthest off of the others. Once
// there is one, all that can be held at a time tell what it is.
std::optional<Expected> computed(const Run& run, const Site& site) {
  TokenRange at{0, std::max(kTokensRead, tokens_held(run, site, kValuesRead))};
  std::optional<Expected> result = computed(run, site, at);
  if (!result) return std::nullopt;
  at.first = window_of(run, site, at.tokens);
  if (result->met() && at.first > 0 && has_outlier(run, site, worst_token(run, site))) {
    std::optional<Expected> there = computed(run, site, at);
    if (there) result = std::move(there);
  }
  if (result->met()) return result;
  const uint64_t held = tokens_held(run, site, kValuesMax);
  std::optional<Expected> all = computed(run, site, {window_of(run, site, held), held});
  return all && !all->met() ? std::move(all) : std::move(result);
}

}  // namespace

std::optional<Expected> expected_of(const Run& run, const Site& site) {
  if (!site.compared() || site.aside) return std::nullopt;
  if (site.copy_of || site.made_of) return computed(run, site);
  switch (site.role) {
    case Role::query_final:
    case Role::key_final:
    case Role::value_final:
    case Role::activation:
    case Role::layer_output:
      return computed(run, site);
    case Role::attention_heads:
      return reads_a_mistake(run, site) ? std::nullopt : attended(run, site);
    default:
      return is_norm(site.role) ? computed(run, site) : multiplied(run, site);
  }
}

}  // namespace tensordiff
