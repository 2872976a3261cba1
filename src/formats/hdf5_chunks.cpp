#include "formats/hdf5_chunks.h"

#include <algorithm>
#include <memory>

#include "base/text.h"
#include "formats/chunks.h"
#include "formats/codecs.h"
#include "formats/inflate.h"

namespace tensordiff::hdf5 {
namespace {

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

// Undoes what was done to the chunks of one dataset.
class Filters {
 public:
  Filters(Dataset dataset, Bytes file) : dataset_(std::move(dataset)), file_(std::move(file)) {
    chunk_bytes_ = item_bytes(dataset_.dtype);
    for (const uint64_t size : dataset_.chunk_shape) chunk_bytes_ *= size;
  }

  Result<std::string> undone(std::size_t number) const {
    const Chunk& chunk = dataset_.chunks[number];
    std::string bytes(as_text(file_.view.subspan(chunk.address, chunk.bytes)));
    for (std::size_t i = dataset_.filters.size(); i-- > 0;) {
      if (chunk.skipped >> i & 1) continue;
      switch (dataset_.filters[i]) {
        case Filter::deflate:
          bytes = TRY(inflate_zlib(as_bytes(bytes), bytes_before(i, chunk.skipped)));
          break;
        case Filter::shuffle:
          bytes = unshuffle(bytes, item_bytes(dataset_.dtype));
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
    return bytes;
  }

 private:
  // How many bytes there are before the filter of this number was applied.
  uint64_t bytes_before(std::size_t filter, uint32_t skipped) const {
    uint64_t bytes = chunk_bytes_;
    for (std::size_t i = 0; i < filter; ++i)
      if (dataset_.filters[i] == Filter::fletcher32 && !(skipped >> i & 1)) bytes += 4;
    return bytes;
  }

  Dataset dataset_;
  Bytes file_;
  uint64_t chunk_bytes_ = 0;
};

}  // namespace

Result<View> chunked_view(Dataset dataset, Bytes file, const Limits& limits) {
  ChunkedArray array{
      dataset.dtype, dataset.swapped, dataset.shape, dataset.chunk_shape, dataset.fill, {}, {}};
  for (const Chunk& chunk : dataset.chunks) {
    if (!range_fits(chunk.address, chunk.bytes, file.size()))
      return Error("chunk at {}: it lies outside the file", shape_text(chunk.origin));
    array.origins.push_back(chunk.origin);
  }
  const auto filters = std::make_shared<const Filters>(std::move(dataset), std::move(file));
  array.unpack = [filters](std::size_t chunk) { return filters->undone(chunk); };
  return tensordiff::chunked_view(std::move(array), limits);
}

}  // namespace tensordiff::hdf5
