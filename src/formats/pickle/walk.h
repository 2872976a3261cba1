// From what a pickle says to the tensors in it, by name.
//
// Keys, attributes and places in lists are joined with dots: {'model': [t]} gives "model.0". A
// whole pickled module gives the names its state_dict would. A tensor that is the whole pickle has
// an empty name. Every name of code that the pickle holds becomes a Problem.
//
// A value that the pickle holds in several places is listed by each path to it, as tied weights
// should be. But a few hundred bytes can hold a list in a list ten times over, nine levels deep: so
// many paths are followed as the pickle has values, and Limits::repeats_max more. After that each
// value is listed by the first path to it only.

#pragma once

#include "formats/pickle/torch_file.h"

namespace tensordiff::pickle {

inline constexpr std::size_t kTensorNameMax = 4096;  // Bytes of a name; the rest is cut off.

// All the tensors of a pickle, and its problems after those that the file has already.
Catalog collect_tensors(TorchFile file, const Limits& limits);

}  // namespace tensordiff::pickle
