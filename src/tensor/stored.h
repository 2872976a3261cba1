// What can be said of the bytes below a view without reading them.

#pragma once

#include <string>

#include "tensor/tensor.h"

namespace tensordiff {

// Why the bytes of a view are not to be trusted, where a Reader of it is no longer intact().
std::string damage_of(const View& view);

// Whether two views are the same elements of one remote file, or of two that have one hash.
bool same_remote_elements(const View& a, const View& b);

}  // namespace tensordiff
