#include "diagnose/sample/matrix.h"

#include <algorithm>

#include "align/view.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// The axis of the tokens: of the right size and not the last. Nothing: none is.
std::optional<std::size_t> token_axis(const Shape& shape, const Extent& extent) {
  std::optional<std::size_t> found;
  for (std::size_t axis = 0; axis + 1 < shape.size(); ++axis)
    if (shape[axis] == extent.tokens && (!found || extent.heads_first)) found = axis;
  return found;
}

// How many of the axes before `end` are the batch: as many as it takes to make up its size.
std::size_t batch_axes(const Shape& shape, std::size_t end, uint64_t batch) {
  uint64_t product = 1;
  std::size_t count = 0;
  while (count < end && product * shape[count] <= batch) product *= shape[count++];
  return product == batch ? count : 0;
}

// Sequence first: [tokens, batch, features].
bool batch_is_second(const Shape& shape, std::size_t token_axis, uint64_t batch) {
  return token_axis == 0 && shape.size() > 2 && shape[1] == batch;
}

uint64_t product_of(const Shape& shape, std::size_t begin, std::size_t end) {
  uint64_t product = 1;
  for (std::size_t axis = begin; axis < end; ++axis) product *= shape[axis];
  return product;
}

}  // namespace

TokenView by_tokens(const View& view, const Extent& extent) {
  TokenView result;
  result.view = view;
  const Shape& shape = view.shape;
  const std::size_t rank = shape.size();
  const auto axis = extent.tokens > 0 ? token_axis(shape, extent) : std::nullopt;
  if (!axis) {
    // Another number of tokens than in most tensors, or in each tower another: what stands first
    // are still the sequences. A map is one row for each of these: its lines are no tokens.
    const bool sequences = extent.batch > 1 && rank == 3 && shape[0] == extent.batch;
    const bool maps = extent.batch > 1 && extent.tokens == 0 && rank > 3;
    result.batch = sequences ? shape[0] : 1;
    result.tokens = rank < 2 ? 1 : product_of(shape, sequences ? 1 : 0, maps ? 1 : rank - 1);
    result.features = rank == 0 ? 1 : product_of(shape, maps ? 1 : rank - 1, rank);
    if (sequences || maps) result.axis = sequences ? 1 : 0;
    for (std::size_t i = 0; i < rank; ++i) result.order.push_back(i);
    return result;
  }
  // Batch, tokens, then what stood between them (heads), then the rest.
  std::vector<uint64_t> order;
  for (std::size_t i = 0; i < batch_axes(shape, *axis, extent.batch); ++i) order.push_back(i);
  if (batch_is_second(shape, *axis, extent.batch)) order.push_back(1);
  const std::size_t batch = order.size();
  order.push_back(*axis);
  for (std::size_t i = 0; i < rank; ++i)
    if (std::ranges::find(order, i) == order.end()) order.push_back(i);
  result.view = permuted(view, order);
  result.order = order;
  result.axis = axis;
  const Shape& ordered = result.view.shape;
  result.batch = product_of(ordered, 0, batch);
  result.tokens = ordered[batch];
  result.features = product_of(ordered, batch + 1, rank);
  if (rank - batch == 3) result.heads = ordered[batch + 1];
  return result;
}

Result<Matrix> read_matrix(const View& view, const Extent& extent, uint64_t first_token,
                           uint64_t values_max) {
  if (is_complex(view.dtype)) return Error("complex numbers are not diagnosed");
  if (view.parts.empty() && view.elements() > 0) return Error("not aligned, so not diagnosed");
  const TokenView source = by_tokens(view, extent);
  const Reader reader = TRY(Reader::open(source.view));
  const uint64_t row_values = std::max<uint64_t>(1, source.batch * source.features);
  Matrix matrix;
  matrix.batch = source.batch;
  matrix.features = source.features;
  matrix.heads = source.heads;
  matrix.first_token = std::min(first_token, source.tokens);
  matrix.tokens =
      std::min(source.tokens - matrix.first_token, std::max<uint64_t>(1, values_max / row_values));
  matrix.whole = matrix.tokens == source.tokens;
  if (source.tokens == 0 || source.features == 0) matrix.tokens = 0;
  if (source.features > kValuesMax) return Error("too wide to diagnose");
  matrix.values.resize(matrix.rows() * matrix.features);
  const std::size_t run = matrix.tokens * matrix.features;
  for (uint64_t sequence = 0; sequence < matrix.batch && run > 0; ++sequence)
    reader.values((sequence * source.tokens + matrix.first_token) * matrix.features, run,
                  matrix.values.data() + sequence * run);
  if (!reader.intact()) return Error("the file was cut short while it was read");
  return matrix;
}

Result<Matrix> read_matrix(const View& view, const Extent& extent, const TokenRange& range) {
  const TokenView tokens = by_tokens(view, extent);
  const uint64_t values = range.tokens * tokens.batch * tokens.features;
  return read_matrix(view, extent, range.first, std::min(kValuesMax, values));
}

Matrix first_tokens(const Matrix& matrix, uint64_t tokens) {
  Matrix result = matrix;
  result.tokens = std::min(matrix.tokens, tokens);
  result.whole = matrix.whole && result.tokens == matrix.tokens;
  result.values.clear();
  for (uint64_t sequence = 0; sequence < matrix.batch; ++sequence)
    for (uint64_t token = 0; token < result.tokens; ++token) {
      const auto row = matrix.row(sequence * matrix.tokens + token);
      result.values.insert(result.values.end(), row.begin(), row.end());
    }
  return result;
}

Matrix like(const Matrix& matrix) {
  Matrix result = matrix;
  std::ranges::fill(result.values, 0.0);
  return result;
}

}  // namespace tensordiff
