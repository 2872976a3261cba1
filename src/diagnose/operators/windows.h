// Where the windows of a convolution or a pooling lie in an image, or in a sequence.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/operators/operator.h"

namespace tensordiff::operators {

struct Windows {
  std::vector<uint64_t> kernel;  // For each axis of the image.
  uint64_t stride = 1, dilation = 1;
  int64_t padding = 0;  // In front, on all axes.

  // The row of the input under a place of the kernel for a row of the output; nothing: padding.
  std::optional<uint64_t> under(const Extents& in, const Extents& out, uint64_t row,
                                uint64_t place) const;
  uint64_t places() const;
  std::string text() const;
};

// All that give the output its size, as far as both sides may be padded alike, or by one more
// behind.
std::vector<Windows> windows_for(const Extents& in, const Extents& out,
                                 const std::vector<uint64_t>& kernel);

}  // namespace tensordiff::operators
