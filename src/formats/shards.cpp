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

std::optional<uint64_t> shards_of_model(std::string_view stem) {
  const std::optional<std::string_view> model = model_of_shard(stem);
  if (!model) return std::nullopt;
  const std::string count(stem.substr(stem.rfind('-') + 1));
  return count.size() > 6 ? 0 : std::stoull(count);
}

void check_split(Catalog& catalog) {
  const auto promised = std::ranges::find(catalog.metadata, "split.tensors.count", &Metadata::key);
  if (promised == catalog.metadata.end()) return;
  const std::string found = fmt::format("{}", catalog.tensors.size());
  if (promised->value != found)
    catalog.problems.push_back({"", fmt::format("{} tensors in the files that are here, {} in the "
                                                "whole model",
                                                found, printable(promised->value, 40))});
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
          {index.path, fmt::format("shard '{}' is missing or unreadable", printable(shard))});
  for (const auto& [name, shard] : index.shard_of) {
    if (found.contains(name)) continue;
    const std::string fault = fmt::format("not found in '{}', where the index has it", shard);
    if (read.contains(shard))
      catalog.problems.push_back({index.path, fmt::format("tensor '{}': {}", name, fault)});
    catalog.tensors.push_back(broken_tensor(name, fault));
  }
}

}  // namespace tensordiff
