// Datasets in chunks, made plain: each chunk is found in the file, put through its filters
// backwards (Fletcher's checksum, deflate, shuffle), and laid where it belongs.

#pragma once

#include "formats/hdf5_wire.h"

namespace tensordiff::hdf5 {

// The view of a chunked dataset. Its values are made when somebody first reads them. Says what is
// wrong when a chunk lies outside the file or the dataset.
Result<View> chunked_view(Dataset dataset, Bytes file, const Limits& limits);

}  // namespace tensordiff::hdf5
