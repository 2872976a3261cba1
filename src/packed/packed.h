// Weights that are stored as small levels with their scales in tensors beside them: fp8 and int8
// with scales, GPTQ, AWQ, bitsandbytes, compressed-tensors, MXFP4 and NVFP4.
//
// unpack() makes each of them one tensor that has the values and the shape that are meant, and that
// is paired by the name of the weight. Values are decoded when they are read. What was beside it is
// auxiliary from then on.
//
// To add a packing: write packed/<name>.cpp and add it to the list below.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "tensor/catalog.h"

namespace tensordiff {

// One tensor of a catalog and those beside it, by name.
class Siblings {
 public:
  using Index = std::unordered_map<std::string_view, const Tensor*>;

  Siblings(const Tensor& tensor, const Index& index, const std::vector<Metadata>& metadata)
      : tensor_(tensor), index_(index), metadata_(metadata) {}

  const Tensor& tensor() const { return tensor_; }
  // Its name without this ending; nothing where it does not end so, or is nothing but that.
  std::optional<std::string> stem(std::string_view ending) const;
  // A readable tensor of this name; null where there is none.
  const Tensor* named(const std::string& name) const;
  // A value of config.json below "quantization_config.", "" where it is not there.
  std::string_view setting(std::string_view key) const;

 private:
  const Tensor& tensor_;
  const Index& index_;
  const std::vector<Metadata>& metadata_;
};

struct Unpacked {
  View view;                        // As it is meant.
  std::string name;                 // Of the weight.
  std::string from;                 // "int4 (GPTQ, groups of 128)"
  std::vector<const Tensor*> with;  // What is stored beside the levels.
};

struct Packing {
  std::string_view name;
  std::string_view summary;  // One line for docs/formats.md.
  // Nothing where the tensor is not packed so; an error where it is, but its parts do not fit.
  Result<std::optional<Unpacked>> (*unpack)(const Siblings& siblings);
};

namespace packings {

extern const Packing gptq;
extern const Packing awq;
extern const Packing bitsandbytes;
extern const Packing packed_integers;
extern const Packing small_floats;
extern const Packing scaled;

// Tried in this order; the first that knows a tensor has it.
inline constexpr const Packing* kAll[] = {&gptq,         &awq,   &bitsandbytes, &packed_integers,
                                          &small_floats, &scaled};

}  // namespace packings

// The view with its last two axes exchanged, where inputs are stored before outputs.
View turned(View view);

// Replaces the levels of packed weights by the weights. What cannot be decoded stays as it is
// stored, and a problem says why.
void unpack(Catalog& catalog);

}  // namespace tensordiff
