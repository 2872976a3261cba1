// Tensor parallel ranks are gathered first, then plain or data parallel ones; of these, too, the
// values tell copies from pieces. For stages of a pipeline see stages.h.

#include "match/ranks.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "base/side.h"
#include "base/text.h"
#include "match/flat_name.h"
#include "match/stages.h"
#include "naming/naming.h"
#include "naming/rank_name.h"

namespace tensordiff {
namespace {

constexpr std::size_t kDigitsMax = 6;  // Of a rank: as many as names of ranks have (rank_name.cpp).

struct Group {
  std::map<uint64_t, std::size_t> tensor_of_rank;
  bool clear = true;  // No two tensors of one rank, and none without a rank, have its name.
};

using Groups = std::unordered_map<std::string, Group>;

Groups groups_of(const Catalog& catalog, const std::vector<std::optional<RankName>>& names) {
  Groups groups;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!names[i]) continue;
    Group& group = groups[names[i]->rest];
    group.clear &= group.tensor_of_rank.emplace(names[i]->rank, i).second;
    const std::size_t first = group.tensor_of_rank.begin()->second;
    group.clear &= catalog.tensors[i].shards.size() == catalog.tensors[first].shards.size();
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (const auto found = groups.find(catalog.tensors[i].name); found != groups.end())
      found->second.clear = false;
  return groups;
}

// FSDP cuts a row of numbers into one piece for each rank, whatever is in it.
void lay_in_a_row(Tensor& tensor) {
  const auto fits = [&](const View& piece) {
    return piece.shape.size() == 1 && piece.dtype == tensor.view.dtype && piece.terms == 1 &&
           piece.swapped == tensor.view.swapped;
  };
  if (!std::ranges::all_of(tensor.shards, fits)) return;
  View row = tensor.view;
  row.parts.clear();
  row.shape = {0};
  for (const View& piece : tensor.shards) {
    for (Part part : piece.parts) {
      part.origin[0] += row.shape[0];
      row.parts.push_back(std::move(part));
    }
    row.shape[0] += piece.shape[0];
  }
  if (!element_count(row.shape)) return;
  tensor.view = std::move(row);
  tensor.shards.clear();
}

// "local_1" as ("local_", 1), of a name's first word.
std::optional<std::pair<std::string, uint64_t>> numbered_file(const std::string& name) {
  const std::string word = name.substr(0, name.find_first_of("./"));
  const std::size_t digits = word.find_last_not_of("0123456789") + 1;
  if (word.size() == name.size() || digits == word.size() || word.size() - digits > kDigitsMax)
    return std::nullopt;
  return std::pair(word.substr(0, digits), std::stoull(word.substr(digits)));
}

// Every rank of FSDP writes its piece of all flat parameters to a file of its own. Where such files
// are called by a number alone (local_0.pt, local_1.pt), it is the rank.
void call_files_ranks(Catalog& catalog) {
  const auto is_flat = [](const Tensor& tensor) { return module_of_flat(tensor.name).has_value(); };
  if (catalog.format != "folder" || std::ranges::none_of(catalog.tensors, is_flat)) return;
  std::map<uint64_t, std::set<std::string>> names_of;
  std::string stem;
  for (const Tensor& tensor : catalog.tensors) {
    const auto file = parse_rank(tensor.name) ? std::nullopt : numbered_file(tensor.name);
    if (!file || (!stem.empty() && file->first != stem)) return;
    stem = file->first;
    names_of[file->second].insert(tensor.name.substr(tensor.name.find_first_of("./") + 1));
  }
  const std::set<std::string>& first = names_of.begin()->second;
  if (names_of.rbegin()->first + 1 != names_of.size() ||
      std::ranges::any_of(names_of, [&](const auto& file) { return file.second != first; }))
    return;
  for (Tensor& tensor : catalog.tensors)
    tensor.name = fmt::format("rank_{}/{}", numbered_file(tensor.name)->second,
                              tensor.name.substr(tensor.name.find_first_of("./") + 1));
}

// What lies in pieces already is gathered piece by piece: the data parallel ranks of the first
// tensor parallel one, then those of the second. So copies are neighbours.
Tensor gathered(const Catalog& catalog, const std::string& name, const Group& group) {
  Tensor tensor = catalog.tensors[group.tensor_of_rank.begin()->second];
  tensor.name = name;
  if (const auto known = parse_rank(tensor.known_as)) tensor.known_as = known->rest;
  if (group.tensor_of_rank.size() == 1) return tensor;
  const std::size_t pieces = std::max<std::size_t>(tensor.shards.size(), 1);
  tensor.shards.clear();
  for (std::size_t piece = 0; piece < pieces; ++piece)
    for (const auto& [rank, index] : group.tensor_of_rank) {
      const Tensor& shard = catalog.tensors[index];
      tensor.shards.push_back(shard.shards.empty() ? shard.view : shard.shards[piece]);
      if (tensor.fault.empty() && !shard.fault.empty())
        tensor.fault = fmt::format("rank {}: {}", rank, shard.fault);
    }
  if (module_of_flat(name)) lay_in_a_row(tensor);
  return tensor;
}

// One note for all the tensors that some rank does not have.
void note_missing(const std::map<std::string, std::string>& missing, char side,
                  std::vector<std::string>& notes) {
  if (missing.empty()) return;
  const auto& [name, ranks] = *missing.begin();
  notes.push_back(fmt::format(
      "{} has '{}'{} on {} only", capital(side), printable(name),
      missing.size() == 1 ? "" : fmt::format(", and {} more,", missing.size() - 1), ranks));
}

std::string ranks_text(const Group& group) {
  std::string text = group.tensor_of_rank.size() == 1 ? "rank " : "ranks ";
  for (const auto& [rank, index] : group.tensor_of_rank) text += fmt::format("{}, ", rank);
  text.resize(text.size() - 2);
  return text;
}

// "mp_rank_00_001" tells of a stage also where there is one rank only.
bool tells_a_stage(const std::optional<RankName>& name) {
  return name && name->rest.starts_with("pp_");
}

// One kind of ranks gathered.
struct Gathered {
  std::set<uint64_t> ranks;
  std::map<std::string, std::string> missing;  // By the names of tensors, which ranks have them.
  bool renamed = false;
};

Gathered gather(Catalog& catalog) {
  Gathered result;
  std::vector<std::optional<RankName>> names;
  for (const Tensor& tensor : catalog.tensors) {
    names.push_back(parse_rank(tensor.name));
    if (names.back()) result.ranks.insert(names.back()->rank);
  }
  if (result.ranks.size() < 2 && std::ranges::none_of(names, tells_a_stage)) return result;
  const Groups groups = groups_of(catalog, names);
  std::vector<Tensor> tensors;
  std::set<std::string> done;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto found = names[i] ? groups.find(names[i]->rest) : groups.end();
    if (found == groups.end() || !found->second.clear) {
      tensors.push_back(catalog.tensors[i]);
    } else if (done.insert(found->first).second) {
      tensors.push_back(gathered(catalog, found->first, found->second));
      if (found->second.tensor_of_rank.size() < result.ranks.size())
        result.missing.emplace(found->first, ranks_text(found->second));
    }
  }
  // Where no tensor is on two of them, they are files that share a model, and nothing was cut.
  if (std::ranges::all_of(
          groups, [](const auto& group) { return group.second.tensor_of_rank.size() < 2; })) {
    result.missing.clear();
    result.ranks.clear();
  }
  catalog.tensors = std::move(tensors);
  result.renamed = true;
  return result;
}

void note_gaps(const Gathered& gathered, char side, std::vector<std::string>& notes) {
  const uint64_t last = *gathered.ranks.rbegin(), count = gathered.ranks.size();
  if (last + 1 != count)
    notes.push_back(fmt::format("{}: rank numbers go up to {}, so {} ranks are missing",
                                capital(side), last, last + 1 - count));
}

// `renamed` is set where tensors have got other names.
RankGroups group_and_join(Catalog& catalog, char side, bool& renamed) {
  RankGroups result;
  const Gathered first = gather(catalog);
  renamed = first.renamed;
  if (first.ranks.size() < 2) {
    result.notes = join_stages(catalog, side);
    renamed |= !result.notes.empty();
    return result;
  }
  const Gathered second = gather(catalog);  // Where names have both kinds.
  const bool both = second.ranks.size() > 1;
  result.ranks = first.ranks.size();
  result.notes.push_back(
      both ? fmt::format("{} was gathered from {} x {} ranks", capital(side), second.ranks.size(),
                         first.ranks.size())
           : fmt::format("{} was gathered from {} ranks", capital(side), first.ranks.size()));
  note_gaps(first, side, result.notes);
  if (both) note_gaps(second, side, result.notes);
  note_missing(both ? second.missing : first.missing, side, result.notes);
  for (std::string& note : join_stages(catalog, side)) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace

RankGroups group_ranks(Catalog& catalog, char side) {
  call_files_ranks(catalog);
  bool renamed = false;
  RankGroups result = group_and_join(catalog, side, renamed);
  if (renamed) read_places(catalog);
  return result;
}

}  // namespace tensordiff
