// A rank stands in a name as a word of its own with a number: rank_0, rank0, tp_rank_00,
// mp_rank_00_000 (of which the second number is the stage of a pipeline), model-rank-3. Words that
// say tensor parallel are gathered first, then a plain rank or a data parallel one; of these, too,
// the values tell copies from pieces. Other kinds of ranks (ep, cp) hold other experts or tokens,
// and are part of the name; for stages of a pipeline see stages.h.

#include "match/ranks.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "match/stages.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 8> kTensorParallel = {
    "tensor_model_parallel_rank",
    "tensor_parallel_rank",
    "model_parallel_rank",
    "tp_rank",
    "mp_rank",
    "tensor_rank",
    "tp",
    "mp",
};
constexpr std::array<std::string_view, 4> kPlain = {"data_parallel_rank", "dp_rank", "dp", "rank"};
constexpr std::array<std::string_view, 4> kPipeline = {"pipeline_model_parallel_rank",
                                                       "pipeline_parallel_rank", "pp_rank", "pp"};
constexpr std::array<std::string_view, 4> kOtherKinds = {"pp_", "ep_", "cp_", "lora_"};
constexpr std::size_t kDigitsMax = 6;

bool is_separator(char c) { return c == '/' || c == '.' || c == '_' || c == '-'; }

bool ends_at(std::string_view text, std::size_t at) {
  return at == text.size() || is_separator(text[at]);
}

// The digits from `at` on, which must end as a word ends.
std::string_view number_at(std::string_view text, std::size_t at) {
  std::size_t end = at;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  if (end == at || end - at > kDigitsMax || !ends_at(text, end)) return {};
  return text.substr(at, end - at);
}

uint64_t value_of(std::string_view digits) {
  uint64_t value = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return value;
}

// The name without [first, end) and without a separator that it then has twice or at an end.
std::string without(std::string_view name, std::size_t first, std::size_t end) {
  std::string_view before = name.substr(0, first);
  std::string_view after = name.substr(end);
  if (!after.empty() && (before.empty() || after[0] != '/'))
    after.remove_prefix(1);
  else if (!before.empty())
    before.remove_suffix(1);
  return std::string(before) + std::string(after);
}

std::optional<RankName> word_at(std::string_view name, std::string_view text, std::size_t at,
                                std::string_view word) {
  if (!text.substr(at).starts_with(word)) return std::nullopt;
  std::size_t digits = at + word.size();
  if (digits < text.size() && (text[digits] == '_' || text[digits] == '-')) ++digits;
  const std::string_view number = number_at(text, digits);
  if (number.empty()) return std::nullopt;
  std::size_t end = digits + number.size();

  RankName found{"", value_of(number)};
  std::string stage;
  if (word.ends_with("_rank") && end < text.size() && text[end] == '_') {
    const std::string_view second = number_at(text, end + 1);
    if (value_of(second) > 0) stage = fmt::format("pp_{}/", value_of(second));
    if (!second.empty()) end += 1 + second.size();
  }
  found.rest = stage + without(name, at, end);
  return found;
}

bool is_other_kind(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at);
  return std::ranges::any_of(kOtherKinds, [&](auto kind) { return before.ends_with(kind); });
}

std::optional<RankName> find_word(std::string_view name, std::string_view text,
                                  std::span<const std::string_view> words) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (at > 0 && !is_separator(text[at - 1])) continue;
    if (is_other_kind(text, at)) continue;
    for (const std::string_view word : words) {
      std::optional<RankName> found = word_at(name, text, at, word);
      if (found && !found->rest.empty()) return found;
    }
  }
  return std::nullopt;
}

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

// What lies in pieces already is gathered piece by piece: the data parallel ranks of the first
// tensor parallel one, then those of the second. So copies are neighbours.
Tensor gathered(const Catalog& catalog, const std::string& name, const Group& group) {
  Tensor tensor = catalog.tensors[group.tensor_of_rank.begin()->second];
  tensor.name = name;
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
  return tensor;
}

// One note for all the tensors that some rank does not have.
void note_missing(const std::map<std::string, std::string>& missing, char side,
                  std::vector<std::string>& notes) {
  if (missing.empty()) return;
  const auto& [name, ranks] = *missing.begin();
  notes.push_back(fmt::format(
      "{} has '{}'{} on {} only", side, printable(name),
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
  catalog.tensors = std::move(tensors);
  return result;
}

void note_gaps(const Gathered& gathered, char side, std::vector<std::string>& notes) {
  const uint64_t last = *gathered.ranks.rbegin(), count = gathered.ranks.size();
  if (last + 1 != count)
    notes.push_back(
        fmt::format("{}: the numbers of its ranks go up to {}, so that {} of them are missing",
                    side, last, last + 1 - count));
}

}  // namespace

std::optional<RankName> parse_rank(std::string_view name) {
  const std::string text = lower(name);
  if (text.find("rank") == std::string::npos && text.find("tp") == std::string::npos &&
      text.find("mp") == std::string::npos && text.find("dp") == std::string::npos)
    return std::nullopt;
  if (std::optional<RankName> found = find_word(name, text, kTensorParallel)) return found;
  return find_word(name, text, kPlain);
}

std::optional<RankName> parse_stage(std::string_view name) {
  const std::string text = lower(name);
  if (text.find("pp") == std::string::npos && text.find("pipeline") == std::string::npos)
    return std::nullopt;
  return find_word(name, text, kPipeline);
}

RankGroups group_ranks(Catalog& catalog, char side) {
  RankGroups result;
  const Gathered first = gather(catalog);
  if (first.ranks.size() < 2) {
    result.notes = join_stages(catalog, side);
    return result;
  }
  const Gathered second = gather(catalog);  // Where names have both kinds.
  const bool both = second.ranks.size() > 1;
  result.ranks = first.ranks.size();
  result.notes.push_back(
      both ? fmt::format("{} was gathered from {} x {} ranks", side, second.ranks.size(),
                         first.ranks.size())
           : fmt::format("{} was gathered from {} ranks", side, first.ranks.size()));
  note_gaps(first, side, result.notes);
  if (both) note_gaps(second, side, result.notes);
  note_missing(both ? second.missing : first.missing, side, result.notes);
  for (std::string& note : join_stages(catalog, side)) result.notes.push_back(std::move(note));
  return result;
}

}  // namespace tensordiff
