// Every tensor that both sides have in each layer is a witness: it compares all layers of a with
// all of b by a sample of its values, and votes for those that agree far better than any others.
// Two layers belong together when they have more votes than either has with any other layer.

#include "match/layer_pairing.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>

#include "match/fingerprint.h"

namespace tensordiff {
namespace {

constexpr std::size_t kWitnessesMax = 16;
constexpr uint64_t kWitnessElementsMin = 8;   // A few numbers agree by chance.
constexpr std::size_t kCellsMax = 128 * 128;  // Pairs of layers that are compared by value.

// What a witness has to find to vote: one pair of layers of which ten times less is unexplained
// than of any other in its row and column, which differ themselves by more than rounding.
constexpr double kClearlyBetter = 10;
constexpr double kAgreementMax = 0.5;
constexpr double kRounding = 1e-4;

using TensorOfLayer = std::map<int64_t, std::size_t>;

// A table over the layers of both sides, in ascending order.
template <class T>
class Table {
 public:
  Table(std::size_t rows, std::size_t columns)
      : rows_(rows), columns_(columns), cells_(rows * columns) {}
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  T& at(std::size_t row, std::size_t column) { return cells_[row * columns_ + column]; }
  const T& at(std::size_t row, std::size_t column) const { return cells_[row * columns_ + column]; }

  // Calls see(cell) for all other cells of the row and the column of one.
  template <class See>
  void rivals(std::size_t row, std::size_t column, See see) const {
    for (std::size_t i = 0; i < columns_; ++i)
      if (i != column) see(at(row, i));
    for (std::size_t i = 0; i < rows_; ++i)
      if (i != row) see(at(i, column));
  }

 private:
  std::size_t rows_, columns_;
  std::vector<T> cells_;
};

std::vector<int64_t> layers_of(const std::vector<Placed>& placed) {
  std::set<int64_t> layers;
  for (const Placed& each : placed) layers.insert(each.layer);
  return {layers.begin(), layers.end()};
}

// The tensors that stand for the same thing in different layers, where there is just one in each.
std::map<std::string_view, TensorOfLayer> witnesses(const std::vector<Placed>& placed) {
  std::map<std::string_view, TensorOfLayer> result;
  std::set<std::string_view> ambiguous;
  for (const Placed& each : placed)
    if (!result[each.what].emplace(each.layer, each.tensor).second) ambiguous.insert(each.what);
  for (const std::string_view what : ambiguous) result.erase(what);
  return result;
}

std::vector<Fingerprint> fingerprints(const Catalog& catalog, const TensorOfLayer& tensors,
                                      const std::vector<int64_t>& layers) {
  std::vector<Fingerprint> result;
  for (const int64_t layer : layers) {
    const auto found = tensors.find(layer);
    result.push_back(found == tensors.end() ? Fingerprint{}
                                            : fingerprint_of(catalog.tensors[found->second]));
  }
  return result;
}

void vote(const std::vector<Fingerprint>& a, const std::vector<Fingerprint>& b,
          Table<std::size_t>& votes) {
  Table<double> apart(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t j = 0; j < b.size(); ++j) apart.at(i, j) = disagreement(a[i], b[j]);
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t j = 0; j < b.size(); ++j) {
      const double here = apart.at(i, j);
      double nearest = 1;
      apart.rivals(i, j, [&](double rival) { nearest = std::min(nearest, rival); });
      votes.at(i, j) +=
          here <= kAgreementMax && nearest >= kRounding && here * kClearlyBetter < nearest;
    }
  }
}

struct LayerPair {
  int64_t a, b;
  std::string_view reason;
};

// Pairs found so far, by the layer of b, and what is left of a.
struct Progress {
  std::vector<int64_t> layers_a, layers_b;
  std::map<int64_t, LayerPair> pairs;
  std::set<int64_t> free_a;

  void add(int64_t a, int64_t b, std::string_view reason) {
    pairs.emplace(b, LayerPair{a, b, reason});
    free_a.erase(a);
  }
};

void pair_by_votes(const Table<std::size_t>& votes, Progress& progress) {
  for (std::size_t i = 0; i < votes.rows(); ++i) {
    for (std::size_t j = 0; j < votes.columns(); ++j) {
      std::size_t most = 0;
      votes.rivals(i, j, [&](std::size_t rival) { most = std::max(most, rival); });
      if (votes.at(i, j) > most)
        progress.add(progress.layers_a[i], progress.layers_b[j], "their values agree best");
    }
  }
}

// Numbers are shifted by one distance in nearly every dump; where the values of some layers show
// it, the others follow.
void pair_by_distance(Progress& progress) {
  if (progress.pairs.empty()) return;
  const LayerPair first = progress.pairs.begin()->second;
  const int64_t distance = first.a - first.b;  // Layers are not negative, so this fits.
  for (const auto& [b, pair] : progress.pairs)
    if (pair.a - pair.b != distance) return;
  for (const int64_t b : progress.layers_b) {
    const std::optional<int64_t> a = checked_add(b, distance);
    if (a && !progress.pairs.contains(b) && progress.free_a.contains(*a))
      progress.add(*a, b, "layers whose values agree differ by the same number");
  }
}

// Each layer of b that is left takes the first free one of a that lies after the partners of all
// layers before it and before those of all after it.
void pair_by_order(Progress& progress) {
  for (const int64_t b : progress.layers_b) {
    if (progress.pairs.contains(b)) continue;
    const auto after = progress.pairs.upper_bound(b);
    const int64_t low = after == progress.pairs.begin() ? -1 : std::prev(after)->second.a;
    const int64_t high =
        after == progress.pairs.end() ? std::numeric_limits<int64_t>::max() : after->second.a;
    const auto a = progress.free_a.upper_bound(low);
    if (a != progress.free_a.end() && *a < high)
      progress.add(*a, b, "no numbers in common, and the values do not decide: paired by order");
  }
}

// One note for each run of neighbouring layers that were paired for one reason.
std::vector<std::string> notes_on(const std::map<int64_t, LayerPair>& pairs,
                                  std::string_view noun) {
  std::vector<std::string> notes;
  for (auto first = pairs.begin(); first != pairs.end();) {
    auto last = first;
    auto next = std::next(first);
    while (next != pairs.end() && next->second.reason == first->second.reason &&
           next->second.a - last->second.a == 1 && next->second.b - last->second.b == 1)
      last = next++;
    const LayerPair& from = first->second;
    const LayerPair& to = last->second;
    notes.push_back(
        first == last
            ? fmt::format("{0} {1} of B is compared with {0} {2} of A: {3}", noun, from.b, from.a,
                          from.reason)
            : fmt::format("{0}s {1} to {2} of B are compared with {0}s {3} to {4} of A: {5}", noun,
                          from.b, to.b, from.a, to.a, from.reason));
    first = next;
  }
  return notes;
}

}  // namespace

LayerPairing pair_layers(const PlacedIn& a, const PlacedIn& b, const LayerSearch& search) {
  Progress progress{layers_of(a.placed), layers_of(b.placed), {}, {}};
  progress.free_a.insert(progress.layers_a.begin(), progress.layers_a.end());

  if (search.read_values && progress.layers_a.size() * progress.layers_b.size() <= kCellsMax) {
    Table<std::size_t> votes(progress.layers_a.size(), progress.layers_b.size());
    std::size_t heard = 0;
    const auto witnesses_b = witnesses(b.placed);
    for (const auto& [what, tensors_a] : witnesses(a.placed)) {
      const auto found = witnesses_b.find(what);
      if (found == witnesses_b.end() || heard == kWitnessesMax) continue;
      if (a.catalog.tensors[tensors_a.begin()->second].elements() < kWitnessElementsMin) continue;
      ++heard;
      vote(fingerprints(a.catalog, tensors_a, progress.layers_a),
           fingerprints(b.catalog, found->second, progress.layers_b), votes);
    }
    pair_by_votes(votes, progress);
  }
  pair_by_distance(progress);
  if (!search.values_only) pair_by_order(progress);

  LayerPairing pairing{{}, notes_on(progress.pairs, search.noun)};
  for (const auto& [layer, pair] : progress.pairs) pairing.a_of_b.emplace(layer, pair.a);
  return pairing;
}

}  // namespace tensordiff
