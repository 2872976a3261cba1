// A model in several files: "model-00001-of-00003.safetensors", and the index that says which
// tensor is in which of them.

#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "tensor/catalog.h"

namespace tensordiff {

// The stem of the model that a shard's stem belongs to: "model" for "model-00001-of-00003".
std::optional<std::string_view> model_of_shard(std::string_view stem);

// How many shards "model-00002-of-00003" says there are; nothing where it is no shard.
std::optional<uint64_t> shards_of_model(std::string_view stem);

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
