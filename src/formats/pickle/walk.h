// From what a pickle says to the tensors in it, by name.
//
// Keys, attributes and places in lists are joined with dots: {'model': [t]} gives "model.0". A
// whole pickled module gives the names its state_dict would. A tensor that is the whole pickle has
// an empty name. Every name of code that the pickle holds becomes a Problem.

#pragma once

#include "formats/pickle/torch_file.h"

namespace tensordiff::pickle {

inline constexpr uint64_t kVisitsMax = 16'000'000;   // Values looked at, by whatever path.
inline constexpr std::size_t kTensorNameMax = 4096;  // Bytes of a name; the rest is cut off.

// All the tensors of a pickle, and its problems after those that the file has already.
Catalog collect_tensors(TorchFile file, const Limits& limits);

}  // namespace tensordiff::pickle
