// What torch 0.1 wrote: a tar with the members
//
//   storages   a count; for each a pickle (key, location, type), an i64 count of elements, and so
//              many elements; then a pickle of views [(key, key of its root, offset, count)]
//   tensors    a count; for each a pickle (key, storage key, type), an i32 count of axes, 4 bytes,
//              the sizes, the strides and the offset as i64
//   pickle     the object; its persistent ids are keys of tensors or storages, as text
//
// Counts are pickles too. Everything is little-endian. Others write such files without `tensors`,
// and with the storage and its strides in the object as later versions have them.

#include <unordered_map>

#include "base/byte_cursor.h"
#include "base/text.h"
#include "formats/pickle/machine.h"
#include "formats/pickle/rebuild.h"
#include "formats/pickle/walk.h"
#include "formats/tar_archive.h"

namespace tensordiff {
namespace {

using pickle::DataName;
using pickle::Graph;
using pickle::NodeId;

constexpr uint64_t kRecordsMax = 1'000'000;

const ByteSource* find_member(const Archive& archive, std::string_view name) {
  for (const ArchiveFile& file : archive.files)
    if (file.path == name) return &file.source;
  return nullptr;
}

struct Storage {
  ByteSource bytes;
  DType dtype;
};

class OldFile {
 public:
  explicit OldFile(const Limits& limits) : limits_(limits) {}

  Result<void> read_storages(const Bytes& member) {
    uint64_t at = 0;
    const uint64_t count = TRY(read_count(member, at));
    for (uint64_t i = 0; i < count; ++i)
      TRY(read_storage(member, at).in(fmt::format("storage {} of {}", i + 1, count)));
    if (at == member.size()) return {};  // Not torch's own, but some write them so.
    const Graph views = TRY(pickle::read_pickle(member, at, limits_));
    for (const NodeId view : views.items(views.root)) TRY(read_view(views, view));
    return {};
  }

  Result<void> read_tensors(const Bytes& member) {
    uint64_t at = 0;
    const uint64_t count = TRY(read_count(member, at));
    for (uint64_t i = 0; i < count; ++i)
      TRY(read_tensor(member, at).in(fmt::format("tensor {} of {}", i + 1, count)));
    return {};
  }

  Result<ByteSource> storage(std::string_view key) const {
    const auto found = storages_.find(std::string(key));
    if (found == storages_.end()) return Error("storage '{}' is not in the file", printable(key));
    return found->second.bytes;
  }

  // What a persistent id stands for: a tensor, or a storage as a tensor of one axis.
  Result<View> find(std::string_view id) const {
    const auto tensor = tensors_.find(std::string(id));
    if (tensor != tensors_.end()) return tensor->second;
    const auto storage = storages_.find(std::string(id));
    if (storage == storages_.end()) return Error("'{}' is not in the file", printable(id));
    const uint64_t count = storage->second.bytes.size() / item_bytes(storage->second.dtype);
    return contiguous_view(storage->second.dtype, {count}, storage->second.bytes);
  }

 private:
  Result<uint64_t> read_count(const Bytes& member, uint64_t& at) const {
    const Graph graph = TRY(pickle::read_pickle(member, at, limits_));
    at = graph.end;
    const std::optional<int64_t> count = graph.integer(graph.root);
    if (!count || *count < 0 || static_cast<uint64_t>(*count) > kRecordsMax)
      return Error("its count is not a number, or above {}", kRecordsMax);
    return static_cast<uint64_t>(*count);
  }

  static std::optional<std::string> key_of(const Graph& graph, NodeId id) {
    if (const auto number = graph.integer(id)) return std::to_string(*number);
    if (const auto text = graph.string(id)) return std::string(*text);
    return std::nullopt;
  }

  // The three fields of a record's pickle; `at` moves behind it.
  Result<Graph> read_record(const Bytes& member, uint64_t& at) const {
    Graph graph = TRY(pickle::read_pickle(member, at, limits_));
    at = graph.end;
    if (graph.items(graph.root).size() != 3 || !key_of(graph, graph.items(graph.root)[0]))
      return Error("not a key and two more fields");
    return graph;
  }

  Result<void> read_storage(const Bytes& member, uint64_t& at) {
    const Graph graph = TRY(read_record(member, at));
    const std::span<const NodeId> fields = graph.items(graph.root);
    const std::string_view type_name = graph.global(fields[2]);
    const DataName& type = pickle::data_name(type_name);
    if (type.meaning != pickle::Meaning::storage_type || !type.dtype)
      return Error("storage type '{}' is not supported", printable(type_name));
    ByteCursor cursor(member.view);
    cursor.seek(at);
    const int64_t count = cursor.i64();
    const auto bytes =
        count < 0 ? std::nullopt
                  : checked_mul(static_cast<uint64_t>(count), uint64_t{item_bytes(*type.dtype)});
    if (!cursor.ok() || !bytes || *bytes > cursor.remaining())
      return Error("{} elements do not fit in the {} bytes left", count, cursor.remaining());
    at = cursor.position() + *bytes;
    storages_[*key_of(graph, fields[0])] = {ByteSource(member.slice(cursor.position(), *bytes)),
                                            *type.dtype};
    return {};
  }

  Result<void> read_view(const Graph& graph, NodeId view) {
    const std::span<const NodeId> fields = graph.items(view);
    if (fields.size() != 4) return Error("a storage view of {} fields, not 4", fields.size());
    const auto target = key_of(graph, fields[0]), root = key_of(graph, fields[1]);
    const auto offset = graph.integer(fields[2]), count = graph.integer(fields[3]);
    const auto found = root ? storages_.find(*root) : storages_.end();
    if (!target || found == storages_.end() || !offset || !count)
      return Error("a storage view of no known storage");
    const Storage storage = found->second;
    const uint64_t item = item_bytes(storage.dtype), stored = storage.bytes.size() / item;
    if (*offset < 0 || *count < 0 ||
        !range_fits(static_cast<uint64_t>(*offset), static_cast<uint64_t>(*count), stored))
      return Error("a storage view that reaches past its storage");
    storages_[*target] = {storage.bytes.slice(static_cast<uint64_t>(*offset) * item,
                                              static_cast<uint64_t>(*count) * item),
                          storage.dtype};
    return {};
  }

  Result<void> read_tensor(const Bytes& member, uint64_t& at) {
    const Graph graph = TRY(read_record(member, at));
    const std::span<const NodeId> fields = graph.items(graph.root);
    const auto storage_key = key_of(graph, fields[1]);
    const auto storage = storage_key ? storages_.find(*storage_key) : storages_.end();
    if (storage == storages_.end()) return Error("its storage is not in the file");
    ByteCursor cursor(member.view);
    cursor.seek(at);
    const int32_t rank = cursor.i32();
    cursor.skip(4);  // Once the upper half of the rank.
    if (rank < 0 || static_cast<std::size_t>(rank) > kRankMax)
      return Error("{} axes, at most {} are read", rank, kRankMax);
    Shape shape;
    Strides strides;
    for (int32_t axis = 0; axis < rank; ++axis) {
      const int64_t size = cursor.i64();
      if (size < 0) return Error("negative size {}", size);
      shape.push_back(static_cast<uint64_t>(size));
    }
    for (int32_t axis = 0; axis < rank; ++axis) strides.push_back(cursor.i64());
    const int64_t offset = cursor.i64();
    if (!cursor.ok()) return Error("the member ends before it");
    if (offset < 0) return Error("negative offset {}", offset);
    at = cursor.position();
    tensors_[*key_of(graph, fields[0])] =
        TRY(strided_view(storage->second.dtype, std::move(shape), std::move(strides),
                         static_cast<uint64_t>(offset), storage->second.bytes));
    return {};
  }

  const Limits& limits_;
  std::unordered_map<std::string, Storage> storages_;
  std::unordered_map<std::string, View> tensors_;
};

bool recognises(const Bytes& file) {
  if (!is_tar(file)) return false;
  const Result<Archive> archive = read_tar(file, Limits());
  return archive.ok() && find_member(archive.value(), "storages") &&
         find_member(archive.value(), "pickle");
}

Result<Catalog> open(const Input& input) {
  const Bytes file = TRY(input.source.open());
  Archive archive = TRY(read_tar(file, input.limits));
  const auto member = [&](std::string_view name) -> Result<Bytes> {
    const ByteSource* source = find_member(archive, name);
    if (!source) return Error("no member '{}', which torch 0.1 wrote", name);
    return source->open();
  };
  const Bytes storages = TRY(member("storages")), object = TRY(member("pickle"));
  const auto old = std::make_shared<OldFile>(input.limits);
  TRY(old->read_storages(storages).in("storages"));
  if (find_member(archive, "tensors")) {
    const Bytes tensors = TRY(member("tensors"));
    TRY(old->read_tensors(tensors).in("tensors"));
  }
  Graph graph = TRY(pickle::read_pickle(object, 0, input.limits).in("pickle"));
  pickle::TorchFile torch{std::move(graph), {}, "pickle", std::move(archive.problems)};
  torch.storages.tensor = [old](std::string_view id) { return old->find(id); };
  torch.storages.find = [old](std::string_view key) { return old->storage(key); };
  torch.storages.plain_ids = true;
  return pickle::collect_tensors(std::move(torch), input.limits);
}

}  // namespace

constinit const Format formats::torch_tar = {
    .name = "torch-tar",
    .summary = "PyTorch files of version 0.1, which are tars",
    .extensions = ".pt .pth .tar",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
