// A tar of other files: a folder of dumps, packed. What the tar container is, see tar_archive.cpp.

#include "formats/tar_archive.h"

namespace tensordiff {
namespace {

bool recognises(const Bytes& file) { return is_tar(file); }

Result<Catalog> open(const Input& input) {
  TRY(check_nesting(input));
  const Bytes file = TRY(input.source.open());
  return open_files(TRY(read_tar(file, input.limits)), input.limits, input.depth + 1);
}

}  // namespace

constinit const Format formats::tar = {
    .name = "tar",
    .summary = "tar archive of files of any other format",
    .extensions = ".tar",
    .recognises = recognises,
    .open = open,
};

}  // namespace tensordiff
