#include "formats/checksum.h"

#include <array>
#include <cstring>

namespace tensordiff {
namespace {

using Tables = std::array<std::array<uint32_t, 256>, 8>;

// Table t gives what a byte contributes when t more bytes follow it.
Tables make_tables() {
  Tables tables;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78U : 0);
    tables[0][byte] = sum;
  }
  for (std::size_t t = 1; t < tables.size(); ++t)
    for (std::size_t byte = 0; byte < 256; ++byte)
      tables[t][byte] = tables[t - 1][byte] >> 8 ^ tables[0][tables[t - 1][byte] & 0xff];
  return tables;
}

}  // namespace

uint32_t crc32c(ByteView bytes, uint32_t before) {
  static const Tables kTables = make_tables();
  uint32_t sum = ~before;
  // Eight bytes at a time, then the rest.
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word = 0;
    for (std::size_t i = 8; i-- > 0;) word = word << 8 | std::to_integer<uint64_t>(bytes[i]);
    word ^= sum;
    sum = 0;
    for (std::size_t i = 0; i < 8; ++i) sum ^= kTables[7 - i][word >> 8 * i & 0xff];
  }
  for (const std::byte each : bytes)
    sum = sum >> 8 ^ kTables[0][(sum ^ std::to_integer<uint32_t>(each)) & 0xff];
  return ~sum;
}

}  // namespace tensordiff
