// param_efficiency_analysis: how much of what the weights could say do they say?
//
//   effective rank = exp(entropy of σ² / Σσ²) of a matrix or of a patch of it
//   use            = effective rank / the most it could be; weighted by elements over the model
//   stable rank    = Σσ² / σ₁²     sparsity = zeros / elements
//   duplicates     = rows of the patch within 2.6 degrees of an earlier one

#include <algorithm>

#include "analyze/analysis.h"
#include "analyze/profile.h"

namespace tensordiff {
namespace {

constexpr double kWasteful = 0.25;  // Less of the rank in use than this is listed as wasteful.

struct Use {
  const Row* pair;
  const Profile* profile;
  double possible = 0, a = 0, b = 0;  // Shares of the possible rank.
};

std::vector<Use> uses_of(const Study& study) {
  const std::vector<const Row*>& weights = study.weights();
  const std::vector<Profile>& profiles = study.profiles();
  std::vector<Use> uses;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const auto possible = static_cast<double>(profiles[i].spectrum_a.energies.size());
    if (possible < 2 || profiles[i].spectrum_b.energies.empty()) continue;
    uses.push_back({weights[i], &profiles[i], possible,
                    profiles[i].spectrum_a.effective_rank() / possible,
                    profiles[i].spectrum_b.effective_rank() / possible});
  }
  return uses;
}

double sparsity(std::span<const Row* const> weights, Stats Comparison::*side) {
  uint64_t zeros = 0, all = 0;
  for (const Row* pair : weights) {
    zeros += (pair->comparison.*side).zeros;
    all += (pair->comparison.*side).finite;
  }
  return all ? static_cast<double>(zeros) / static_cast<double>(all) : 0;
}

void examine(const Study& study, Answer& answer) {
  const std::vector<const Row*>& weights = study.weights();
  std::vector<Use> uses = uses_of(study);
  double elements = 0, use_a = 0, use_b = 0;
  uint64_t duplicates_a = 0, duplicates_b = 0;
  for (const Use& each : uses) {
    const auto count = static_cast<double>(each.pair->comparison.diff.compared);
    elements += count;
    use_a += count * each.a;
    use_b += count * each.b;
    duplicates_a += each.profile->rows_a.duplicates;
    duplicates_b += each.profile->rows_b.duplicates;
  }
  if (uses.empty() || elements == 0) {
    answer.unknown("rank_use_a", "a matrix that is not zero on either side");
    answer.field("rank_use_b", "unknown");
  } else {
    answer.field("rank_use_a", use_a / elements).field("rank_use_b", use_b / elements);
  }
  answer.field("sparsity_a", sparsity(weights, &Comparison::a));
  answer.field("sparsity_b", sparsity(weights, &Comparison::b));
  answer.field("duplicate_rows_a", duplicates_a).field("duplicate_rows_b", duplicates_b);
  const auto wasteful = [](const Use& each) { return each.b < kWasteful; };
  answer.field("wasteful", static_cast<uint64_t>(std::ranges::count_if(uses, wasteful)));
  std::ranges::stable_sort(uses, {}, &Use::b);
  Listing& list = answer.list("matrices", {"tensor", "rank_use_a", "rank_use_b", "stable_rank_a",
                                           "stable_rank_b", "dead_rows_b", "duplicate_rows_b"});
  for (const Use& each : uses)
    list.add({each.pair->a.name, each.a, each.b, each.profile->spectrum_a.stable_rank(),
              each.profile->spectrum_b.stable_rank(), each.profile->rows_b.dead,
              each.profile->rows_b.duplicates});
  if (std::ranges::any_of(uses, [](const Use& each) { return each.profile->sampled; }))
    answer.notes.push_back("ranks and duplicates of large matrices are of 96 rows by 192 columns");
}

}  // namespace

constinit const Analysis analyses::param_efficiency_analysis = {
    .name = "param_efficiency_analysis",
    .flag = "--param-efficiency-analysis",
    .question = "How much of their capacity do the weights use?",
    .definition = "effective and stable rank, sparsity, dead and duplicate rows",
    .examine = examine,
};

}  // namespace tensordiff
