#include "convert/merged_kernel.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "align/axes.h"

namespace tensordiff {
namespace {

// Images have four axes, videos five. A matrix may keep an axis for the patch: [out, patch, in].
constexpr std::size_t kAxesMin = 4, kAxesMax = 5;
constexpr std::size_t kMergedMax = 3;

// The first of two neighbouring axes of one size, the smallest there is: height before width.
std::optional<uint64_t> height_of(const Shape& shape) {
  std::optional<uint64_t> found;
  for (uint64_t i = 0; i + 1 < shape.size(); ++i)
    if (shape[i] == shape[i + 1] && shape[i] > 1 && (!found || shape[i] <= shape[*found]))
      found = i;
  return found;
}

void add_plans(char side, const Shape& kernel, const Shape& merged, std::vector<Plan>& plans) {
  const Shape shape = without_units(kernel), target = without_units(merged);
  if (shape.size() <= target.size()) return;
  const std::optional<uint64_t> height = height_of(shape);
  Plan drops = drop_units(side, kernel);
  const char other = side == 'a' ? 'b' : 'a';
  for (Step& step : drop_units(other, merged)) drops.push_back(std::move(step));
  std::vector<uint64_t> order(shape.size());
  std::iota(order.begin(), order.end(), 0);
  while (std::ranges::next_permutation(order).found) {
    if (height && std::ranges::find(order, *height) > std::ranges::find(order, *height + 1))
      continue;
    AxisWalk walk(target);
    const bool fits =
        std::ranges::all_of(order, [&](uint64_t axis) { return walk.take(shape[axis]); });
    if (!fits || !walk.done()) continue;
    Plan plan = drops;
    plan.push_back({side, Op::permute, order});
    for (Step& step : walk.splits(side, other)) plan.push_back(std::move(step));
    plans.push_back(std::move(plan));
  }
}

bool is_kernel(const Shape& shape) { return shape.size() >= kAxesMin && shape.size() <= kAxesMax; }
bool is_merged(const Shape& shape) { return shape.size() >= 2 && shape.size() <= kMergedMax; }

}  // namespace

std::vector<Plan> merged_kernel_plans(const Shape& a, const Shape& b) {
  std::vector<Plan> plans;
  if (element_count(a).value_or(0) == 0 || element_count(a) != element_count(b)) return plans;
  if (is_kernel(a) && is_merged(b)) add_plans('a', a, b, plans);
  if (is_kernel(b) && is_merged(a)) add_plans('b', b, a, plans);
  return plans;
}

}  // namespace tensordiff
