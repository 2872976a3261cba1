#include "formats/hdf5_wire.h"

#include "base/byte_cursor.h"
#include "base/text.h"

namespace tensordiff::hdf5 {
namespace {

std::string take_text(ByteCursor& cursor) {
  const uint32_t bytes = cursor.u32();
  return std::string(as_text(cursor.take(bytes)));
}

Shape take_sizes(ByteCursor& cursor) {
  const std::size_t rank = cursor.u8();
  Shape sizes;
  for (std::size_t axis = 0; axis < rank && cursor.ok(); ++axis) sizes.push_back(cursor.u64());
  return sizes;
}

const Error kBroken("the process that reads HDF5 sent something that makes no sense");

}  // namespace

std::string encode(const Dataset& dataset) {
  Payload out;
  out.text(dataset.name).text(dataset.fault).text(dataset.matlab_class);
  out.number(static_cast<uint8_t>(dataset.matlab_empty));
  out.number(static_cast<uint8_t>(dataset.dtype)).number(static_cast<uint8_t>(dataset.swapped));
  out.sizes(dataset.shape).number(static_cast<uint8_t>(dataset.layout)).number(dataset.address);
  out.text(dataset.data).text(dataset.fill).sizes(dataset.chunk_shape);
  out.number(static_cast<uint8_t>(dataset.filters.size()));
  for (const Filter filter : dataset.filters) out.number(static_cast<uint8_t>(filter));
  return out.bytes();
}

Result<Dataset> decode(ByteView payload) {
  ByteCursor cursor(payload);
  Dataset dataset;
  dataset.name = take_text(cursor);
  dataset.fault = take_text(cursor);
  dataset.matlab_class = take_text(cursor);
  dataset.matlab_empty = cursor.u8() != 0;
  const uint8_t dtype = cursor.u8();
  dataset.swapped = cursor.u8() != 0;
  dataset.shape = take_sizes(cursor);
  const uint8_t layout = cursor.u8();
  dataset.address = cursor.u64();
  dataset.data = take_text(cursor);
  dataset.fill = take_text(cursor);
  dataset.chunk_shape = take_sizes(cursor);
  const std::size_t filters = cursor.u8();
  for (std::size_t i = 0; i < filters && cursor.ok(); ++i) {
    const uint8_t filter = cursor.u8();
    if (filter < 1 || filter > 3) return kBroken;
    dataset.filters.push_back(static_cast<Filter>(filter));
  }
  if (!cursor.ok() || !cursor.at_end() || dtype > static_cast<uint8_t>(DType::c128) ||
      layout > static_cast<uint8_t>(Layout::compact))
    return kBroken;
  dataset.dtype = static_cast<DType>(dtype);
  dataset.layout = static_cast<Layout>(layout);
  return dataset;
}

Result<std::vector<Chunk>> decode_chunks(ByteView payload, std::size_t rank) {
  ByteCursor cursor(payload);
  std::vector<Chunk> chunks;
  while (cursor.ok() && !cursor.at_end()) {
    Chunk chunk;
    for (std::size_t axis = 0; axis < rank; ++axis) chunk.origin.push_back(cursor.u64());
    chunk.address = cursor.u64();
    chunk.bytes = cursor.u64();
    chunk.skipped = cursor.u32();
    chunks.push_back(std::move(chunk));
  }
  if (!cursor.ok()) return kBroken;
  return chunks;
}

Result<Problem> decode_problem(ByteView payload) {
  ByteCursor cursor(payload);
  Problem problem;
  problem.where = take_text(cursor);
  problem.message = take_text(cursor);
  if (!cursor.ok()) return kBroken;
  return problem;
}

}  // namespace tensordiff::hdf5
