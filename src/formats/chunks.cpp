#include "formats/chunks.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>

#include "base/text.h"
#include "formats/inflate.h"
#include "formats/limits.h"

namespace tensordiff {
namespace {

class Assembler {
 public:
  explicit Assembler(ChunkedArray array) : array_(std::move(array)) {
    item_ = item_bytes(array_.dtype);
    chunk_bytes_ = item_;
    for (const uint64_t size : array_.chunk_shape) chunk_bytes_ *= size;
    // Whole layers of chunks are made at a time: steps along the first axis that has any.
    while (axis_ + 1 < array_.shape.size() && array_.shape[axis_] == 1) ++axis_;
    layer_bytes_ = item_ * array_.chunk_shape[axis_];
    for (std::size_t inner = axis_ + 1; inner < array_.shape.size(); ++inner)
      layer_bytes_ *= array_.shape[inner];
    order_.resize(array_.origins.size());
    std::iota(order_.begin(), order_.end(), 0);
    std::ranges::stable_sort(order_, {},
                             [&](std::size_t chunk) { return array_.origins[chunk][axis_]; });
  }

  uint64_t layer_bytes() const { return layer_bytes_; }

  Result<Bytes> make() const {
    const uint64_t rows = array_.shape[axis_], step = array_.chunk_shape[axis_];
    const uint64_t row_bytes = layer_bytes_ / step;
    const bool small = rows * row_bytes <= kInflateInMemoryMax;
    std::string memory;
    std::optional<SpillFile> spill;
    if (!small) spill.emplace(TRY(SpillFile::create()));
    auto chunk = order_.begin();
    for (uint64_t row = 0; row < rows; row += step) {
      std::string layer = filled();
      for (; chunk != order_.end() && array_.origins[*chunk][axis_] == row; ++chunk)
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
    if (array_.fill.find_first_not_of('\0') == std::string::npos) return layer;
    for (std::size_t at = 0; at < layer.size(); at += item_) layer.replace(at, item_, array_.fill);
    return layer;
  }

  // Copies the chunk's rows along the last axis into the layer, as far as they are in the array.
  Result<void> place(std::size_t chunk, std::string& layer) const {
    const Shape& origin = array_.origins[chunk];
    const std::string where = fmt::format("chunk at {}", shape_text(origin));
    const std::string bytes = TRY(array_.unpack(chunk).in(where));
    if (bytes.size() != chunk_bytes_)
      return Error("{} bytes where {} are expected", bytes.size(), chunk_bytes_).in(where);
    const std::size_t rank = array_.shape.size(), last = rank - 1;
    const Strides inside = contiguous_strides(array_.shape);
    const Strides packed = contiguous_strides(array_.chunk_shape);
    Shape index(rank, 0), present(rank);
    for (std::size_t axis = 0; axis < rank; ++axis)
      present[axis] = std::min(array_.chunk_shape[axis], array_.shape[axis] - origin[axis]);
    while (true) {
      uint64_t from = 0, to = 0;
      for (std::size_t axis = 0; axis < rank; ++axis) {
        from += index[axis] * static_cast<uint64_t>(packed[axis]);
        if (axis >= axis_)
          to += (index[axis] + (axis == axis_ ? 0 : origin[axis])) *
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

  ChunkedArray array_;
  std::vector<std::size_t> order_;  // Of the chunks, along the axis of the layers.
  std::size_t item_ = 1;
  uint64_t chunk_bytes_ = 0;
  std::size_t axis_ = 0;
  uint64_t layer_bytes_ = 0;
};

Result<void> check_chunks(const ChunkedArray& array) {
  const std::size_t rank = array.shape.size();
  if (rank == 0 || array.chunk_shape.size() != rank) return Error("chunks of another rank");
  if (std::ranges::find(array.chunk_shape, 0) != array.chunk_shape.end())
    return Error("chunks of no size");
  uint64_t bytes = item_bytes(array.dtype);
  for (const uint64_t size : array.chunk_shape) {
    const std::optional<uint64_t> product = checked_mul(bytes, size);
    if (!product || *product > kChunkBytesMax)
      return Error("a chunk of {} is larger than {}", shape_text(array.chunk_shape),
                   human_bytes(kChunkBytesMax));
    bytes = *product;
  }
  if (array.fill.size() != item_bytes(array.dtype)) return Error("a fill value of odd size");
  std::vector<const Shape*> origins;
  for (const Shape& origin : array.origins) {
    bool outside = origin.size() != rank;
    for (std::size_t axis = 0; axis < rank && !outside; ++axis)
      outside = origin[axis] >= array.shape[axis] || origin[axis] % array.chunk_shape[axis] != 0;
    if (outside) return Error("chunk at {}: it lies outside the dataset", shape_text(origin));
    origins.push_back(&origin);
  }
  std::ranges::sort(origins, {}, [](const Shape* origin) -> const Shape& { return *origin; });
  for (std::size_t i = 1; i < origins.size(); ++i)
    if (*origins[i] == *origins[i - 1])
      return Error("chunk at {}: it comes twice", shape_text(*origins[i]));
  return {};
}

}  // namespace

Result<View> chunked_view(ChunkedArray array, const Limits& limits) {
  const std::optional<uint64_t> count = element_count(array.shape);
  if (!count) return Error("shape {} has more than 2^40 elements", shape_text(array.shape));
  if (*count == 0) return contiguous_view(array.dtype, array.shape, ByteSource());
  TRY(check_chunks(array));
  const uint64_t bytes = *count * item_bytes(array.dtype);
  if (bytes > limits.expanded_bytes_max)
    return limit_hit("expanded", fmt::format("it unpacks to more than {}",
                                             human_bytes(limits.expanded_bytes_max)));
  const DType dtype = array.dtype;
  const bool swapped = array.swapped;
  const Shape shape = array.shape;
  const auto assembler = std::make_shared<const Assembler>(std::move(array));
  if (assembler->layer_bytes() > kChunkBytesMax)
    return Error("a layer of its chunks is larger than {}", human_bytes(kChunkBytesMax));
  View view = TRY(
      contiguous_view(dtype, shape, ByteSource(bytes, [assembler] { return assembler->make(); })));
  view.swapped = swapped;
  return view;
}

}  // namespace tensordiff
