// zarr, versions 2 and 3: a folder for each array, with a file for each chunk of it.
//
//   <array>/.zarray     version 2: JSON with shape, chunks, dtype, compressor; chunks "0.1" or
//   "0/1" <array>/zarr.json   version 3: the same with a list of codecs; chunks "c/0/1"
//   <group>/.zgroup     only says that there are arrays below
//
// A chunk that is missing is full of the fill value. Checkpoints of Orbax are such folders, with
// files of their own beside the arrays; those that Orbax writes by default, in one store for all
// arrays (OCDBT: manifest.ocdbt), are declined.

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "formats/checksum.h"
#include "formats/chunks.h"
#include "formats/codecs.h"
#include "formats/folder.h"
#include "formats/inflate.h"
#include "formats/limits.h"
#include "formats/zarr_info.h"

namespace tensordiff {
namespace {

using zarr::ArrayInfo;
using zarr::Codec;

constexpr std::string_view kArray2 = ".zarray", kNode3 = "zarr.json", kStore = "manifest.ocdbt";

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

Result<std::string> without_checksum(std::string bytes) {
  if (bytes.size() < 4) return Error("no room for its checksum");
  uint32_t recorded = 0;
  std::memcpy(&recorded, bytes.data() + bytes.size() - 4, 4);
  bytes.resize(bytes.size() - 4);
  if (crc32c(as_bytes(bytes)) != recorded) return Error("its checksum does not match");
  return bytes;
}

// One codec undone; `bytes` is what must come out of it.
Result<std::string> undo(Codec codec, std::string packed, uint64_t bytes, std::size_t item) {
  const ByteView view = as_bytes(packed);
  switch (codec) {
    case Codec::gzip:
      return unpack_gzip(view, bytes);
    case Codec::zlib:
      return inflate_zlib(view, bytes);
    case Codec::zstd:
      return unpack_zstd(view, bytes);
    case Codec::blosc:
      return unpack_blosc(view, bytes);
    case Codec::lz4:  // Behind its size.
      return unpack_lz4(view.subspan(std::min<std::size_t>(4, view.size())), bytes);
    case Codec::shuffle:
      return unshuffle(packed, item);
    case Codec::crc32c:
      return without_checksum(std::move(packed));
  }
  return packed;
}

// The bytes of one chunk, all codecs undone from the last to the first.
Result<std::string> unpack(const ByteSource& source, const ArrayInfo& array, uint64_t bytes) {
  const Bytes file = TRY(source.open());
  std::string packed(as_text(file.view));
  for (std::size_t i = array.codecs.size(); i-- > 0;) {
    uint64_t before = bytes;
    for (std::size_t j = 0; j < i; ++j) before += array.codecs[j] == Codec::crc32c ? 4 : 0;
    packed = TRY(undo(array.codecs[i], std::move(packed), before, item_bytes(array.dtype)));
  }
  return packed;
}

Shape permuted(const Shape& shape, const std::vector<std::size_t>& order) {
  Shape out;
  for (const std::size_t axis : order) out.push_back(shape[axis]);
  return out;
}

// From axes in the order in which they are stored to their own.
void put_back(View& view, const Shape& shape, const std::vector<std::size_t>& order) {
  view.shape = shape;
  for (Part& part : view.parts) {
    Strides strides(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) strides[order[i]] = part.strides[i];
    part.strides = std::move(strides);
    part.shape = shape;
  }
}

// The chunks of an array, by their places in the grid.
struct Chunks {
  std::vector<Shape> origins;
  std::vector<ByteSource> sources;
};

class ZarrReader {
 public:
  explicit ZarrReader(const Folder& folder) : folder_(folder) {}

  Result<Catalog> read() {
    bool has_store = false;
    for (const auto& [path, source] : folder_.files) {
      has_store |= file_name(path) == kStore;
      if (file_name(path) == kArray2 || file_name(path) == kNode3) read_node(path, source);
      if (catalog_.tensors.size() > folder_.limits.tensors_max)
        return limit_hit("tensors", fmt::format("more than {} arrays", folder_.limits.tensors_max));
    }
    const Error declined(
        "an OCDBT store, which is not read; Orbax writes plain zarr with use_ocdbt=False");
    if (catalog_.tensors.empty()) return has_store ? declined : Error("no zarr array in it");
    if (has_store) catalog_.problems.push_back({std::string(kStore), declined.message()});
    return std::move(catalog_);
  }

 private:
  void read_node(const std::string& path, const ByteSource& source) {
    const std::string folder = path.substr(0, path.size() - file_name(path).size());
    const std::string name = folder.substr(0, folder.empty() ? 0 : folder.size() - 1);
    const auto add = [&]() -> Result<void> {
      if (source.size() > folder_.limits.json_bytes_max)
        return limit_hit("json",
                         fmt::format("more than {}", human_bytes(folder_.limits.json_bytes_max)));
      const Bytes text = TRY(source.open());
      const Json json = TRY(Json::parse(as_text(text.view)));
      const bool third = file_name(path) == kNode3;
      if (third && json["node_type"].string() != "array") return {};
      const ArrayInfo array = TRY(third ? zarr::read_version3(json) : zarr::read_version2(json));
      View view = TRY(view_of(array, chunks_of(array, folder)));
      catalog_.tensors.push_back({name, std::move(view), {}});
      return {};
    };
    if (const Result<void> added = add(); !added.ok())
      catalog_.tensors.push_back(broken_tensor(name, added.error().message()));
  }

  Chunks chunks_of(const ArrayInfo& array, const std::string& folder) const {
    Chunks chunks;
    for (auto file = folder_.files.lower_bound(folder);
         file != folder_.files.end() && file->first.starts_with(folder); ++file) {
      const std::optional<Shape> index = array.grid_index(file->first.substr(folder.size()));
      if (!index) continue;
      Shape origin;
      for (std::size_t axis = 0; axis < index->size(); ++axis)
        origin.push_back(checked_mul((*index)[axis], array.chunk_shape[axis]).value_or(UINT64_MAX));
      chunks.origins.push_back(std::move(origin));
      chunks.sources.push_back(file->second);
    }
    return chunks;
  }

  Result<View> view_of(const ArrayInfo& array, Chunks chunks) const {
    // A number alone is one chunk of one element.
    const bool scalar = array.shape.empty();
    const Shape shape = scalar ? Shape{1} : array.shape;
    const Shape chunk = scalar ? Shape{1} : array.chunk_shape;
    const std::vector<std::size_t> order = scalar ? std::vector<std::size_t>{0} : array.order;
    const bool plain = array.codecs.empty() && chunks.sources.size() == 1 && chunk == shape;
    View view;
    if (plain && !scalar) {
      view = TRY(contiguous_view(array.dtype, permuted(shape, order), chunks.sources[0]));
      if (const uint64_t needed = stored_bytes(array.dtype, view.elements());
          chunks.sources[0].size() != needed)
        return Error("a chunk of {} bytes where {} are expected", chunks.sources[0].size(), needed);
      view.swapped = array.swapped;
    } else {
      view = TRY(assembled(array, permuted(shape, order), permuted(chunk, order), chunks));
    }
    put_back(view, shape, order);
    if (!scalar) return view;
    View number = TRY(contiguous_view(view.dtype, {}, view.parts[0].source));
    number.swapped = view.swapped;
    return number;
  }

  Result<View> assembled(const ArrayInfo& array, Shape shape, Shape chunk,
                         const Chunks& chunks) const {
    ChunkedArray whole{
        array.dtype, array.swapped, std::move(shape), std::move(chunk), array.fill, {}, {}};
    for (const Shape& origin : chunks.origins)
      whole.origins.push_back(array.shape.empty() ? Shape{0} : permuted(origin, array.order));
    uint64_t bytes = item_bytes(array.dtype);
    for (const uint64_t size : whole.chunk_shape)
      bytes = checked_mul(bytes, size).value_or(UINT64_MAX);
    const auto shared = std::make_shared<const std::pair<ArrayInfo, Chunks>>(array, chunks);
    whole.unpack = [shared, bytes](std::size_t i) {
      return unpack(shared->second.sources[i], shared->first, bytes);
    };
    return chunked_view(std::move(whole), folder_.limits);
  }

  const Folder& folder_;
  Catalog catalog_;
};

bool starts(std::string_view file) {
  constexpr std::string_view kMarks[] = {
      kArray2, kNode3, kStore, ".zgroup", ".zmetadata", "_METADATA", "_CHECKPOINT_METADATA"};
  return std::ranges::find(kMarks, file) != std::end(kMarks);
}

// What describes arrays, chunks (names of digits), and the files that Orbax has beside them.
bool owns(std::string_view path) {
  const std::string_view name = file_name(path);
  constexpr std::string_view kBeside[] = {".zattrs", "_sharding", "c"};
  if (starts(name) || std::ranges::find(kBeside, name) != std::end(kBeside)) return true;
  if (path.find("array_metadatas/") != std::string_view::npos) return true;
  if (path.find("ocdbt.process_") != std::string_view::npos) return true;
  if (path.starts_with("d/") || path.find("/d/") != std::string_view::npos) return true;
  const std::string_view numbers = name.starts_with("c.") ? name.substr(2) : name;
  return numbers.find_first_not_of("0123456789.") == std::string_view::npos;
}

Result<Catalog> open(const Folder& folder) {
  Catalog catalog = TRY(ZarrReader(folder).read());
  make_names_unique(catalog);
  return catalog;
}

}  // namespace

constinit const FolderFormat folders::zarr = {
    .name = "zarr",
    .summary = "zarr arrays of versions 2 and 3, Orbax checkpoints in plain zarr",
    .starts = starts,
    .owns = owns,
    .open = open,
};

}  // namespace tensordiff
