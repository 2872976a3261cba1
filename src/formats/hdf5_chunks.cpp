#include "formats/hdf5_chunks.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "formats/inflate.h"
#include "formats/limits.h"

namespace tensordiff::hdf5 {
namespace {

constexpr uint64_t kChunkBytesMax = 1ULL << 30;  // Of one chunk, and of what is made at a time.

// The sum of 16-bit words and the sum of those sums, as HDF5 takes it: big-endian words, the two
// halves folded whenever they might run over.
uint32_t fletcher32(ByteView bytes) {
  uint32_t first = 0, second = 0;
  std::size_t at = 0, words = bytes.size() / 2;
  const auto byte = [&](std::size_t i) { return std::to_integer<uint32_t>(bytes[i]); };
  while (words > 0) {
    const std::size_t now = std::min<std::size_t>(words, 360);
    for (std::size_t i = 0; i < now; ++i, at += 2) {
      first += byte(at) << 8 | byte(at + 1);
      second += first;
    }
    first = (first & 0xffff) + (first >> 16);
    second = (second & 0xffff) + (second >> 16);
    words -= now;
  }
  if (bytes.size() % 2) {
    first += byte(at) << 8;
    second += first;
    first = (first & 0xffff) + (first >> 16);
    second = (second & 0xffff) + (second >> 16);
  }
  first = (first & 0xffff) + (first >> 16);
  second = (second & 0xffff) + (second >> 16);
  return second << 16 | first;
}

// All first bytes of the elements, then all second ones ...: back to elements.
std::string unshuffle(std::string_view bytes, std::size_t item) {
  std::string plain(bytes);
  const std::size_t count = bytes.size() / item;
  for (std::size_t part = 0; part < item; ++part)
    for (std::size_t i = 0; i < count; ++i) plain[i * item + part] = bytes[part * count + i];
  return plain;
}

class Unpacker {
 public:
  Unpacker(Dataset dataset, Bytes file) : dataset_(std::move(dataset)), file_(std::move(file)) {
    item_ = item_bytes(dataset_.dtype);
    chunk_bytes_ = item_;
    for (const uint64_t size : dataset_.chunk_shape) chunk_bytes_ *= size;
    // Whole layers of chunks are made at a time: steps along the first axis that has any.
    while (axis_ + 1 < dataset_.shape.size() && dataset_.shape[axis_] == 1) ++axis_;
    layer_bytes_ = item_ * dataset_.chunk_shape[axis_];
    for (std::size_t inner = axis_ + 1; inner < dataset_.shape.size(); ++inner)
      layer_bytes_ *= dataset_.shape[inner];
    std::ranges::stable_sort(dataset_.chunks, {},
                             [&](const Chunk& chunk) { return chunk.origin[axis_]; });
  }

  uint64_t layer_bytes() const { return layer_bytes_; }

  Result<Bytes> make() const {
    const uint64_t rows = dataset_.shape[axis_], step = dataset_.chunk_shape[axis_];
    const uint64_t row_bytes = layer_bytes_ / step;
    const bool small = rows * row_bytes <= kInflateInMemoryMax;
    std::string memory;
    std::optional<SpillFile> spill;
    if (!small) spill.emplace(TRY(SpillFile::create()));
    auto chunk = dataset_.chunks.begin();
    for (uint64_t row = 0; row < rows; row += step) {
      std::string layer = filled();
      for (; chunk != dataset_.chunks.end() && chunk->origin[axis_] == row; ++chunk)
        TRY(place(*chunk, layer));
      const uint64_t bytes = std::min(step, rows - row) * row_bytes;
      if (small) memory.append(layer, 0, bytes);
      if (!small) TRY(spill->append(as_bytes(layer).first(bytes)));
    }
    if (small) return bytes_of(std::move(memory));
    return std::move(*spill).map();
  }

 private:
  std::string filled() const {
    std::string layer(layer_bytes_, '\0');
    if (dataset_.fill.find_first_not_of('\0') == std::string::npos) return layer;
    for (std::size_t at = 0; at < layer.size(); at += item_)
      layer.replace(at, item_, dataset_.fill);
    return layer;
  }

  // How many bytes there are before the filter of this number was applied.
  uint64_t bytes_before(std::size_t filter, uint32_t skipped) const {
    uint64_t bytes = chunk_bytes_;
    for (std::size_t i = 0; i < filter; ++i)
      if (dataset_.filters[i] == Filter::fletcher32 && !(skipped >> i & 1)) bytes += 4;
    return bytes;
  }

  Result<std::string> unfiltered(const Chunk& chunk) const {
    std::string bytes(as_text(file_.view.subspan(chunk.address, chunk.bytes)));
    for (std::size_t i = dataset_.filters.size(); i-- > 0;) {
      if (chunk.skipped >> i & 1) continue;
      switch (dataset_.filters[i]) {
        case Filter::deflate:
          bytes = TRY(inflate_zlib(as_bytes(bytes), bytes_before(i, chunk.skipped)));
          break;
        case Filter::shuffle:
          bytes = unshuffle(bytes, item_);
          break;
        case Filter::fletcher32: {
          if (bytes.size() < 4) return Error("no room for its checksum");
          uint32_t recorded = 0;
          std::memcpy(&recorded, bytes.data() + bytes.size() - 4, 4);
          bytes.resize(bytes.size() - 4);
          if (fletcher32(as_bytes(bytes)) != recorded) return Error("its checksum does not match");
          break;
        }
      }
    }
    if (bytes.size() != chunk_bytes_)
      return Error("{} bytes where {} belong", bytes.size(), chunk_bytes_);
    return bytes;
  }

  // Copies the chunk's rows along the last axis into the layer, as far as they are in the dataset.
  Result<void> place(const Chunk& chunk, std::string& layer) const {
    const std::string bytes =
        TRY(unfiltered(chunk).in(fmt::format("chunk at {}", shape_text(chunk.origin))));
    const std::size_t rank = dataset_.shape.size(), last = rank - 1;
    const Strides inside = contiguous_strides(dataset_.shape);
    const Strides packed = contiguous_strides(dataset_.chunk_shape);
    Shape index(rank, 0), present(rank);
    for (std::size_t axis = 0; axis < rank; ++axis)
      present[axis] =
          std::min(dataset_.chunk_shape[axis], dataset_.shape[axis] - chunk.origin[axis]);
    while (true) {
      uint64_t from = 0, to = 0;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        from += index[axis] * static_cast<uint64_t>(packed[axis]);
        if (axis >= axis_)
          to += (index[axis] + (axis == axis_ ? 0 : chunk.origin[axis])) *
                static_cast<uint64_t>(inside[axis]);
      }
      std::memcpy(layer.data() + to * item_, bytes.data() + from * item_, present[last] * item_);
      std::size_t axis = last;
      while (axis-- > 0) {
        if (++index[axis] < present[axis]) break;
        index[axis] = 0;
      }
      if (axis == SIZE_MAX) return {};
    }
  }

  Dataset dataset_;
  Bytes file_;
  std::size_t item_ = 1;
  uint64_t chunk_bytes_ = 0;
  std::size_t axis_ = 0;
  uint64_t layer_bytes_ = 0;
};

Result<void> check_chunks(const Dataset& dataset, uint64_t file_bytes) {
  const std::size_t rank = dataset.shape.size();
  if (rank == 0 || dataset.chunk_shape.size() != rank) return Error("chunks of another rank");
  if (std::ranges::find(dataset.chunk_shape, 0) != dataset.chunk_shape.end())
    return Error("chunks of no size");
  uint64_t bytes = item_bytes(dataset.dtype);
  for (const uint64_t size : dataset.chunk_shape) {
    const std::optional<uint64_t> product = checked_mul(bytes, size);
    if (!product || *product > kChunkBytesMax)
      return Error("a chunk of {} is larger than {}", shape_text(dataset.chunk_shape),
                   human_bytes(kChunkBytesMax));
    bytes = *product;
  }
  if (dataset.fill.size() != item_bytes(dataset.dtype)) return Error("a fill value of odd size");
  std::vector<const Shape*> origins;
  for (const Chunk& chunk : dataset.chunks) {
    if (chunk.origin.size() != rank || !range_fits(chunk.address, chunk.bytes, file_bytes))
      return Error("chunk at {}: it lies outside the file", shape_text(chunk.origin));
    for (std::size_t axis = 0; axis < rank; ++axis)
      if (chunk.origin[axis] >= dataset.shape[axis] ||
          chunk.origin[axis] % dataset.chunk_shape[axis] != 0)
        return Error("chunk at {}: it lies outside the dataset", shape_text(chunk.origin));
    origins.push_back(&chunk.origin);
  }
  std::ranges::sort(origins, {}, [](const Shape* origin) -> const Shape& { return *origin; });
  for (std::size_t i = 1; i < origins.size(); ++i)
    if (*origins[i] == *origins[i - 1])
      return Error("chunk at {}: it comes twice", shape_text(*origins[i]));
  return {};
}

}  // namespace

Result<View> chunked_view(Dataset dataset, Bytes file, const Limits& limits) {
  const std::optional<uint64_t> count = element_count(dataset.shape);
  if (!count) return Error("shape {} has more than 2^40 elements", shape_text(dataset.shape));
  if (*count == 0) return contiguous_view(dataset.dtype, dataset.shape, ByteSource());
  TRY(check_chunks(dataset, file.size()));
  const uint64_t bytes = *count * item_bytes(dataset.dtype);
  if (bytes > limits.expanded_bytes_max)
    return limit_hit("expanded", fmt::format("it unpacks to more than {}",
                                             human_bytes(limits.expanded_bytes_max)));
  const DType dtype = dataset.dtype;
  const bool swapped = dataset.swapped;
  const Shape shape = dataset.shape;
  const auto unpacker = std::make_shared<const Unpacker>(std::move(dataset), std::move(file));
  if (unpacker->layer_bytes() > kChunkBytesMax)
    return Error("a layer of its chunks is larger than {}", human_bytes(kChunkBytesMax));
  View view = TRY(
      contiguous_view(dtype, shape, ByteSource(bytes, [unpacker] { return unpacker->make(); })));
  view.swapped = swapped;
  return view;
}

}  // namespace tensordiff::hdf5
