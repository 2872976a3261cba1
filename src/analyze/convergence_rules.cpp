// What a series of updates comes to, by rules that a person can check.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/trend.h"
#include "base/text.h"

namespace tensordiff {
namespace {

// One step of bf16 is 2^-8 of a weight. An update a hundred times smaller is lost in rounding.
constexpr double kStill = 4e-5;
constexpr double kSlower = 0.5;   // The last update against the first.
constexpr double kFaster = 2;     // The last update against the middle of those before.
constexpr double kUndone = -0.3;  // Cosine at which steps take back a good part of each other.

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

ConvergenceVerdict judge_convergence(const std::vector<TrendPoint>& points) {
  std::vector<double> updates, cosines;
  for (const TrendPoint& point : points) {
    if (point.update) updates.push_back(*point.update);
    if (point.cosine) cosines.push_back(*point.cosine);
  }
  if (!points.empty() && points.back().nonfinite > points.front().nonfinite)
    return {"diverging", fmt::format("{} values are not finite any more",
                                     points.back().nonfinite - points.front().nonfinite)};
  if (updates.size() < 2)
    return {"unknown", "two updates are needed, which takes three checkpoints"};

  const double last = updates.back();
  const double earlier = median({updates.begin(), updates.end() - 1});
  const std::string sizes = fmt::format("the last update is {} of the weights, those before {}",
                                        human_number(last), human_number(earlier));
  if (last < kStill) return {"converged", sizes};
  if (last > kFaster * earlier && last > updates[updates.size() - 2]) return {"diverging", sizes};
  if (!cosines.empty() && median(cosines) < kUndone)
    return {"oscillating", fmt::format("successive updates take each other back: cosine {}",
                                       human_number(median(cosines)))};
  if (last <= kSlower * updates.front() && last <= earlier) return {"converging", sizes};
  return {"stable", sizes};
}

}  // namespace tensordiff
