// A torch file taken apart: the pickle, and the storages that it refers to by key.
//
// A pickle names a storage by a persistent id: ('storage', type, key, location, element count), to
// which files of the legacy format add None or (view key, offset, size). The key is any string; it
// is looked up and never used as a path. The location (cpu, cuda:0) does not matter to the values.

#pragma once

#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "formats/format.h"
#include "formats/pickle/globals.h"
#include "formats/pickle/graph.h"

namespace tensordiff::pickle {

struct StorageId {
  std::string_view key;
  std::string_view type_name;  // "torch.FloatStorage"
  const DataName* type;
  uint64_t count = 0;        // In elements of the type; in bytes for an untyped storage.
  uint64_t view_offset = 0;  // The part that is meant, in elements.
  uint64_t view_count = 0;

  uint64_t item_bytes() const { return type->dtype ? tensordiff::item_bytes(*type->dtype) : 1; }
};

// Says what is wrong when the persistent id does not describe a storage. `plain`: it may also be a
// tuple that is not marked as one.
Result<StorageId> read_storage_id(const Graph& graph, NodeId persistent, bool plain = false);

struct Storages {
  std::function<Result<ByteSource>(std::string_view key)> find;
  bool swapped = false;  // Written on a machine of the other byte order.
  // Files of torch 0.1 have whole tensors behind their persistent ids, which are numbers as text.
  std::function<Result<View>(std::string_view id)> tensor = {};
  bool plain_ids = false;  // Others who write such files leave out the mark of a persistent id.
};

// The storages that were looked up, where somebody keeps account of them.
using UsedKeys = std::shared_ptr<std::set<std::string, std::less<>>>;

struct TorchFile {
  Graph graph;
  Storages storages;
  std::string where;  // What to call the pickle in messages: "data.pkl".
  std::vector<Problem> problems;
  UsedKeys used = {};
  bool scripted = false;  // TorchScript: the classes it names, __torch__.*, are its own.
};

bool is_torch_zip(const Bytes& file);
bool is_torch_legacy(const Bytes& file);
Result<TorchFile> read_torch_zip(const Bytes& file, const Limits& limits);
Result<TorchFile> read_torch_legacy(const Bytes& file, const Limits& limits);

// Either of the two.
Result<TorchFile> read_torch_file(const Bytes& file, const Limits& limits);

}  // namespace tensordiff::pickle
