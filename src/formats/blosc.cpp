// Blosc 1, which zarr packs its chunks with by default.
//
//   u8 version  u8 codec's version  u8 flags  u8 item size  u32 bytes  u32 block  u32 packed bytes
//   u32 begin of each block, from the start of all
//   each block: one stream, or one for each byte of the items: u32 packed bytes, and so many
//
// Flags: 1 shuffled, 2 stored as it is, 4 bits shuffled, 16 never more than one stream; above them
// the codec. A stream as long as what it stands for is not packed. The last block may be shorter,
// and is one stream. https://github.com/Blosc/c-blosc/blob/main/README_CHUNK_FORMAT.rst

#include "base/byte_cursor.h"
#include "base/checked_math.h"
#include "formats/codecs.h"
#include "formats/inflate.h"
#include "formats/snappy.h"

namespace tensordiff {
namespace {

constexpr unsigned kShuffled = 1, kStored = 2, kBitsShuffled = 4, kOneStream = 16;
constexpr uint64_t kHeaderBytes = 16, kStreamsMax = 16, kStreamItemsMin = 128;

Result<std::string> unpack_stream(unsigned codec, ByteView packed, uint64_t bytes) {
  if (packed.size() == bytes) return std::string(as_text(packed));
  switch (codec) {
    case 0:
      return unpack_blosclz(packed, bytes);
    case 1:
      return unpack_lz4(packed, bytes);
    case 2:
      return unsnappy(packed, bytes);
    case 3:
      return inflate_zlib(packed, bytes);
    case 4:
      return unpack_zstd(packed, bytes);
    default:
      return Error("blosc: its codec {} is not known", codec);
  }
}

struct Header {
  unsigned flags = 0;
  uint64_t item = 1, bytes = 0, block = 0;
};

Result<Header> read_header(ByteView packed) {
  ByteCursor cursor(packed);
  const unsigned version = cursor.u8();
  cursor.skip(1);
  Header header;
  header.flags = cursor.u8();
  header.item = cursor.u8();
  header.bytes = cursor.u32();
  header.block = cursor.u32();
  const uint32_t all = cursor.u32();
  if (!cursor.ok()) return Error("blosc: its header is cut short");
  if (version != 1 && version != 2) return Error("blosc: version {} is not known", version);
  if (all != packed.size()) return Error("blosc: {} bytes, but {} recorded", packed.size(), all);
  if (header.item == 0 || header.block == 0) return Error("blosc: items or blocks of no size");
  return header;
}

Result<std::string> unpack_block(ByteCursor cursor, const Header& header, uint64_t bytes) {
  const bool split = !(header.flags & kOneStream) && header.item <= kStreamsMax &&
                     header.block / header.item >= kStreamItemsMin && bytes == header.block;
  const uint64_t streams = split ? header.item : 1;
  std::string plain;
  for (uint64_t i = 0; i < streams; ++i) {
    const ByteView packed = cursor.take(cursor.u32());
    if (!cursor.ok()) return Error("blosc: a block is cut short");
    const std::string stream = TRY(unpack_stream(header.flags >> 5, packed, bytes / streams));
    plain += stream;
  }
  if (plain.size() != bytes) return Error("blosc: a block of another size than recorded");
  if (header.flags & kShuffled && header.item > 1) return unshuffle(plain, header.item);
  if (header.flags & kBitsShuffled) return unshuffle_bits(plain, header.item);
  return plain;
}

}  // namespace

Result<std::string> unpack_blosc(ByteView packed, uint64_t bytes) {
  const Header header = TRY(read_header(packed));
  if (header.bytes != bytes)
    return Error("blosc: {} bytes recorded where {} are expected", header.bytes, bytes);
  if (header.flags & kStored) {
    if (packed.size() != kHeaderBytes + bytes) return Error("blosc: it is cut short");
    return std::string(as_text(packed.subspan(kHeaderBytes)));
  }
  ByteCursor begins(packed);
  begins.skip(kHeaderBytes);
  std::string plain;
  while (plain.size() < bytes) {
    const uint32_t begin = begins.u32();
    if (!begins.ok() || begin > packed.size()) return Error("blosc: a block is not in it");
    const uint64_t left = bytes - plain.size();
    const std::string block =
        TRY(unpack_block(ByteCursor(packed.subspan(begin)), header, std::min(left, header.block)));
    plain += block;
  }
  return plain;
}

}  // namespace tensordiff
