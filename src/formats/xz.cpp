// xz: one file, compressed, in one or more streams. liblzma checks the checksums.

#include <lzma.h>

#include <vector>

#include "base/text.h"
#include "formats/compressed.h"

namespace tensordiff {
namespace {

constexpr uint64_t kMemoryMax = 256ULL << 20;  // xz -9 asks for 65 MiB.

bool recognises(const Bytes& file) {
  return as_text(file.view).starts_with(
      std::string_view("\xfd"
                       "7zXZ\0",
                       6));
}

struct Stream {
  lzma_stream lzma = LZMA_STREAM_INIT;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { lzma_end(&lzma); }
};

Result<void> unpack(ByteView packed, Sink& sink) {
  Stream stream;
  if (lzma_stream_decoder(&stream.lzma, kMemoryMax, LZMA_CONCATENATED) != LZMA_OK)
    return Error("cannot start to unpack xz");
  std::vector<uint8_t> window(256 << 10);
  stream.lzma.next_in = reinterpret_cast<const uint8_t*>(packed.data());
  stream.lzma.avail_in = packed.size();
  lzma_ret status = LZMA_OK;
  while (status == LZMA_OK) {
    stream.lzma.next_out = window.data();
    stream.lzma.avail_out = window.size();
    status = lzma_code(&stream.lzma, LZMA_FINISH);
    TRY(sink.add(std::as_bytes(std::span(window)).first(window.size() - stream.lzma.avail_out)));
  }
  if (status == LZMA_STREAM_END) return {};
  if (status == LZMA_BUF_ERROR) return cut_short();
  if (status == LZMA_MEMLIMIT_ERROR)
    return Error("unpacking it takes more memory than {}", human_bytes(kMemoryMax));
  return Error("the compressed data is damaged");
}

Result<Catalog> open(const Input& input) { return open_compressed(input, unpack, ".xz"); }

}  // namespace

constinit const Format formats::xz = {
    .name = "xz",
    .summary = "xz-compressed tar, or any other file compressed alone",
    .extensions = ".xz .txz",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
