// gzip: one file, compressed. Most often a tar; then the result is what the tar holds.

#include "formats/compressed.h"
#include "formats/inflate.h"

namespace tensordiff {
namespace {

bool recognises(const Bytes& file) { return as_text(file.view).starts_with("\x1f\x8b\x08"); }

Result<void> unpack(ByteView packed, Sink& sink) {
  return inflate_gzip(packed, [&](ByteView piece) { return sink.add(piece); });
}

Result<Catalog> open(const Input& input) { return open_compressed(input, unpack, ".gz"); }

}  // namespace

constinit const Format formats::gzip = {
    .name = "gzip",
    .summary = "gzip-compressed tar, or any other file compressed alone",
    .extensions = ".gz .tgz",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
