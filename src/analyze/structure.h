// What a model looks like from its tensors alone: family, depth, width, heads, experts.

#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "analyze/facts.h"
#include "tensor/catalog.h"

namespace tensordiff {

// A row of the table in docs/analyses.md each.
enum class Family {
  unknown,
  mlp,
  convolutional,
  recurrent,
  transformer,
  gated_transformer,
  vision_transformer,
  expert_transformer,
};
std::string_view name_of(Family family);
inline bool attends(Family family) { return family >= Family::transformer; }

enum class ModelPart { embedding, head, norm, attention, mlp, convolution, other };
std::string_view name_of(ModelPart part);

struct Structure {
  Family family = Family::unknown;
  uint64_t layers = 0;            // Different numbers of layers in the names.
  std::optional<uint64_t> width;  // Size of what flows between layers.
  std::optional<uint64_t> vocabulary;
  std::optional<uint64_t> heads, kv_heads;  // Where a config or the file itself says so.
  uint64_t experts = 0;                     // Of each layer that has some.
  bool convolutions = false;  // With kernels wider than one: work grows with the input.
  uint64_t parameters = 0;
  std::map<std::string_view, uint64_t> by_part;  // Parameters, by the name of the part.
};

Structure structure_of(const Catalog& catalog, const Facts& facts);

// A head that holds the same values as the token embedding: one matrix that is stored twice. Null
// where there is none.
const Tensor* tied_head(const Catalog& catalog);

// The token embedding where it also serves as the head, which is not stored; null where not.
const Tensor* embedding_as_head(const Catalog& catalog);

ModelPart part_of(std::string_view name, const Place& place, const Shape& shape);

}  // namespace tensordiff
