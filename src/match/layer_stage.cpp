// Pairs what was recorded at the same stage of the same layer: "12_query" with "12_query", in
// whatever folder or file it lies.
//
// Folders that both sides have must agree; those of one side alone do not matter, as long as what
// is left is clear: "rank_0/12_query" is "12_query" unless there is a "rank_1/12_query" too. Where
// the two sides have no layer number in common, layers are paired first (layer_pairing.h). A
// pattern of the user's (--match-regex) takes the place of "{layer}_{stage}".

#include <algorithm>
#include <set>
#include <tuple>

#include "base/side.h"
#include "base/text.h"
#include "match/layer_pairing.h"
#include "match/matcher.h"

namespace tensordiff {
namespace {

struct Entry {
  std::size_t tensor = 0;
  LayerStage place;
  bool in_shared_folder = true;

  // The folder that its partner must lie in; "" also where any will do.
  std::string_view folder() const {
    return in_shared_folder ? std::string_view(place.folder) : std::string_view();
  }
  auto key() const {
    return std::tuple(place.layer, std::string_view(place.stage), in_shared_folder, folder());
  }
};

using Entries = std::vector<Entry>;

Entries parse_all(const NamesOf& side, const std::vector<std::size_t>& free,
                  const MatchOptions& options) {
  Entries entries;
  for (const std::size_t tensor : free) {
    std::optional<LayerStage> place = layer_stage(side.names[tensor], side.places[tensor], options);
    if (!place) continue;
    // A folder on disk and a dictionary in a file are the same to a reader of names.
    std::ranges::replace(place->folder, '.', '/');
    entries.push_back({tensor, std::move(*place)});
  }
  return entries;
}

std::set<std::string_view> folders_of(const Entries& entries) {
  std::set<std::string_view> folders;
  for (const Entry& entry : entries) folders.insert(entry.place.folder);
  return folders;
}

// Drops the folders that all entries lie in: usually the name of the dump.
void drop_common_folders(Entries& entries) {
  if (entries.empty()) return;
  std::string common = entries[0].place.folder + "/";
  for (const Entry& entry : entries) {
    const std::string folder = entry.place.folder + "/";
    const auto parts = std::ranges::mismatch(common, folder);
    common.erase(parts.in1, common.end());
    common.resize(common.rfind('/') + 1);  // To the end of a whole name, or to nothing.
  }
  for (Entry& entry : entries) {
    std::string& folder = entry.place.folder;
    folder.erase(0, std::min(common.size(), folder.size()));
  }
}

bool share_a_folder(const Entries& a, const Entries& b) {
  const std::set<std::string_view> folders = folders_of(b);
  return std::ranges::any_of(a, [&](const Entry& e) { return folders.contains(e.place.folder); });
}

void settle_folders(Entries& a, Entries& b) {
  if (!share_a_folder(a, b)) {
    drop_common_folders(a);
    drop_common_folders(b);
  }
  const std::set<std::string_view> of_a = folders_of(a);
  const std::set<std::string_view> of_b = folders_of(b);
  for (Entry& entry : a) entry.in_shared_folder = of_b.contains(entry.place.folder);
  for (Entry& entry : b) entry.in_shared_folder = of_a.contains(entry.place.folder);
}

bool share_a_layer(const Entries& a, const Entries& b) {
  std::set<std::optional<int64_t>> layers;  // Those without a number have "none" in common.
  for (const Entry& entry : a) layers.insert(entry.place.layer);
  return std::ranges::any_of(b, [&](const Entry& e) { return layers.contains(e.place.layer); });
}

std::vector<Placed> placed(const Entries& entries) {
  std::vector<Placed> result;
  for (const Entry& entry : entries)
    if (entry.place.layer)
      result.push_back({entry.tensor, *entry.place.layer,
                        fmt::format("{}/{}", entry.folder(), entry.place.stage)});
  return result;
}

// Gives the entries of b the layer numbers of a; those of layers without a partner are dropped.
void renumber(const MatchInput& input, const Entries& a, Entries& b, Proposal& proposal) {
  const std::vector<Placed> placed_a = placed(a), placed_b = placed(b);
  LayerPairing pairing =
      pair_layers({input.a, placed_a}, {input.b, placed_b}, {"layer", input.options.read_values});
  std::erase_if(
      b, [&](const Entry& e) { return e.place.layer && !pairing.a_of_b.contains(*e.place.layer); });
  for (Entry& entry : b)
    if (entry.place.layer) entry.place.layer = pairing.a_of_b.at(*entry.place.layer);
  proposal.notes = std::move(pairing.notes);
}

// The entries from `first` on that share its key.
std::span<const Entry> group_at(const Entries& sorted, std::size_t first) {
  std::size_t end = first;
  while (end < sorted.size() && sorted[end].key() == sorted[first].key()) ++end;
  return std::span(sorted).subspan(first, end - first);
}

// Names that could mean more than one tensor, told in one note however many they are.
class Ambiguities {
 public:
  void add(char side, const Catalog& catalog, std::span<const Entry> group) {
    if (count_++ > 0) return;
    const LayerStage& place = group[0].place;
    example_ = fmt::format(
        "both '{}' and '{}' of {} are stage {}", printable(catalog.tensors[group[0].tensor].name),
        printable(catalog.tensors[group[1].tensor].name), capital(side), printable(place.stage));
    if (place.layer) example_ += fmt::format(" of layer {}", *place.layer);
  }
  void tell(std::vector<std::string>& notes) const {
    if (count_ == 1) notes.push_back(example_ + ": neither is paired by layer and stage");
    if (count_ > 1)
      notes.push_back(
          fmt::format("{}, and so on for {} stages: none of them is paired by layer "
                      "and stage",
                      example_, count_));
  }

 private:
  std::size_t count_ = 0;
  std::string example_;
};

Result<Proposal> propose(const MatchInput& input) {
  Entries a = parse_all(input.side_a, input.free_a, input.options);
  Entries b = parse_all(input.side_b, input.free_b, input.options);
  Proposal proposal;
  if (a.empty() || b.empty()) return proposal;
  settle_folders(a, b);
  if (!share_a_layer(a, b)) renumber(input, a, b, proposal);

  std::ranges::stable_sort(a, {}, &Entry::key);
  std::ranges::stable_sort(b, {}, &Entry::key);
  Ambiguities ambiguities;
  std::size_t at_a = 0;
  std::size_t at_b = 0;
  while (at_a < a.size() && at_b < b.size()) {
    const std::span<const Entry> group_a = group_at(a, at_a);
    const std::span<const Entry> group_b = group_at(b, at_b);
    const auto order = group_a[0].key() <=> group_b[0].key();
    if (order <= 0) at_a += group_a.size();
    if (order >= 0) at_b += group_b.size();
    if (order != 0) continue;
    if (group_a.size() > 1) {
      ambiguities.add('a', input.a, group_a);
    } else if (group_b.size() > 1) {
      ambiguities.add('b', input.b, group_b);
    } else {
      proposal.pairs.push_back({group_a[0].tensor,
                                group_b[0].tensor,
                                group_a[0].place.layer,
                                group_a[0].place.stage,
                                {}});
    }
  }
  if (proposal.pairs.empty()) proposal.notes.clear();  // Paired layers without a pair say nothing.
  ambiguities.tell(proposal.notes);
  return proposal;
}

}  // namespace

constinit const Matcher matchers::layer_stage = {
    .name = "layer-stage",
    .summary = "the names give the same layer and stage, as in 12_query",
    .propose = propose,
};

}  // namespace tensordiff
