// What goes wrong between ranks: every rank holds the same shard, or the sum over ranks was done
// the wrong number of times.
//
//   - All blocks of b are one block of a: each rank loaded the same shard.
//   - b is one rank's part of the sum. Told where ranks were dumped, which then add up to a though
//     the next step does not agree, or where weights are given, from which the part is computed.
//   - b = n · a behind a sum over n ranks: it was summed twice. (1/n: averaged.)
//   - b − a = (n − 1) · bias behind such a sum: every rank added the bias. Told where it is given.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/graph/heads.h"
#include "diagnose/hypotheses/blocks.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/hypotheses/rank_order.h"
#include "diagnose/limits.h"
#include "diagnose/replay/linear_replay.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

std::optional<Explanation> same_shard(const Case& it) {
  if (it.norm_a == 0 || ranks_in_another_order(it)) return std::nullopt;
  std::optional<Explanation> best;
  for (const uint64_t ranks : block_counts(it.a)) {
    const std::optional<BlockMap> map = one_block(it.a, it.b, ranks);
    if (!map) continue;
    Explanation found = explained_by(it, rearranged(it.a, *map));
    found.text =
        fmt::format("all {} blocks of B are block {} of A: every rank holds the same shard", ranks,
                    map->source[0]);
    found.parameters = {{"cause", std::string("same_shard")},
                        {"ranks", static_cast<double>(ranks)},
                        {"shard", static_cast<double>(map->source[0])}};
    if (accepted(it, found)) return found;
    if (!best || found.after < best->after) best = std::move(found);
  }
  return best;
}

// What b adds to each token, in the mean.
std::vector<double> mean_shift(const Case& it) {
  std::vector<double> shift(it.a.features);
  for (uint64_t row = 0; row < it.a.rows(); ++row)
    for (uint64_t i = 0; i < it.a.features; ++i)
      shift[i] += (it.b.row(row)[i] - it.a.row(row)[i]) / static_cast<double>(it.a.rows());
  return shift;
}

// The step by which the ranks of b are added up for comparing; null where they are not.
const Step* sum_of_ranks(const Site& site) {
  const auto sum = std::ranges::find_if(
      site.views.steps, [](const Step& step) { return step.side == 'b' && step.op == Op::sum; });
  return sum == site.views.steps.end() ? nullptr : &*sum;
}

// Whether the ranks of a step that all of them hold go on apart, since an earlier one was wrong
// that should have added them up.
bool apart_before(const Run& run, const Site& site) {
  if (reduces_over_ranks(site.role)) return false;
  return std::ranges::any_of(run.sites, [&](const Site& other) {
    return other.index != site.index && other.bug() && other.created &&
           reduces_over_ranks(other.role) && sum_of_ranks(other);
  });
}

// The ranks of b add up to a, but nothing added them: see blame_sums() in diagnose.cpp.
std::optional<Explanation> unsummed(const Case& it) {
  const Step* sum = sum_of_ranks(it.site);
  if (!sum || !it.site.bug()) return std::nullopt;
  // Their sum is A, but for the bias that each of them added.
  const std::vector<double> shift = mean_shift(it);
  const Explanation without_bias = explained_by(
      it, filled(it.a, [&](uint64_t row, uint64_t i) { return it.a.row(row)[i] + shift[i]; }));
  if (!(std::min(it.site.error, without_bias.after) <= it.site.budget) &&
      !apart_before(it.run, it.site))
    return std::nullopt;
  Explanation result;
  result.text = fmt::format(
      "each of the {} ranks of B holds a part, and only their sum is A: the sum over ranks is "
      "missing",
      sum->argument[0]);
  result.parameters = {{"cause", std::string("missing_all_reduce")},
                       {"ranks", static_cast<double>(sum->argument[0])}};
  result.after = it.before;
  result.settled = true;
  return result;
}

std::optional<Explanation> summed_again(const Case& it) {
  const auto ranks = static_cast<double>(std::max(ranks_of(it.run, 'a'), ranks_of(it.run, 'b')));
  const double factor = factor_between(it.a.values, it.b.values);
  const bool twice = near(factor, ranks, limits::kWhole);
  if (ranks < 2 || (!twice && !near(factor, 1 / ranks, limits::kWhole))) return std::nullopt;
  const double times = twice ? ranks : 1 / ranks;
  Explanation result = explained_by(
      it, filled(it.a, [&](uint64_t row, uint64_t i) { return times * it.a.row(row)[i]; }));
  result.text = twice ? fmt::format("B = {0:.0f} × A over {0:.0f} ranks: summed twice", ranks)
                      : fmt::format("B = A / {:.0f}: averaged over ranks, not summed", ranks);
  result.parameters = {{"cause", std::string(twice ? "double_all_reduce" : "averaged")},
                       {"ranks", ranks}};
  return result;
}

std::optional<Explanation> bias_of_each_rank(const Case& it) {
  const Projection projection =
      it.site.role == Role::mlp_output ? Projection::down : Projection::attention_output;
  const std::vector<double> bias = it.run.weights.bias(it.site.layer, projection, it.a.features);
  if (bias.empty()) return std::nullopt;
  const std::vector<double> shift = mean_shift(it);
  const double times = std::round(factor_between(bias, shift));
  if (times < 1) return std::nullopt;
  Explanation result = explained_by(it, filled(it.a, [&](uint64_t row, uint64_t i) {
                                      return it.a.row(row)[i] + times * bias[i];
                                    }));
  result.text = fmt::format(
      "B has the bias {0:.0f} times: added on each of {0:.0f} ranks, or "
      "before the sum over them",
      times + 1);
  result.parameters = {{"cause", std::string("bias_per_rank")}, {"ranks", times + 1}};
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  std::optional<Explanation> best;
  const auto explained = [&](std::optional<Explanation> found) {
    const bool accept = found && accepted(it, *found);
    if (found && (accept || !best)) best = std::move(found);
    return accept;
  };
  if (explained(unsummed(it))) return best;
  if (reduces_over_ranks(it.site.role) &&
      (explained(summed_again(it)) || explained(bias_of_each_rank(it)) ||
       explained(replay_partial_sum(it))))
    return best;
  explained(same_shard(it));
  return best;
}

}  // namespace

constinit const Diagnosis diagnoses::reduction = {
    .code = "reduction",
    .question = "Was something lost or doubled between ranks?",
    .explains =
        "a sum over ranks missing or done twice, a bias on each rank, the same shard on all",
    .examine = examine,
};

}  // namespace tensordiff
