// bzip2: one file, compressed, in one or more streams. Each block has a checksum, which libbz2
// checks.

#include <bzlib.h>

#include <algorithm>
#include <vector>

#include "formats/compressed.h"

namespace tensordiff {
namespace {

bool starts_stream(ByteView bytes) {
  const std::string_view text = as_text(bytes);
  if (!text.starts_with("BZh") || text.size() < 10 || text[3] < '1' || text[3] > '9') return false;
  const std::string_view block = text.substr(4, 6);
  return block == "\x31\x41\x59\x26\x53\x59" || block == "\x17\x72\x45\x38\x50\x90";
}

bool recognises(const Bytes& file) { return starts_stream(file.view); }

struct Stream {
  bz_stream bz = {};
  bool usable = BZ2_bzDecompressInit(&bz, 0, 0) == BZ_OK;
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { BZ2_bzDecompressEnd(&bz); }
};

// One stream; gives what follows it.
Result<ByteView> unpack_stream(ByteView packed, Sink& sink) {
  Stream stream;
  if (!stream.usable) return Error("cannot start to unpack bzip2");
  std::vector<char> window(256 << 10);
  int status = BZ_OK;
  while (status != BZ_STREAM_END) {
    const auto offered =
        static_cast<unsigned>(std::min<std::size_t>(packed.size(), std::size_t{1} << 30));
    // libbz2 does not write to its input; its interface predates const.
    stream.bz.next_in = reinterpret_cast<char*>(const_cast<std::byte*>(packed.data()));
    stream.bz.avail_in = offered;
    stream.bz.next_out = window.data();
    stream.bz.avail_out = static_cast<unsigned>(window.size());
    status = BZ2_bzDecompress(&stream.bz);
    if (status != BZ_OK && status != BZ_STREAM_END) return Error("the compressed data is damaged");
    const std::size_t made = window.size() - stream.bz.avail_out;
    const std::size_t taken = offered - stream.bz.avail_in;
    TRY(sink.add(std::as_bytes(std::span(window)).first(made)));
    packed = packed.subspan(taken);
    if (status == BZ_OK && taken == 0 && made == 0) return cut_short();
  }
  return packed;
}

Result<void> unpack(ByteView packed, Sink& sink) {
  do packed = TRY(unpack_stream(packed, sink));
  while (starts_stream(packed));
  if (!packed.empty()) return bytes_behind(packed.size());
  return {};
}

Result<Catalog> open(const Input& input) { return open_compressed(input, unpack, ".bz2"); }

}  // namespace

constinit const Format formats::bzip2 = {
    .name = "bzip2",
    .summary = "bzip2-compressed tar, or any other file compressed alone",
    .extensions = ".bz2 .tbz2",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
