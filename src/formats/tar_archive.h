// The members of a tar file. Those of an uncompressed tar are slices of the file.
//
// Links, devices and sparse members are left out and reported. What was read before something went
// wrong stays, with a Problem that says so.

#pragma once

#include "formats/archive.h"

namespace tensordiff {

bool is_tar(const Bytes& file);

Result<Archive> read_tar(const Bytes& file, const Limits& limits);

}  // namespace tensordiff
