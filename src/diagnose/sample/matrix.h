// The values of a tensor as tokens by features, in float64: what diagnoses work on.
//
// Activations come as [tokens, features], [batch, tokens, heads, head_dim], [heads, tokens,
// head_dim] and more. A Matrix has them all as rows of one token each, sequence after sequence,
// with the features of one head next to each other. It holds the first tokens of each sequence,
// as many as kValuesMax allows: memory does not grow with the tensor.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "tensor/tensor.h"

namespace tensordiff {

// Values held of one tensor: 4 MB as float64, 64 tokens of 8192 features. More tells no more, and
// explaining a difference must not take longer than finding it.
inline constexpr uint64_t kValuesMax = uint64_t{1} << 19;

// What all tensors of a run have in common.
struct Extent {
  uint64_t batch = 1;
  uint64_t tokens = 0;       // 0: not known; all axes but the last are then rows.
  bool heads_first = false;  // Of two axes of that size before the last, the tokens are the second.
};

struct Matrix {
  uint64_t batch = 1;
  uint64_t tokens = 0;  // Of each sequence, as far as they were read.
  uint64_t features = 0;
  uint64_t first_token = 0;
  uint64_t heads = 0;  // Where the tensor has an axis of them; else 0.
  bool whole = true;   // All elements are here.
  std::vector<double> values;

  uint64_t rows() const { return batch * tokens; }
  std::span<const double> row(uint64_t index) const {
    return std::span(values).subspan(index * features, features);
  }
  std::span<double> row(uint64_t index) {
    return std::span(values).subspan(index * features, features);
  }
};

// The same elements as [batch, tokens, features...].
struct TokenView {
  View view;
  uint64_t batch = 1, tokens = 1, features = 1, heads = 0;
  std::vector<uint64_t> order;      // Axis i of the view is axis order[i] of the original.
  std::optional<std::size_t> axis;  // Which of the original the tokens are, where it is one.
};
TokenView by_tokens(const View& view, const Extent& extent);

// Some tokens of each sequence.
struct TokenRange {
  uint64_t first = 0;
  uint64_t tokens = 0;
};

// From `first_token` of each sequence on, and no more values than these but for one token.
Result<Matrix> read_matrix(const View& view, const Extent& extent, uint64_t first_token = 0,
                           uint64_t values_max = kValuesMax);

Result<Matrix> read_matrix(const View& view, const Extent& extent, const TokenRange& range);

// The first tokens of each sequence.
Matrix first_tokens(const Matrix& matrix, uint64_t tokens);

// Whether row meets row and feature meets feature.
inline bool same_form(const Matrix& x, const Matrix& y) {
  return x.batch == y.batch && x.tokens == y.tokens && x.features == y.features;
}

// An empty matrix of the same shape.
Matrix like(const Matrix& matrix);

}  // namespace tensordiff
