// Ways to pack a chunk of an array, undone in memory to a size that is known beforehand. The caller
// has checked that so much may be held.

#pragma once

#include <string>
#include <string_view>

#include "base/byte_source.h"
#include "base/result.h"

namespace tensordiff {

// Each gives exactly `bytes` or says what is wrong.
Result<std::string> unpack_gzip(ByteView packed, uint64_t bytes);
Result<std::string> unpack_zstd(ByteView packed, uint64_t bytes);
Result<std::string> unpack_lz4(ByteView packed, uint64_t bytes);      // One block, without a frame.
Result<std::string> unpack_blosclz(ByteView packed, uint64_t bytes);  // Blosc's own.

// A container around several of them, of version 1: see blosc.cpp.
Result<std::string> unpack_blosc(ByteView packed, uint64_t bytes);

// All first bytes of the elements, then all second ones ...: back to elements.
std::string unshuffle(std::string_view bytes, std::size_t item);
// The same for bits: all lowest bits of the elements, then all second ones ...
std::string unshuffle_bits(std::string_view bytes, std::size_t item);

}  // namespace tensordiff
