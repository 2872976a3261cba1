// low_rank: is the change one that a few directions explain, as a merged LoRA adapter is?

#include "analyze/low_rank.h"

#include <algorithm>

#include "analyze/analysis.h"
#include "analyze/profile.h"

namespace tensordiff {
namespace {

constexpr double kNothing = 1e-14;  // Relative to the largest: what rounding leaves of a zero.

void examine(const Study& study, Answer& answer) {
  const std::vector<const Row*>& weights = study.weights();
  const std::vector<Profile>& profiles = study.profiles();
  uint64_t changed = 0, low = 0;
  std::size_t least = 0, most = 0;
  bool sampled = false;
  Listing list{
      "changed_matrices", {"tensor", "low_rank", "rank", "energy", "effective_rank"}, {}, 0};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Spectrum& spectrum = profiles[i].spectrum_change;
    if (spectrum.energies.size() < 2 || spectrum.total() <= 0) continue;
    const LowRank found = low_rank_of(spectrum);
    ++changed;
    sampled |= profiles[i].sampled;
    if (found.rank > 0) {
      least = low == 0 ? found.rank : std::min(least, found.rank);
      most = std::max(most, found.rank);
      ++low;
    }
    const Datum rank = found.rank > 0 ? Datum(uint64_t{found.rank}) : Datum();
    const Datum energy = found.rank > 0 ? Datum(found.energy) : Datum();
    list.add({weights[i]->a.name, found.rank > 0, rank, energy, spectrum.effective_rank()});
  }
  answer.field("verdict", changed == 0     ? "no matrix changed"
                          : low == changed ? "low rank"
                          : low > 0        ? "some of low rank"
                                           : "full rank");
  answer.field("changed_matrices_in_all", changed).field("low_rank_matrices", low);
  if (low > 0) answer.field("rank_min", uint64_t{least}).field("rank_max", uint64_t{most});
  answer.lists.push_back(std::move(list));
  if (sampled)
    answer.notes.push_back(
        "ranks are of 96 rows by 192 columns, spread over the matrix: ranks above 48 are not "
        "reported");
}

}  // namespace

LowRank low_rank_of(const Spectrum& spectrum) {
  const std::vector<double>& energies = spectrum.energies;
  LowRank best;
  for (std::size_t rank = 1; rank <= energies.size() / 2; ++rank) {
    if (energies[rank - 1] <= kNothing * energies[0]) break;
    const double next = std::max(energies[rank], kNothing * energies[0]);
    const double gap = energies[rank - 1] / next;
    const double energy = spectrum.held_by(rank);
    if (gap < kLowRankCliff || energy < kLowRankEnergy || gap <= best.gap) continue;
    best = {rank, energy, gap};
  }
  return best;
}

constinit const Analysis analyses::low_rank = {
    .name = "low_rank",
    .flag = "--low-rank",
    .question = "Is the change a low-rank one, like a merged LoRA adapter?",
    .definition = "rank and energy of the change of each matrix",
    .examine = examine,
};

}  // namespace tensordiff
