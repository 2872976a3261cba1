// Tells what tensor a call in a pickle would have made, from its arguments alone.
//
// torch writes a tensor as torch._utils._rebuild_tensor_v2(storage, offset, size, stride, ...),
// numpy an array as _reconstruct(...) with shape, type and bytes in its state. Nothing is called:
// the arguments are checked and become a View of the storage's bytes.

#pragma once

#include <map>
#include <memory>
#include <unordered_map>

#include "formats/pickle/torch_file.h"
#include "tensor/tensor.h"

namespace tensordiff::pickle {

// A torch file in a bytes object of a pickle, in a pickle ... this deep.
inline constexpr int kNestedFilesMax = 2;

class Rebuilder {
 public:
  Rebuilder(const Graph& graph, const Storages& storages, const Limits& limits, int depth = 0)
      : graph_(graph), storages_(storages), limits_(limits), depth_(depth) {}

  const Graph& graph() const { return graph_; }
  Meaning meaning(NodeId call) const;

  // Whether a persistent id stands for a whole tensor, as it does in files of torch 0.1.
  bool is_tensor_id(NodeId id) const;

  // The tensor behind a node that means one; an error where there is something wrong with it.
  Result<View> tensor(NodeId id, int depth = 0);

  // torch.Size(...) or any other sequence of sizes; torch.float32.
  Result<Shape> shape(NodeId sequence) const;
  Result<DType> dtype(NodeId global) const;

  // All of a storage as one axis; bytes when it has no type.
  Result<View> whole_storage(NodeId id);

  // An array of Python objects has a list of them in place of bytes.
  std::optional<NodeId> array_objects(NodeId array) const;
  // An array of strings is no tensor.
  bool is_text_array(NodeId array) const;

  // The file inside a torch.storage._load_from_bytes call. It is read once for all calls with the
  // same bytes.
  struct Nested {
    TorchFile file;
    std::unique_ptr<Rebuilder> rebuilder;
  };
  Result<Nested*> nested(NodeId call);
  const std::map<NodeId, Result<Nested>>& nested_files() const { return nested_; }  // By bytes.

 private:
  struct Storage {
    ByteSource bytes;
    std::optional<DType> dtype;  // Nothing: untyped.
    bool quantized = false;
    bool swapped = false;
  };
  struct ArrayType {
    DType dtype;
    bool swapped;
  };
  struct Layout {
    Shape shape;
    Strides strides;
    uint64_t offset = 0;
  };
  using Args = std::span<const NodeId>;

  // torch_rebuild.cpp
  Result<Args> arguments(NodeId call, std::size_t count_min) const;
  Result<std::vector<int64_t>> integers(NodeId sequence) const;
  Result<Storage> storage(NodeId id);
  Result<Layout> layout(Args args) const;
  Result<View> strided(Args args, std::optional<DType> dtype);
  Result<View> adjusted(View view, Args args, std::size_t metadata) const;
  Result<View> from_state(NodeId call, int depth);
  Result<View> quantized(Args args, int depth);
  Result<View> sparse(Args args, int depth);
  Result<View> from_type(Args args, int depth);
  Result<View> rebuild(Meaning meaning, Args args, int depth);

  // numpy_rebuild.cpp
  Result<View> array(NodeId call);
  Result<View> array_from_buffer(NodeId call);
  Result<View> array_scalar(NodeId call);
  Result<View> array_view(NodeId type, Shape shape, bool fortran, NodeId data);
  std::string_view array_code(NodeId type) const;
  Result<ArrayType> array_type(NodeId type) const;
  Result<Bytes> bytes(NodeId id);
  Result<Bytes> copied(NodeId id, bool latin1);

  const Graph& graph_;
  const Storages& storages_;
  const Limits& limits_;
  int depth_;
  std::unordered_map<std::string_view, StorageId> described_;  // By key, as first seen.
  std::unordered_map<NodeId, Bytes> copied_;  // Bytes that are not in the pickle as they stand.
  std::map<NodeId, Result<Nested>> nested_;
};

}  // namespace tensordiff::pickle
