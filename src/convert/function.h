// A function of the values of a small tensor, as a view: computed when it is first read.

#pragma once

#include <optional>

#include "convert/form.h"

namespace tensordiff {

// What a converter computes is small: weights of norms, decay rates. Larger tensors are not tried,
// because the result is held in memory (16 MiB at this limit).
inline constexpr uint64_t kFunctionElementsMax = 1 << 22;

View with_function(Function function, const View& view);

// "A + 1"
std::string_view text_of(Function function);

}  // namespace tensordiff
