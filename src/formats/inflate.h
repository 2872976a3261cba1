// Deflate streams made plain: small ones in memory at once, large ones through a fixed window into
// an unlinked temporary file, so that no stream can make us hold more memory than we chose.

#pragma once

#include <functional>

#include "base/byte_source.h"

namespace tensordiff {

inline constexpr uint64_t kInflateInMemoryMax = 16ULL << 20;  // Larger goes to a file.

// What a raw deflate stream must turn into.
struct Inflated {
  uint64_t bytes;
  uint32_t crc32;
};

// Inflates one raw deflate stream. Anything but exactly `expected` is an error.
Result<Bytes> inflate_raw(ByteView packed, Inflated expected);

// Inflates one zlib stream, header and checksum included, to exactly `bytes`. The caller has
// checked that so much may be held in memory.
Result<std::string> inflate_zlib(ByteView packed, uint64_t bytes);

// Inflates one zlib stream of unknown size, piece by piece. Its checksum is verified; bytes behind
// it are an error.
Result<void> inflate_zlib(ByteView packed, const std::function<Result<void>(ByteView)>& take);

// Inflates a gzip file of one or more members and hands out what it makes, piece by piece.
Result<void> inflate_gzip(ByteView packed, const std::function<Result<void>(ByteView)>& take);

uint32_t crc32_of(ByteView bytes);

}  // namespace tensordiff
