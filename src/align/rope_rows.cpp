#include "align/rope_rows.h"

#include "align/evidence.h"
#include "align/view.h"

namespace tensordiff {
namespace {

constexpr double kFitsAsItIs = 0.5;  // Unexplained. Quantised to two bits, a tenth is.
constexpr uint64_t kHeadMin = 4, kHeadMax = 1024;

// Both sides as [heads, d/2, 2, ...].
AlignedPair in_pairs(const AlignedPair& pair, uint64_t head, char side_of_halves) {
  const std::size_t rank = pair.a.shape.size();
  const uint64_t heads = pair.a.shape[0] / head;
  std::vector<uint64_t> order = {0, 2, 1};
  for (std::size_t axis = 3; axis < rank + 2; ++axis) order.push_back(axis);
  const char other = side_of_halves == 'a' ? 'b' : 'a';
  const Plan plan = {{side_of_halves, Op::split, {0, heads, 2, head / 2}},
                     {side_of_halves, Op::permute, order},
                     {other, Op::split, {0, heads, head / 2, 2}}};
  AlignedPair result = pair;
  for (const Step& step : plan) {
    View& view = step.side == 'a' ? result.a : result.b;
    view = apply(step, std::move(view));
    result.steps.push_back(step);
  }
  result.notes = {{LayoutNote::Kind::rope_rows, side_of_halves, 0, head}};
  return result;
}

}  // namespace

std::optional<AlignedPair> with_rope_rows(const AlignedPair& pair) {
  if (pair.a.shape.empty() || pair.a.elements() == 0 || !pair.steps.empty()) return std::nullopt;
  if (sampled_disagreement(pair) < kFitsAsItIs) return std::nullopt;
  std::optional<AlignedPair> best;
  double least = 1;
  std::size_t tried = 0;
  const uint64_t rows = pair.a.shape[0];
  for (uint64_t head = kHeadMin; head <= std::min(rows, kHeadMax); head += 2) {
    if (rows % head != 0) continue;
    for (const char side : {'a', 'b'}) {
      AlignedPair candidate = in_pairs(pair, head, side);
      const double left = sampled_disagreement(candidate);
      ++tried;
      if (left >= least) continue;
      least = left;
      best = std::move(candidate);
    }
  }
  if (tried == 0 || least > disagreement_max(pair.a.elements(), tried)) return std::nullopt;
  return best;
}

}  // namespace tensordiff
