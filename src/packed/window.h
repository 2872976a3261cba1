// Elements of a view one by one, read in runs where the next ones will be asked for.

#pragma once

#include <algorithm>
#include <array>

#include "tensor/reader.h"

namespace tensordiff {

class Window {
 public:
  // `step`: how far apart the elements are that will be asked for; neighbours are read together.
  Window(const Reader& reader, int64_t step)
      : reader_(reader), elements_(reader.view().elements()), run_(step == 1 ? kRun : 1) {}

  // The caller has checked that the view has this element.
  double at(uint64_t element) {
    if (element < first_ || element >= end_) {
      first_ = element;
      end_ = element + std::min<uint64_t>(run_, elements_ - element);
      reader_.values(first_, end_ - first_, values_.data());
    }
    return values_[element - first_];
  }

 private:
  static constexpr std::size_t kRun = 256;

  const Reader& reader_;
  uint64_t elements_;
  std::size_t run_;
  uint64_t first_ = 1, end_ = 0;  // What is in values_: nothing yet.
  std::array<double, kRun> values_;
};

// Level `at` of those in a word, `bits` each, the first in the lowest bits.
inline unsigned level_of(double word, uint64_t at, unsigned bits) {
  const auto pattern = static_cast<uint32_t>(static_cast<int64_t>(word));
  return pattern >> (at * bits) & ((1U << bits) - 1);
}

}  // namespace tensordiff
