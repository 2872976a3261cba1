// A varint of the length, then pieces. The low two bits of the first byte of a piece tell its kind:
//
//   0  literal: the upper six bits are its length - 1, or 60 to 63: that is in the next 1 to 4
//   bytes 1  copy of 4 to 11 bytes from up to 2^11 back: 3 bits of length, 3 + 8 bits of distance
//   2  copy of 1 to 64 bytes, distance in 2 bytes
//   3  the same, distance in 4 bytes

#include "formats/snappy.h"

#include "base/byte_cursor.h"
#include "formats/protobuf.h"

namespace tensordiff {
namespace {

constexpr uint64_t kGrowthMax = 64;  // A copy of 64 bytes takes three.

uint64_t little_endian(ByteCursor& cursor, unsigned bytes) {
  uint64_t value = 0;
  for (unsigned i = 0; i < bytes; ++i) value |= static_cast<uint64_t>(cursor.u8()) << 8 * i;
  return value;
}

Result<void> copy_back(std::string& out, uint64_t distance, uint64_t count, uint64_t size) {
  if (distance == 0 || distance > out.size()) return Error("snappy: a copy from before the start");
  if (count > size - out.size()) return Error("snappy: more than the {} bytes it promises", size);
  for (; count > 0; --count) out += out[out.size() - distance];  // They may overlap.
  return {};
}

}  // namespace

Result<std::string> unsnappy(ByteView compressed, uint64_t most) {
  ByteCursor cursor(compressed);
  const uint64_t size = read_varint(cursor);
  if (!cursor.ok()) return Error("snappy: cut short");
  if (size > most || size / kGrowthMax > compressed.size())
    return Error("snappy: {} bytes promised, by {} compressed", size, compressed.size());
  std::string out;
  out.reserve(size);
  while (cursor.ok() && !cursor.at_end()) {
    const unsigned tag = cursor.u8();
    if ((tag & 3) == 0) {
      uint64_t count = tag >> 2;
      if (count >= 60) count = little_endian(cursor, static_cast<unsigned>(count) - 59);
      const ByteView literal = cursor.take(count + 1);
      if (cursor.ok() && literal.size() > size - out.size())
        return Error("snappy: more than the {} bytes it promises", size);
      out += as_text(literal);
      continue;
    }
    const uint64_t count = (tag & 3) == 1 ? (tag >> 2 & 7) + 4 : (tag >> 2) + 1;
    uint64_t distance = little_endian(cursor, (tag & 3) == 3 ? 4 : tag & 3);
    if ((tag & 3) == 1) distance |= static_cast<uint64_t>(tag >> 5) << 8;
    if (cursor.ok()) TRY(copy_back(out, distance, count, size));
  }
  if (!cursor.ok()) return Error("snappy: cut short");
  if (out.size() != size) return Error("snappy: {} bytes promised, {} found", size, out.size());
  return out;
}

}  // namespace tensordiff
