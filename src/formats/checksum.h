// CRC-32C, the checksum of tables and of tensors in TensorFlow's checkpoints.

#pragma once

#include <cstdint>

#include "base/byte_source.h"

namespace tensordiff {

// Of these bytes after others whose sum is `before`.
uint32_t crc32c(ByteView bytes, uint32_t before = 0);

// As these files keep it, because sums of data that hold sums are weak.
inline uint32_t masked(uint32_t sum) { return (sum >> 15 | sum << 17) + 0xa282ead8U; }

}  // namespace tensordiff
