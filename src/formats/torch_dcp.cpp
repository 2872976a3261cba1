// torch.distributed.checkpoint: a folder with the pickle ".metadata" and files "__0_0.distcp".
//
//   Metadata.state_dict_metadata   name -> TensorStorageMetadata(properties, size, chunks), where a
//                                  chunk has its offsets and sizes; or BytesStorageMetadata
//   Metadata.storage_data          MetadataIndex(fqn, offset) -> _StorageInfo(relative_path,
//                                  offset, length): where each chunk lies
//
// Each chunk is a whole torch file inside a .distcp file. A tensor is put together as a view whose
// parts are its chunks: nothing is copied. Chunks must fill the tensor exactly.

#include <algorithm>

#include "base/text.h"
#include "formats/folder.h"
#include "formats/limits.h"
#include "formats/pickle/machine.h"
#include "formats/pickle/rebuild.h"
#include "formats/pickle/walk.h"

namespace tensordiff {
namespace {

using pickle::Graph;
using pickle::NodeId;
using pickle::Rebuilder;

constexpr std::size_t kAttributesMax = 64;        // Of an object of the metadata.
constexpr std::size_t kComparedMax = 50'000'000;  // Pairs of chunks looked at for overlaps.

struct StoredAt {
  std::string_view file;
  uint64_t offset = 0, bytes = 0;
};

bool overlap(const Part& a, const Part& b) {
  for (std::size_t axis = 0; axis < a.shape.size(); ++axis)
    if (a.origin[axis] + a.shape[axis] <= b.origin[axis] ||
        b.origin[axis] + b.shape[axis] <= a.origin[axis])
      return false;
  return true;
}

// Boxes inside the shape that do not overlap and have its count of elements fill it.
Result<void> check_coverage(View& view) {
  uint64_t covered = 0;
  for (const Part& part : view.parts) covered += element_count(part.shape).value_or(0);
  if (view.shape.empty())
    return view.parts.size() == 1 ? Result<void>() : Error("{} chunks", view.parts.size());
  std::ranges::sort(view.parts, {}, [](const Part& part) { return part.origin[0]; });
  std::size_t compared = 0;
  for (std::size_t i = 0; i < view.parts.size(); ++i) {
    const uint64_t end = view.parts[i].origin[0] + view.parts[i].shape[0];
    for (std::size_t j = i + 1; j < view.parts.size() && view.parts[j].origin[0] < end; ++j) {
      if (++compared > kComparedMax) return Error("too many chunks beside each other");
      if (overlap(view.parts[i], view.parts[j])) return Error("two of its chunks overlap");
    }
  }
  if (covered != view.elements())
    return Error("its chunks hold {} of {} elements", covered, view.elements());
  return {};
}

class Checkpoint {
 public:
  Checkpoint(const Folder& folder, const Graph& metadata)
      : folder_(folder), graph_(metadata), rebuilder_(graph_, no_storages_, folder.limits) {}

  Result<Catalog> read() {
    const std::optional<NodeId> tensors = attribute(graph_.root, "state_dict_metadata");
    const std::optional<NodeId> places = attribute(graph_.root, "storage_data");
    if (!tensors || !places || graph_.kind(*tensors) != pickle::Kind::dict ||
        graph_.kind(*places) != pickle::Kind::dict)
      return Error(".metadata: not that of a checkpoint: no state_dict_metadata or storage_data");
    TRY(read_places(graph_.items(*places)).in(".metadata"));
    const std::span<const NodeId> entries = graph_.items(*tensors);
    if (entries.size() / 2 > folder_.limits.tensors_max)
      return limit_hit("tensors", fmt::format("more than {} tensors", folder_.limits.tensors_max));
    for (std::size_t i = 0; i + 1 < entries.size(); i += 2) read_entry(entries[i], entries[i + 1]);
    make_names_unique(catalog_);
    return std::move(catalog_);
  }

 private:
  std::optional<NodeId> attribute(NodeId object, std::string_view name) const {
    const pickle::Call* call = graph_.call(object);
    if (!call || !call->state || graph_.items(*call->state).size() > 2 * kAttributesMax)
      return std::nullopt;
    return graph_.find(*call->state, name);
  }

  std::string_view class_of(NodeId object) const {
    const pickle::Call* call = graph_.call(object);
    const std::string_view name = call ? graph_.global(call->callee) : std::string_view();
    return name.substr(name.rfind('.') + 1);
  }

  Result<std::string> key(std::string_view name, NodeId offset) const {
    if (offset == pickle::kNone) return std::string(name);
    const Shape origin = TRY(rebuilder_.shape(offset));
    return fmt::format("{} {}", name, shape_text(origin));
  }

  Result<void> read_places(std::span<const NodeId> pairs) {
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      const std::optional<NodeId> fqn = attribute(pairs[i], "fqn");
      const std::optional<std::string_view> name = fqn ? graph_.string(*fqn) : std::nullopt;
      if (!name) return Error("an entry of storage_data without a name");
      std::string at = TRY(key(*name, attribute(pairs[i], "offset").value_or(pickle::kNone)));
      const StoredAt place =
          TRY(read_stored_at(pairs[i + 1]).in(fmt::format("'{}'", printable(at))));
      if (!places_.emplace(std::move(at), place).second)
        return Error("'{}' is stored in two places", printable(*name));
    }
    return {};
  }

  Result<StoredAt> read_stored_at(NodeId info) const {
    const auto number = [&](std::string_view name) -> std::optional<int64_t> {
      const std::optional<NodeId> value = attribute(info, name);
      return value ? graph_.integer(*value) : std::nullopt;
    };
    const std::optional<NodeId> path = attribute(info, "relative_path");
    const std::optional<std::string_view> file = path ? graph_.string(*path) : std::nullopt;
    const std::optional<int64_t> offset = number("offset"), bytes = number("length");
    if (!file || !offset || !bytes || *offset < 0 || *bytes < 0)
      return Error("its file is not recorded");
    const NodeId transforms = attribute(info, "transform_descriptors").value_or(pickle::kNone);
    if (!graph_.items(transforms).empty()) return Error("stored compressed, which is not read");
    return StoredAt{*file, static_cast<uint64_t>(*offset), static_cast<uint64_t>(*bytes)};
  }

  void read_entry(NodeId name_node, NodeId entry) {
    const std::string name(graph_.string(name_node).value_or("?"));
    if (class_of(entry) == "BytesStorageMetadata") return read_object(name);
    Result<View> view = read_tensor(name, entry);
    Tensor tensor = broken_tensor(name, view.ok() ? "" : view.error().message());
    if (view.ok()) tensor.view = std::move(view).value();
    catalog_.tensors.push_back(std::move(tensor));
  }

  Result<Bytes> stored(const std::string& at) const {
    const auto found = places_.find(at);
    if (found == places_.end()) return Error("the file of '{}' is not recorded", printable(at));
    const StoredAt& place = found->second;
    const ByteSource file = TRY(folder_.file(place.file));
    if (!range_fits(place.offset, place.bytes, file.size()))
      return Error("'{}' has {} bytes, but a chunk is said to be at {} to {}",
                   printable(place.file), file.size(), place.offset, place.offset + place.bytes);
    return TRY(file.open()).slice(place.offset, place.bytes);
  }

  // Any value that is no tensor is a torch file of its own: numbers, lists of tensors.
  void read_object(const std::string& name) {
    const auto read = [&]() -> Result<Catalog> {
      const Bytes bytes = TRY(stored(name));
      pickle::TorchFile file = TRY(pickle::read_torch_file(bytes, folder_.limits));
      file.where = name;
      return pickle::collect_tensors(std::move(file), folder_.limits);
    };
    Result<Catalog> inside = read();
    if (!inside.ok()) return catalog_.problems.push_back({name, inside.error().message()});
    for (Tensor& tensor : inside.value().tensors) {
      tensor.name = tensor.name.empty() ? name : name + "." + tensor.name;
      catalog_.tensors.push_back(std::move(tensor));
    }
    for (Problem& problem : inside.value().problems)
      catalog_.problems.push_back(std::move(problem));
  }

  Result<DType> element_type(NodeId entry) const {
    const std::optional<NodeId> properties = attribute(entry, "properties");
    if (!properties) return Error("no properties");
    if (const auto dtype = attribute(*properties, "dtype")) return rebuilder_.dtype(*dtype);
    const pickle::Call* call = graph_.call(*properties);
    if (!call || !call->state || graph_.items(*call->state).empty()) return Error("no dtype");
    return rebuilder_.dtype(graph_.items(*call->state)[0]);
  }

  Result<View> read_tensor(const std::string& name, NodeId entry) {
    const std::optional<NodeId> size = attribute(entry, "size");
    const std::optional<NodeId> chunks = attribute(entry, "chunks");
    if (!size || !chunks) return Error("its size or its chunks are missing");
    View view;
    view.dtype = TRY(element_type(entry));
    view.shape = TRY(rebuilder_.shape(*size));
    if (!element_count(view.shape)) return Error("shape {} is too large", shape_text(view.shape));
    for (const NodeId chunk : graph_.items(*chunks)) TRY(add_chunk(view, name, chunk));
    if (view.parts.empty() && view.elements() == 0)
      return contiguous_view(view.dtype, view.shape, ByteSource());
    TRY(check_coverage(view));
    return view;
  }

  Result<void> add_chunk(View& view, const std::string& name, NodeId chunk) {
    const std::optional<NodeId> offsets = attribute(chunk, "offsets");
    const std::optional<NodeId> sizes = attribute(chunk, "sizes");
    if (!offsets || !sizes) return Error("a chunk without offsets or sizes");
    Part part;
    part.origin = TRY(rebuilder_.shape(*offsets));
    part.shape = TRY(rebuilder_.shape(*sizes));
    const std::string place = fmt::format("chunk at {}", shape_text(part.origin));
    if (part.origin.size() != view.shape.size() || part.shape.size() != view.shape.size())
      return Error("a chunk of other rank than the tensor").in(place);
    for (std::size_t axis = 0; axis < part.shape.size(); ++axis)
      if (!range_fits(part.origin[axis], part.shape[axis], view.shape[axis]))
        return Error("it reaches past the tensor's shape {}", shape_text(view.shape)).in(place);

    const std::string at = TRY(key(name, *offsets));
    const Bytes bytes = TRY(stored(at).in(place));
    const pickle::TorchFile file = TRY(pickle::read_torch_file(bytes, folder_.limits).in(place));
    Rebuilder inside(file.graph, file.storages, folder_.limits);
    View stored_view = TRY(inside.tensor(file.graph.root).in(place));
    if (stored_view.shape != part.shape || stored_view.dtype != view.dtype)
      return Error("{} {} stored, {} {} expected", name_of(stored_view.dtype),
                   shape_text(stored_view.shape), name_of(view.dtype), shape_text(part.shape))
          .in(place);
    if (!view.parts.empty() && view.swapped != stored_view.swapped)
      return Error("written in another byte order than the others").in(place);
    view.swapped = stored_view.swapped;
    if (stored_view.elements() == 0) return {};
    Part& inner = stored_view.parts[0];
    part.strides = std::move(inner.strides);
    part.offset = inner.offset;
    part.source = std::move(inner.source);
    view.parts.push_back(std::move(part));
    return {};
  }

  const Folder& folder_;
  const Graph& graph_;
  pickle::Storages no_storages_;
  Rebuilder rebuilder_;
  std::unordered_map<std::string, StoredAt> places_;
  Catalog catalog_;
};

bool starts(std::string_view file) { return file == ".metadata"; }

bool owns(std::string_view path) {
  return path == ".metadata" ||
         (path.ends_with(".distcp") && path.find('/') == std::string_view::npos);
}

Result<Catalog> open(const Folder& folder) {
  const ByteSource source = TRY(folder.file(".metadata"));
  const Bytes file = TRY(source.open());
  const Graph metadata = TRY(pickle::read_pickle(file, 0, folder.limits).in(".metadata"));
  return Checkpoint(folder, metadata).read();
}

}  // namespace

constinit const FolderFormat folders::torch_dcp = {
    .name = "torch-dcp",
    .summary = "torch.distributed.checkpoint folders, put together from their chunks",
    .starts = starts,
    .owns = owns,
    .open = open,
};

}  // namespace tensordiff
