#include "diagnose/hypotheses/subset.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnose/noise/roundoff.h"
#include "diagnose/operators/reordered.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

using operators::Block;

constexpr uint64_t kValuesMax = uint64_t{1} << 20;

const Lone* find(const std::vector<Lone>& all, std::size_t capture) {
  const auto at = std::ranges::find(all, capture, &Lone::capture);
  return at == all.end() ? nullptr : &*at;
}

std::optional<std::vector<double>> values_of(const View& view) {
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok() || view.elements() > kValuesMax || is_complex(view.dtype)) return std::nullopt;
  std::vector<double> values(view.elements());
  reader.value().values(0, values.size(), values.data());
  if (!reader.value().intact()) return std::nullopt;
  return values;
}

// How the positions of the smaller one stand in the larger, along each axis that differs.
struct Portion {
  std::string text, cause;
};

// Along one axis: position i of the smaller is position first + i · step of the larger.
struct Along {
  uint64_t step = 1, first = 0;
};

// The share of the smaller that is not what the larger has at these positions.
double left_of(const std::vector<double>& large, const Shape& wide,
               const std::vector<double>& small, const Shape& narrow,
               const std::vector<Along>& along) {
  double gaps = 0, size = 0;
  std::vector<uint64_t> at(narrow.size());
  for (std::size_t i = 0; i < small.size(); ++i) {
    uint64_t place = 0;
    for (std::size_t axis = 0; axis < wide.size(); ++axis)
      place = place * wide[axis] + along[axis].first + at[axis] * along[axis].step;
    gaps += std::pow(small[i] - large[place], 2);
    size += std::pow(small[i], 2);
    for (std::size_t axis = narrow.size(); axis-- > 0 && ++at[axis] == narrow[axis];) at[axis] = 0;
  }
  return size > 0 ? std::sqrt(gaps / size) : 1;
}

// Every so many positions, or the first, the last or the middle ones, alike on all axes that
// differ.
std::optional<Portion> strided(const std::vector<double>& large, const Shape& wide,
                               const std::vector<double>& small, const Shape& narrow,
                               double limit) {
  if (wide.size() != narrow.size()) return std::nullopt;
  uint64_t step = 0;
  std::string axes;
  for (std::size_t axis = 0; axis < wide.size(); ++axis) {
    if (narrow[axis] > wide[axis]) return std::nullopt;
    if (narrow[axis] == wide[axis]) continue;
    step = std::max(step, (wide[axis] + narrow[axis] - 1) / std::max<uint64_t>(1, narrow[axis]));
    axes += fmt::format("{}{}", axes.empty() ? "" : " and ", axis);
  }
  const auto left = [&](const auto& along_axis) {
    std::vector<Along> along(wide.size());
    for (std::size_t axis = 0; axis < wide.size(); ++axis) {
      if (narrow[axis] == wide[axis]) continue;
      along[axis] = along_axis(axis);
      if (along[axis].first + (narrow[axis] - 1) * along[axis].step >= wide[axis]) return 1.0;
    }
    return left_of(large, wide, small, narrow, along);
  };
  for (uint64_t first = 0; step > 1 && first < step; ++first)
    if (left([&](std::size_t) { return Along{step, first}; }) <= limit)
      return Portion{fmt::format("every {} position along axes {}, from {} on: a stride",
                                 step == 2 ? "second" : fmt::format("{}th", step), axes, first),
                     "stride"};
  const auto rest = [&](std::size_t axis) { return wide[axis] - narrow[axis]; };
  if (left([&](std::size_t) { return Along{}; }) <= limit)
    return Portion{fmt::format("the first positions along axes {}", axes), "cut_behind"};
  if (left([&](std::size_t axis) { return Along{1, rest(axis)}; }) <= limit)
    return Portion{fmt::format("the last positions along axes {}", axes), "cut_in_front"};
  if (left([&](std::size_t axis) { return Along{1, rest(axis) / 2}; }) <= limit)
    return Portion{fmt::format("the middle positions along axes {}", axes), "cut_around"};
  return std::nullopt;
}

// Some of the rows, in their order.
std::optional<Portion> some_rows(std::vector<double> large, const Shape& wide,
                                 std::vector<double> small, const Shape& narrow, double limit) {
  if (wide.size() < 2 || narrow.size() < 2 || wide.back() != narrow.back()) return std::nullopt;
  const Block all{wide.back(), std::move(large)}, part{narrow.back(), std::move(small)};
  const auto places = operators::places_of(part, all, limit);
  if (!places || !std::ranges::is_sorted(*places)) return std::nullopt;
  return Portion{
      fmt::format("{} of the {} rows, the same to rounding: other tokens reach this step",
                  part.rows(), all.rows()),
      "fewer_rows"};
}

}  // namespace

void explain_subset(const LoneTensors& lone, const Site& site, Told& told) {
  const Lone *a = find(lone.a, site.capture), *b = find(lone.b, site.capture_b);
  if (!a || !b || site.comparison.status != Status::incomparable) return;
  const auto of_a = values_of(a->view), of_b = values_of(b->view);
  if (!of_a || !of_b || of_a->empty() || of_b->empty() || of_a->size() == of_b->size()) return;
  const double unit = std::max(roundoff_of(a->view), roundoff_of(b->view));
  const double limit = steps_of(unit) * unit;
  const bool fewer = of_b->size() < of_a->size();
  const auto& [large, wide] =
      fewer ? std::tie(*of_a, a->view.shape) : std::tie(*of_b, b->view.shape);
  const auto& [small, narrow] =
      fewer ? std::tie(*of_b, b->view.shape) : std::tie(*of_a, a->view.shape);
  std::optional<Portion> part = strided(large, wide, small, narrow, limit);
  if (!part) part = some_rows(large, wide, small, narrow, limit);
  if (!part) return;
  Finding finding;
  finding.code = diagnoses::operator_step.code;
  finding.pair = site.index;
  finding.explanation =
      fmt::format("{} holds a part of {}: {}", fewer ? 'B' : 'A', fewer ? 'A' : 'B', part->text);
  finding.parameters = {{"cause", part->cause},
                        {"standing", std::string(name_of(operators::Standing::unknown))},
                        {"family", std::string(name_of(operators::Family::index))}};
  told.finding = std::move(finding);
}

}  // namespace tensordiff
