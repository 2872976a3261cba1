// A model in several files: "model-00001-of-00003.safetensors", and the index that says which
// tensor is in which of them.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/catalog.h"

namespace tensordiff {

// The stem of the model that a shard's stem belongs to: "model" for "model-00001-of-00003".
std::optional<std::string_view> model_of_shard(std::string_view stem);

// A name that says which part of how many it is: "model-00001-of-00003.gguf", "tp_rank_0_of_4".
struct PartName {
  std::string before, after;  // Of the number: "model-" and "-of-00003.gguf".
  uint64_t number = 0, count = 0;
  std::size_t digits = 0;

  std::string other(uint64_t part) const;  // The name of another part of the same.
};
std::optional<PartName> part_name(std::string_view name);

// Says which parts are not among these paths, of those whose names say how many there are. What an
// index speaks of is left out: it knows better.
void report_missing_parts(const std::vector<std::string>& paths,
                          const std::set<std::string>& indexed, std::vector<Problem>& problems);

// Says so where the shards of a GGUF model do not hold as many tensors as the first one promises.
void check_split(Catalog& catalog);

// "model.safetensors.index.json" and its like.
bool is_shard_index(std::string_view path);

// An index file, with the paths of the shards beside it.
struct ShardIndex {
  std::string path;
  std::map<std::string, std::string> shard_of;  // Tensor name to path.
  std::set<std::string> shards;

  // Its path without ".safetensors.index.json": what the shards' own names start with.
  std::string_view model() const;

  static Result<ShardIndex> parse(const std::string& path, std::string_view json);
};

// The catalog of one shard, read.
struct Shard {
  std::string path;
  Catalog catalog;
};

// Compares what the index says with what the shards hold. Contradictions become problems, and
// tensors that are nowhere become broken ones, so that they are not missed silently.
void check_shards(const ShardIndex& index, std::vector<Shard*> shards, Catalog& catalog);

}  // namespace tensordiff
