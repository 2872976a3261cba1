// gzip: one file, compressed. Most often a tar; then the result is what the tar holds.

#include "formats/format.h"
#include "formats/inflate.h"

namespace tensordiff {
namespace {

bool recognises(const Bytes& file) { return as_text(file.view).starts_with("\x1f\x8b\x08"); }

Result<Catalog> open(const Input& input) {
  const Bytes packed = TRY(input.source.open());
  Input inside = input;
  inside.source = ByteSource(TRY(inflate_gzip(packed.view, input.limits.expanded_bytes_max)));
  if (recognises(TRY(inside.source.open()))) return Error("compressed more than once");
  Catalog catalog = TRY(open_input(inside));
  catalog.format += ".gz";
  return catalog;
}

}  // namespace

constinit const Format formats::gzip = {
    .name = "gzip",
    .summary = "gzip-compressed tar, or any other file compressed alone",
    .extensions = ".gz .tgz",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
