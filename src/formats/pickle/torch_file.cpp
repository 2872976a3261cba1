#include "formats/pickle/torch_file.h"

#include "base/text.h"

namespace tensordiff::pickle {
namespace {

Result<uint64_t> count_at(const Graph& graph, std::span<const NodeId> fields, std::size_t index) {
  const std::optional<int64_t> count = graph.integer(fields[index]);
  if (!count || *count < 0) return Error("a storage whose size is not a count");
  return static_cast<uint64_t>(*count);
}

}  // namespace

Result<StorageId> read_storage_id(const Graph& graph, NodeId persistent, bool plain) {
  const bool marked = graph.kind(persistent) == Kind::persistent;
  if (!marked && !plain) return Error("not a storage");
  const NodeId id = marked ? graph.items(persistent)[0] : persistent;
  const std::span<const NodeId> fields = graph.items(id);
  if (graph.kind(id) != Kind::tuple || fields.size() < 5 || graph.string(fields[0]) != "storage")
    return Error("a persistent id that is not that of a storage");

  const std::string_view type_name = graph.global(fields[1]);
  const DataName& type = data_name(type_name);
  const bool untyped = type.meaning == Meaning::untyped_storage;
  if (!untyped && (type.meaning != Meaning::storage_type || !type.dtype))
    return Error("storage type '{}' is not supported", printable(type_name));

  const std::optional<std::string_view> key = graph.string(fields[2]);
  if (!key) return Error("a storage whose key is not a string");
  const uint64_t count = TRY(count_at(graph, fields, 4));
  StorageId storage{*key, type_name, &type, count};
  storage.view_count = storage.count;
  if (fields.size() < 6 || graph.kind(fields[5]) != Kind::tuple) return storage;

  const std::span<const NodeId> view = graph.items(fields[5]);
  if (view.size() != 3) return Error("a storage view of {} fields, not 3", view.size());
  storage.view_offset = TRY(count_at(graph, view, 1));
  storage.view_count = TRY(count_at(graph, view, 2));
  if (!range_fits(storage.view_offset, storage.view_count, storage.count))
    return Error("a storage view that reaches past its storage");
  return storage;
}

Result<TorchFile> read_torch_file(const Bytes& file, const Limits& limits) {
  if (is_torch_legacy(file)) return read_torch_legacy(file, limits);
  if (is_torch_zip(file)) return read_torch_zip(file, limits);
  return Error("neither a zip nor a legacy torch file");
}

}  // namespace tensordiff::pickle
