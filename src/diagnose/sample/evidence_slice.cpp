#include "diagnose/sample/evidence_slice.h"

#include <algorithm>
#include <cmath>

namespace tensordiff {
namespace {

constexpr uint64_t kShown = 6;  // Values side by side that a line of text holds.

// How much a position shows: not at all where the model says nothing, most where one side is no
// number.
double weight_at(const Case& it, const std::optional<Matrix>& model, std::size_t at) {
  if (model && std::isnan(model->values[at]) && !std::isnan(it.b.values[at])) return -1;
  const double gap = std::abs(it.b.values[at] - it.a.values[at]);
  return std::isnan(gap) ? INFINITY : gap;
}

// The index in the compared shape of an element of the case's matrices.
std::vector<uint64_t> index_of(const Case& it, uint64_t row, uint64_t feature) {
  const TokenView tokens = by_tokens(it.site.views.a, it.run.extent);
  const uint64_t sequence = row / it.a.tokens, token = it.a.first_token + row % it.a.tokens;
  uint64_t flat = (sequence * tokens.tokens + token) * tokens.features + feature;
  const Shape& shape = tokens.view.shape;
  std::vector<uint64_t> index(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0; flat /= shape[axis])
    index[tokens.order[axis]] = flat % shape[axis];
  return index;
}

}  // namespace

std::optional<EvidenceSlice> evidence_of(const Case& it, const std::optional<Matrix>& model) {
  const std::size_t size = it.a.values.size();
  if (size == 0 || it.b.values.size() != size || (model && model->values.size() != size))
    return std::nullopt;
  std::size_t most = 0;
  for (std::size_t at = 1; at < size; ++at)
    if (weight_at(it, model, at) > weight_at(it, model, most)) most = at;
  // Around it, and within one line of the last axis.
  const Shape& shape = it.site.views.a.shape;
  const uint64_t last = shape.empty() ? 1 : shape.back();
  const uint64_t line = it.a.features % last == 0 ? last : it.a.features;
  const uint64_t row = most / it.a.features, feature = most % it.a.features;
  const uint64_t count = std::min(kShown, line), in_line = feature % line;
  const uint64_t start = std::min(in_line - std::min(in_line, count / 2), line - count);
  const uint64_t first = feature - in_line + start;
  EvidenceSlice slice;
  slice.at = index_of(it, row, first);
  // By position: B and the model may have other rows, but as many elements in the same order.
  const uint64_t at = row * it.a.features + first;
  for (uint64_t i = at; i < at + count; ++i) {
    slice.a.push_back(it.a.values[i]);
    slice.b.push_back(it.b.values[i]);
    if (model) slice.model.push_back(model->values[i]);
  }
  return slice;
}

}  // namespace tensordiff
