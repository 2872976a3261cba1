// The elements of a pair that are beyond tolerance, all of them, by token and feature: what was
// noted while the pair was compared, where a Case holds a part of the values only.

#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

struct BeyondTokens {
  struct Element {
    uint64_t row = 0, feature = 0;  // Rows of all sequences, one after the other.
    uint64_t position = 0;          // Row-major, in the shape that was compared.
    double a = 0, b = 0;
  };
  uint64_t batch = 1, tokens = 1, features = 1, heads = 0;
  std::vector<Element> elements;  // In order of their rows.
  // Rows that have some as well, or may have; they are too many to be read. In order.
  std::vector<uint64_t> rows_unread;
  double outside = 0;  // ‖b − a‖ / ‖a‖ over all tiles that have none.

  std::vector<uint64_t> rows() const;  // That have any.
};

// Nothing where they lie all over the pair, or cannot be read.
std::optional<BeyondTokens> beyond_tokens(const Case& it);

}  // namespace tensordiff
