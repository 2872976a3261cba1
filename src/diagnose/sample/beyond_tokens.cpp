#include "diagnose/sample/beyond_tokens.h"

#include <algorithm>
#include <cmath>

#include "compare/beyond.h"
#include "diagnose/sample/matrix.h"

namespace tensordiff {
namespace {

// From positions in the compared shape to those by tokens.
class ByTokens {
 public:
  ByTokens(const Shape& shape, const TokenView& tokens)
      : shape_(shape), tokens_(tokens), steps_(shape.size(), 1) {
    uint64_t step = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      steps_[tokens.order[axis]] = step;
      step *= tokens.view.shape[axis];
    }
  }

  uint64_t position(uint64_t from) const {
    uint64_t to = 0;
    for (std::size_t axis = shape_.size(); axis-- > 0; from /= shape_[axis])
      to += from % shape_[axis] * steps_[axis];
    return to;
  }
  uint64_t row(uint64_t from) const { return position(from) / tokens_.features; }

 private:
  const Shape& shape_;
  const TokenView& tokens_;
  std::vector<uint64_t> steps_;  // For each axis of the compared shape, in positions by tokens.
};

void sort_out(std::vector<uint64_t>& values) {
  std::ranges::sort(values);
  const auto rest = std::ranges::unique(values);
  values.erase(rest.begin(), rest.end());
}

// What the tiles without such elements leave: the whole error less that of the others.
double outside_of(const Comparison& comparison, const Beyond& beyond) {
  const Diff& diff = comparison.diff;
  double inside = 0;
  uint64_t unequal = 0;
  for (const TileRun& run : beyond.runs) inside += run.d_squared, unequal += run.unequal;
  if (unequal == diff.compared - diff.equal + diff.nonfinite_mismatch) return 0;
  const double all = diff.mse.value_or(0) * static_cast<double>(diff.compared);
  const double size = comparison.a.norm.value_or(0);
  return size > 0 ? std::sqrt(std::max(0.0, all - inside)) / size : 0;
}

}  // namespace

std::vector<uint64_t> BeyondTokens::rows() const {
  std::vector<uint64_t> rows = rows_unread;
  for (const Element& element : elements) rows.push_back(element.row);
  sort_out(rows);
  return rows;
}

std::optional<BeyondTokens> beyond_tokens(const Case& it) {
  const auto& beyond = it.site.beyond;
  if (!beyond || !beyond->all || it.own || it.carried > 0) return std::nullopt;
  const Result<BeyondElements> found =
      elements_beyond(it.site.views, it.site.comparison.diff, *beyond, kValuesMax);
  if (!found.ok() || (!found.value().flat && !found.value().unread.empty())) return std::nullopt;
  const TokenView tokens = by_tokens(it.site.views.a, it.run.extent);
  const Shape& shape = it.site.views.a.shape;
  const ByTokens by(shape, tokens);
  BeyondTokens result;
  result.batch = tokens.batch;
  result.tokens = tokens.tokens;
  result.features = tokens.features;
  result.heads = tokens.heads;
  for (const BeyondElement& element : found.value().elements) {
    const uint64_t at = by.position(element.position);
    result.elements.push_back(
        {at / tokens.features, at % tokens.features, element.position, element.a, element.b});
  }
  std::ranges::stable_sort(result.elements, {}, &BeyondTokens::Element::row);
  // Elements of the last axis stay together, so that each line of it is looked at once.
  const uint64_t line = std::max<uint64_t>(1, shape.empty() ? 1 : shape.back());
  for (const TileRun& run : found.value().unread) {
    const uint64_t end = std::min(run.end * kTileElements, it.site.views.a.elements());
    for (uint64_t at = run.first * kTileElements; at < end; at = (at / line + 1) * line)
      result.rows_unread.push_back(by.row(at));
  }
  sort_out(result.rows_unread);
  result.outside = outside_of(it.site.comparison, *beyond);
  return result;
}

}  // namespace tensordiff
