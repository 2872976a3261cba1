// low_rank: is the change one that a few directions explain, as a merged LoRA adapter is?

#include "analyze/low_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analyze/analysis.h"
#include "analyze/edit.h"
#include "analyze/profile.h"

namespace tensordiff {
namespace {

constexpr double kNothing = 1e-14;  // Relative to the largest: what rounding leaves of a zero.

// The rank of the change of each matrix, by the profile or by a larger sample.
LowRank rank_of(const Study& study, std::size_t at) {
  const Profile& profile = study.profiles()[at];
  const Comparison& it = study.weights()[at]->comparison;
  // Lines that were set to zero or changed by themselves have a rank of their own number, of which
  // a sample shows a part.
  const bool pruned = it.b.zeros == it.a.zeros + it.diff.compared - it.diff.equal;
  if (profile.sampled && (pruned || 2 * profile.rows_changed < profile.rows)) return {};
  LowRank found = low_rank_of(profile.spectrum_change);
  if (found.rank > 0 || !profile.sampled) return found;
  found.rank = study.higher_ranks().of(*study.weights()[at], profile);
  found.energy = found.rank > 0 ? 1 : 0;
  return found;
}

void examine(const Study& study, Answer& answer) {
  const std::vector<const Row*>& weights = study.weights();
  const std::vector<Profile>& profiles = study.profiles();
  uint64_t changed = 0, low = 0;
  std::size_t least = 0, most = 0;
  bool sampled = false;
  Listing list{"changed_matrices",
               {"tensor", "low_rank", "rank", "energy", "effective_rank", "directions_min"},
               {},
               0};
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Spectrum& spectrum = profiles[i].spectrum_change;
    const bool looked_at = spectrum.energies.size() >= 2 && spectrum.total() > 0;
    // Too many directions for a low rank: so many of them are known, and no spectrum.
    if (!looked_at && profiles[i].directions <= 0) continue;
    const LowRank found = rank_of(study, i);
    ++changed;
    sampled |= profiles[i].sampled;
    if (found.rank > 0) {
      least = low == 0 ? found.rank : std::min(least, found.rank);
      most = std::max(most, found.rank);
      ++low;
    }
    const Datum rank = found.rank > 0 ? Datum(uint64_t{found.rank}) : Datum();
    const Datum energy = found.rank > 0 ? Datum(found.energy) : Datum();
    const Datum effective = looked_at ? Datum(spectrum.effective_rank()) : Datum();
    const Datum least_directions =
        profiles[i].directions > 0 ? Datum(std::floor(profiles[i].directions)) : Datum();
    list.add({weights[i]->a.name, found.rank > 0, rank, energy, effective, least_directions});
  }
  std::string verdict = "full rank";
  if (changed == 0)
    verdict = "no matrix changed";
  else if (low > 0)
    verdict = low == changed ? "low rank" : "some of low rank";
  else if (sampled)
    verdict = fmt::format("no low rank: more than {} tested", kUpdateRankMax);
  answer.field("verdict", verdict);
  answer.field("changed_matrices_in_all", changed).field("low_rank_matrices", low);
  if (low > 0) answer.field("rank_min", uint64_t{least}).field("rank_max", uint64_t{most});
  answer.lists.push_back(std::move(list));
  if (sampled)
    answer.notes.push_back(
        fmt::format("ranks up to 48 come from 96 rows by 192 columns of each matrix, those up to "
                    "{} from a larger sample of one matrix of each kind",
                    kUpdateRankMax));
}

}  // namespace

// Without its terms of one row or one column, Σ over i, k, j, l of d_ij d_kj d_il d_kl is a mean
// over the sample as over the whole; these terms are scaled to the whole by themselves.
double directions_of(const Scaled& sample, const Extents& whole) {
  const Dense& d = sample.matrix;
  const auto rows = static_cast<double>(d.rows), columns = static_cast<double>(d.columns);
  if (d.rows < 16 || d.columns < 16 || sample.largest == 0) return 0;
  std::vector<double> of_rows(d.rows), of_columns(d.columns);
  double fourth = 0;
  for (std::size_t i = 0; i < d.rows; ++i) {
    const auto row = d.row(i);
    of_rows[i] = sample.rows.row(i)[i];
    for (std::size_t j = 0; j < d.columns; ++j) {
      const double square = row[j] * row[j];
      of_columns[j] += square;
      fourth += square * square;
    }
  }
  const double rows_squared = dot(of_rows, of_rows), columns_squared = dot(of_columns, of_columns);
  const double cycles =
      dot(sample.rows.values, sample.rows.values) - rows_squared - columns_squared + fourth;
  double all = 0;
  for (const double each : of_rows) all += each;
  const double places = rows * (rows - 1) * columns * (columns - 1);
  // Each in units of (Σσ²)², the square of the mean square times the elements.
  const double mean = all / (rows * columns);
  const double of_cycles = cycles / places / (mean * mean);
  const double of_one_row = rows * rows_squared / (all * all) / static_cast<double>(whole.rows);
  const double of_one_column =
      columns * columns_squared / (all * all) / static_cast<double>(whole.columns);
  // Of independent values, whatever their distribution, the cycles spread by this about 0.
  const double error = 2 / std::sqrt(places);
  return 1 / (std::max(0.0, of_cycles) + of_one_row + of_one_column + 4 * error);
}

double low_rank_share(const Row& pair) {
  return std::min(kLowRankEnergy, 1 - rounding_share(pair));
}

std::size_t HigherRanks::of(const Row& pair, const Profile& profile) {
  constexpr std::size_t kKindsMax = 8;
  const Shape& shape = pair.views.a.shape;
  if (shape.size() != 2 || std::min(shape[0], shape[1]) <= kUpdateRankMax) return 0;
  const double share = low_rank_share(pair);
  if (share > 0 && share * share * profile.directions > kUpdateRankMax) return 0;
  const std::string kind = pattern_of(pair.a.name, pair.a.place);
  const auto known = by_kind_.find(kind);
  if (known != by_kind_.end()) return known->second;
  if (by_kind_.size() == kKindsMax) return 0;
  return by_kind_.emplace(kind, rank_of_change(pair)).first->second;
}

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
