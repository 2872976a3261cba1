#include "formats/inflate.h"

#include <libdeflate.h>
#include <zlib.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace tensordiff {
namespace {

constexpr std::size_t kWindowBytes = 256 << 10;
constexpr int kRawDeflate = -MAX_WBITS;
constexpr int kGzip = MAX_WBITS + 16;

// zlib over a whole input, one window of output at a time.
class Stream {
 public:
  Stream(ByteView packed, int window_bits) : packed_(packed), window_(kWindowBytes) {
    usable_ = inflateInit2(&zlib_, window_bits) == Z_OK;
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { inflateEnd(&zlib_); }

  bool ended() const { return ended_; }
  ByteView unread() const { return packed_.last(packed_.size() - taken_); }

  // The next bytes of output; none when the stream ended exactly here.
  Result<ByteView> next() {
    if (!usable_) return Error("cannot start to inflate");
    zlib_.next_out = window_.data();
    zlib_.avail_out = static_cast<uInt>(window_.size());
    while (!ended_ && zlib_.avail_out > 0) TRY(step());
    return std::as_bytes(std::span(window_)).first(window_.size() - zlib_.avail_out);
  }

  // Starts over with the stream that follows this one.
  void restart() {
    inflateReset(&zlib_);
    ended_ = false;
  }

 private:
  Result<void> step() {
    const std::size_t offered = std::min<std::size_t>(unread().size(), 1U << 30);
    // zlib does not write to its input; its interface predates const.
    zlib_.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(unread().data()));
    zlib_.avail_in = static_cast<uInt>(offered);
    const int status = inflate(&zlib_, Z_NO_FLUSH);
    taken_ += offered - zlib_.avail_in;
    ended_ = status == Z_STREAM_END;
    if (ended_ || status == Z_OK) return {};
    if (status == Z_BUF_ERROR) return Error("the compressed data ends in the middle");
    return Error("the compressed data is damaged: {}", zlib_.msg ? zlib_.msg : "unknown fault");
  }

  ByteView packed_;
  std::vector<Bytef> window_;
  z_stream zlib_ = {};
  std::size_t taken_ = 0;
  bool usable_ = false;
  bool ended_ = false;
};

Error wrong_crc(uint32_t found, uint32_t expected) {
  return Error("its checksum is {:08x}, but {:08x} was recorded", found, expected);
}

Result<Bytes> inflate_in_memory(ByteView packed, Inflated expected) {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor) return Error("cannot start to inflate");
  std::string plain(expected.bytes, '\0');
  std::size_t used = 0;
  std::size_t made = 0;
  const libdeflate_result status = libdeflate_deflate_decompress_ex(
      decompressor.get(), packed.data(), packed.size(), plain.data(), plain.size(), &used, &made);
  if (status == LIBDEFLATE_INSUFFICIENT_SPACE)
    return Error("it inflates to more than the {} bytes recorded", expected.bytes);
  if (status != LIBDEFLATE_SUCCESS) return Error("the compressed data is damaged");
  if (made != expected.bytes)
    return Error("it inflates to {} bytes, but {} were recorded", made, expected.bytes);
  if (used != packed.size())
    return Error("{} bytes follow the end of the compressed data", packed.size() - used);
  const uint32_t found = crc32_of(as_bytes(plain));
  if (found != expected.crc32) return wrong_crc(found, expected.crc32);
  return bytes_of(std::move(plain));
}

Result<Bytes> inflate_to_file(ByteView packed, Inflated expected) {
  SpillFile file = TRY(SpillFile::create());
  Stream stream(packed, kRawDeflate);
  uint32_t found = 0;
  while (!stream.ended()) {
    const ByteView piece = TRY(stream.next());
    if (piece.size() > expected.bytes - file.size())
      return Error("it inflates to more than the {} bytes recorded", expected.bytes);
    found = libdeflate_crc32(found, piece.data(), piece.size());
    TRY(file.append(piece));
  }
  if (file.size() != expected.bytes)
    return Error("it inflates to {} bytes, but {} were recorded", file.size(), expected.bytes);
  if (!stream.unread().empty())
    return Error("{} bytes follow the end of the compressed data", stream.unread().size());
  if (found != expected.crc32) return wrong_crc(found, expected.crc32);
  return std::move(file).map();
}

bool starts_gzip(ByteView bytes) {
  return bytes.size() >= 2 && bytes[0] == std::byte{0x1f} && bytes[1] == std::byte{0x8b};
}

}  // namespace

Result<Bytes> inflate_raw(ByteView packed, Inflated expected) {
  return expected.bytes <= kInflateInMemoryMax ? inflate_in_memory(packed, expected)
                                               : inflate_to_file(packed, expected);
}

Result<void> inflate_gzip(ByteView packed, const std::function<Result<void>(ByteView)>& take) {
  Stream stream(packed, kGzip);
  while (true) {
    const ByteView piece = TRY(stream.next());
    TRY(take(piece));
    if (!stream.ended()) continue;
    if (!starts_gzip(stream.unread())) break;
    stream.restart();
  }
  // Writers of tapes pad with zeros; anything else is not of this file.
  const ByteView rest = stream.unread();
  if (std::ranges::any_of(rest, [](std::byte byte) { return byte != std::byte{0}; }))
    return Error("{} bytes follow the end of the compressed data", rest.size());
  return {};
}

Result<void> inflate_zlib(ByteView packed, const std::function<Result<void>(ByteView)>& take) {
  Stream stream(packed, MAX_WBITS);
  while (!stream.ended()) {
    const ByteView piece = TRY(stream.next());
    TRY(take(piece));
  }
  if (!stream.unread().empty())
    return Error("{} bytes follow the end of the compressed data", stream.unread().size());
  return {};
}

Result<std::string> inflate_zlib(ByteView packed, uint64_t bytes) {
  const std::unique_ptr<libdeflate_decompressor, void (*)(libdeflate_decompressor*)> decompressor(
      libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (!decompressor) return Error("cannot start to inflate");
  std::string plain(bytes, '\0');
  std::size_t used = 0, made = 0;
  const libdeflate_result status = libdeflate_zlib_decompress_ex(
      decompressor.get(), packed.data(), packed.size(), plain.data(), plain.size(), &used, &made);
  if (status == LIBDEFLATE_INSUFFICIENT_SPACE || (status == LIBDEFLATE_SUCCESS && made != bytes))
    return Error("it does not inflate to the expected {} bytes", bytes);
  if (status != LIBDEFLATE_SUCCESS) return Error("the compressed data is damaged");
  return plain;
}

uint32_t crc32_of(ByteView bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

}  // namespace tensordiff
