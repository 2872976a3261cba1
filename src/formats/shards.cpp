#include "formats/shards.h"

#include <algorithm>
#include <vector>

#include "base/json.h"
#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::string_view kIndexEnding = ".index.json";

std::string folder_of(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return std::string(path.substr(0, slash == std::string_view::npos ? 0 : slash + 1));
}

constexpr std::size_t kCountDigitsMax = 5;  // As Hugging Face and GGUF write it: "-of-00003".
constexpr std::size_t kMissingShown = 3;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_joint(char c) { return c == '-' || c == '_' || c == '.'; }

// Whether the word before a number says that files are parts of one thing. After any other word it
// may be anything: "layer_3_of_12" is one of twelve layers, and need not have been saved.
bool speaks_of_parts(std::string_view before) {
  while (!before.empty() && is_joint(before.back())) before.remove_suffix(1);
  constexpr std::string_view kWords[] = {"rank", "shard", "part", "split"};
  const std::string text = lower(before);
  return std::ranges::any_of(kWords, [&](std::string_view word) { return text.ends_with(word); });
}

bool is_plain_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == std::string_view::npos;
}

}  // namespace

std::optional<std::string_view> model_of_shard(std::string_view stem) {
  const std::size_t of = stem.rfind("-of-");
  if (of == std::string_view::npos || !all_digits(stem.substr(of + 4))) return std::nullopt;
  const std::size_t dash = stem.substr(0, of).rfind('-');
  if (dash == std::string_view::npos || !all_digits(stem.substr(dash + 1, of - dash - 1)))
    return std::nullopt;
  return stem.substr(0, dash);
}

std::string PartName::other(uint64_t part) const {
  return fmt::format("{}{:0{}}{}", before, part, digits, after);
}

std::optional<PartName> part_name(std::string_view name) {
  for (std::size_t of = name.find("of"); of != std::string_view::npos;
       of = name.find("of", of + 1)) {
    std::size_t end = of;
    while (end > 0 && is_joint(name[end - 1])) --end;
    std::size_t begin = end;
    while (begin > 0 && is_digit(name[begin - 1])) --begin;
    std::size_t from = of + 2;
    while (from < name.size() && is_joint(name[from])) ++from;
    std::size_t upto = from;
    while (upto < name.size() && is_digit(name[upto])) ++upto;
    const std::size_t digits = end - begin, count_digits = upto - from;
    if (digits == 0 || digits > kCountDigitsMax || count_digits == 0 ||
        count_digits > kCountDigitsMax)
      continue;
    PartName part{std::string(name.substr(0, begin)), std::string(name.substr(end)), 0, 0, digits};
    const bool shard = part.before.ends_with('-') && part.after.starts_with("-of-");
    if (!shard && !speaks_of_parts(part.before)) continue;
    part.number = std::stoull(std::string(name.substr(begin, digits)));
    part.count = std::stoull(std::string(name.substr(from, count_digits)));
    if (part.count > 1 && part.number <= part.count) return part;
  }
  return std::nullopt;
}

void report_missing_parts(const std::vector<std::string>& paths,
                          const std::set<std::string>& indexed, std::vector<Problem>& problems) {
  struct Group {
    PartName part;
    std::set<uint64_t> numbers;
    bool indexed = false;
  };
  std::map<std::string, Group> groups;  // By the name of part 0, with the folder it is in.
  for (const std::string& path : paths) {
    // A folder may be a part as well: "rank_0_of_2/model.pt".
    for (std::size_t begin = 0; begin < path.size();) {
      const std::size_t end = std::min(path.find('/', begin), path.size());
      if (std::optional<PartName> part = part_name(path.substr(begin, end - begin))) {
        part->before.insert(0, path, 0, begin);
        Group& group = groups.try_emplace(part->other(0), Group{*part, {}, false}).first->second;
        group.numbers.insert(part->number);
        group.indexed = group.indexed || indexed.contains(path);
      }
      begin = end + 1;
    }
  }
  for (const auto& [name, group] : groups) {
    const PartName& part = group.part;
    // Shards count from 1, ranks from 0; of ranks the last is then one less than how many.
    const bool from_zero = group.numbers.contains(0) ||
                           (!group.numbers.contains(part.count) && !part.after.starts_with("-of-"));
    std::string missing;
    uint64_t count = 0;
    for (uint64_t i = from_zero ? 0 : 1; i < part.count + (from_zero ? 0 : 1); ++i) {
      if (group.numbers.contains(i)) continue;
      if (++count <= kMissingShown)
        missing += fmt::format("{}'{}'", count > 1 ? ", " : "", printable(part.other(i)));
    }
    if (count == 0 || group.indexed) continue;
    problems.push_back(
        {"",
         fmt::format("{} of {} files of the model {} missing: {}{}", count, part.count,
                     count == 1 ? "is" : "are", missing, count > kMissingShown ? ", …" : ""),
         Severity::missing});
  }
}

void check_split(Catalog& catalog) {
  const auto promised = std::ranges::find(catalog.metadata, "split.tensors.count", &Metadata::key);
  if (promised == catalog.metadata.end()) return;
  const std::string found = fmt::format("{}", catalog.tensors.size());
  if (promised->value != found)
    catalog.problems.push_back({"",
                                fmt::format("{} tensors in the files that are here, {} in the "
                                            "whole model",
                                            found, printable(promised->value, 40)),
                                Severity::missing});
}

bool is_shard_index(std::string_view path) { return path.ends_with(kIndexEnding); }

std::string_view ShardIndex::model() const {
  const std::string_view file = std::string_view(path).substr(0, path.size() - kIndexEnding.size());
  const std::size_t dot = file.rfind('.');
  return file.find('/', dot) == std::string_view::npos ? file.substr(0, dot) : file;
}

Result<ShardIndex> ShardIndex::parse(const std::string& path, std::string_view json) {
  const Json root = TRY(Json::parse(json));
  if (!root["weight_map"].is_object()) return Error("no 'weight_map' in it");
  ShardIndex index;
  index.path = path;
  for (const Json::Member& weight : root["weight_map"].object()) {
    const std::string_view file = weight.value.string();
    if (!is_plain_name(file))
      return Error("tensor '{}' is mapped to '{}', which is not the name of a file beside it",
                   printable(weight.key), printable(file));
    const std::string shard = folder_of(path) + std::string(file);
    index.shard_of[weight.key] = shard;
    index.shards.insert(shard);
  }
  return index;
}

void check_shards(const ShardIndex& index, std::vector<Shard*> shards, Catalog& catalog) {
  std::set<std::string_view> found;
  std::set<std::string_view> read;
  for (Shard* shard : shards) {
    read.insert(shard->path);
    for (Tensor& tensor : shard->catalog.tensors) {
      const auto mapped = index.shard_of.find(tensor.name);
      if (mapped == index.shard_of.end()) {
        catalog.problems.push_back(
            {shard->path, fmt::format("tensor '{}' is not in the index", printable(tensor.name))});
      } else if (mapped->second != shard->path) {
        catalog.problems.push_back(
            {shard->path, fmt::format("tensor '{}' is here too; the index has it in '{}'",
                                      printable(tensor.name), printable(mapped->second))});
        tensor.name += fmt::format(" (in {})", shard->path);
      } else {
        found.insert(mapped->first);
      }
    }
  }
  for (const std::string& shard : index.shards)
    if (!read.contains(shard))
      catalog.problems.push_back(
          {index.path, fmt::format("shard '{}' is missing or unreadable", printable(shard)),
           Severity::missing});
  for (const auto& [name, shard] : index.shard_of) {
    if (found.contains(name)) continue;
    const std::string fault = fmt::format("not found in '{}', where the index has it", shard);
    if (read.contains(shard))
      catalog.problems.push_back({index.path,
                                  fmt::format("tensor '{}': {}", printable(name), fault),
                                  Severity::unreadable});
    catalog.tensors.push_back(broken_tensor(name, fault));
  }
}

}  // namespace tensordiff
