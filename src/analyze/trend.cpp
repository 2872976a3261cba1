#include "analyze/trend.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <map>

#include "analyze/convergence.h"
#include "analyze/facts.h"
#include "analyze/study.h"
#include "base/parallel.h"
#include "base/text.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr uint64_t kBlock = 1 << 15;        // Elements in hand at a time, for each of four.
constexpr uint64_t kSegment = 32 * kBlock;  // What one task reads. Fixed: sums depend on it.
constexpr std::size_t kNotesMax = 8;

// Sums over some elements of one tensor, for one checkpoint.
struct StepSums {
  double squares = 0;  // Of x_i
  double before = 0;   // Of x_{i−1}, where both are finite.
  double change = 0;   // Of x_i − x_{i−1}
  double product = 0;  // Of two successive changes, and their squares, where all three are finite.
  double change_here = 0, change_before = 0;
  uint64_t nonfinite = 0;

  void add(const StepSums& other) {
    squares += other.squares;
    before += other.before;
    change += other.change;
    product += other.product;
    change_here += other.change_here;
    change_before += other.change_before;
    nonfinite += other.nonfinite;
  }
};
using Sums = std::vector<StepSums>;

void add_all(Sums& sums, const Sums& more) {
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].add(more[i]);
}

// One tensor in all checkpoints.
struct TensorCourse {
  std::string name;
  std::string group;
  std::vector<const Tensor*> tensors;
};

// The values of one block, and how it came there from the checkpoint before.
struct Frame {
  std::vector<double> values, change;
};

void add_block(const Frame& before, Frame& here, std::size_t count, bool has_angle,
               StepSums& sums) {
  for (std::size_t i = 0; i < count; ++i) {
    here.change[i] = here.values[i] - before.values[i];
    const double change = here.change[i];
    if (!std::isfinite(change)) continue;
    sums.before += before.values[i] * before.values[i];
    sums.change += change * change;
    if (!has_angle || !std::isfinite(before.change[i])) continue;
    sums.product += change * before.change[i];
    sums.change_here += change * change;
    sums.change_before += before.change[i] * before.change[i];
  }
}

void add_values(const Frame& here, std::size_t count, StepSums& sums) {
  for (std::size_t i = 0; i < count; ++i) {
    if (std::isfinite(here.values[i]))
      sums.squares += here.values[i] * here.values[i];
    else
      ++sums.nonfinite;
  }
}

Sums segment_sums(const std::vector<Reader>& readers, uint64_t first, uint64_t end) {
  Sums sums(readers.size());
  Frame before{std::vector<double>(kBlock), std::vector<double>(kBlock)}, here = before;
  for (uint64_t at = first; at < end; at += kBlock) {
    const auto count = static_cast<std::size_t>(std::min(kBlock, end - at));
    for (std::size_t step = 0; step < readers.size(); ++step) {
      readers[step].values(at, count, here.values.data());
      add_values(here, count, sums[step]);
      if (step > 0) add_block(before, here, count, step > 1, sums[step]);
      std::swap(before, here);
    }
  }
  return sums;
}

Result<Sums> sums_of(const TensorCourse& course) {
  std::vector<Reader> readers;
  for (const Tensor* tensor : course.tensors) readers.push_back(TRY(Reader::open(tensor->view)));
  const uint64_t elements = element_count(course.tensors[0]->view.shape).value_or(0);
  const auto segments = static_cast<std::size_t>((elements + kSegment - 1) / kSegment);
  std::vector<Sums> parts(segments);
  for_each_index(segments, [&](std::size_t i) {
    parts[i] = segment_sums(readers, i * kSegment, std::min(elements, (i + 1) * kSegment));
  });
  for (const Reader& reader : readers)
    if (!reader.intact()) return Error("the file was cut short while it was read");
  Sums sums(readers.size());
  for (const Sums& part : parts) add_all(sums, part);
  return sums;
}

// "model.layers.3.mlp" -> "layer 3"; else the first word that is not a wrapper's.
std::string group_of(const Tensor& tensor) {
  if (tensor.place.layer >= 0) return fmt::format("layer {}", tensor.place.layer);
  for (const std::string_view word : split(tensor.name, '.'))
    if (word != "model" && word != "module" && word != "transformer" && word != "state_dict")
      return std::string(word);
  return tensor.name;
}

// Why a tensor takes no part; "" where it does.
std::string fault_of(const TensorCourse& course) {
  for (const Tensor* tensor : course.tensors) {
    if (!tensor) return "is not in every checkpoint";
    if (!tensor->fault.empty()) return tensor->fault;
    if (tensor->view.shape != course.tensors[0]->view.shape) return "changes its shape";
    if (is_complex(tensor->view.dtype)) return "is complex";
  }
  return "";
}

std::vector<TensorCourse> courses_of(const std::vector<Catalog>& checkpoints, Trend& trend) {
  std::vector<TensorCourse> courses;
  std::map<std::string_view, std::size_t> places;
  for (std::size_t step = 0; step < checkpoints.size(); ++step) {
    for (const Tensor& tensor : checkpoints[step].tensors) {
      if (purpose_of(tensor.name, tensor.view.shape) != Purpose::weight) continue;
      const auto [place, fresh] = places.emplace(tensor.name, courses.size());
      if (fresh)
        courses.push_back(
            {tensor.name, group_of(tensor), std::vector<const Tensor*>(checkpoints.size())});
      courses[place->second].tensors[step] = &tensor;
    }
  }
  std::size_t left_out = 0;
  std::erase_if(courses, [&](const TensorCourse& course) {
    const std::string fault = fault_of(course);
    if (!fault.empty() && left_out++ < kNotesMax)
      trend.notes.push_back(fmt::format("{} {}: left out", printable(course.name), fault));
    return !fault.empty();
  });
  if (left_out > kNotesMax)
    trend.notes.push_back(fmt::format("and {} more tensors are left out", left_out - kNotesMax));
  return courses;
}

std::optional<double> ratio(double over, double under) {
  if (!(under > 0)) return std::nullopt;
  return over / under;
}

std::vector<TrendPoint> points_from(const Sums& sums) {
  std::vector<TrendPoint> points(sums.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    points[i].norm = std::sqrt(sums[i].squares);
    points[i].nonfinite = sums[i].nonfinite;
    if (i > 0) points[i].update = ratio(std::sqrt(sums[i].change), std::sqrt(sums[i].before));
    if (i > 1)
      points[i].cosine =
          ratio(sums[i].product, std::sqrt(sums[i].change_here) * std::sqrt(sums[i].change_before));
  }
  return points;
}

TrendStep step_of(const Catalog& checkpoint) {
  const Facts facts = Facts::of(checkpoint);
  const Progress progress = progress_of(facts);
  const auto value = [](const Fact* fact) {
    return fact ? std::optional(fact->value) : std::nullopt;
  };
  return {checkpoint.path, value(progress.step), value(progress.loss), value(progress.score)};
}

// Groups in the order of the file, and all of them together before.
void add_groups(const std::vector<TensorCourse>& courses, const std::vector<Sums>& sums,
                Trend& trend) {
  std::vector<Sums> totals(1, Sums(trend.steps.size()));
  trend.groups = {{"all", 0, 0, {}}};
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < courses.size(); ++i) {
    const auto [place, fresh] = places.emplace(courses[i].group, trend.groups.size());
    if (fresh) {
      trend.groups.push_back({courses[i].group, 0, 0, {}});
      totals.emplace_back(trend.steps.size());
    }
    for (const std::size_t group : {std::size_t{0}, place->second}) {
      add_all(totals[group], sums[i]);
      ++trend.groups[group].tensors;
      trend.groups[group].elements += element_count(courses[i].tensors[0]->view.shape).value_or(0);
    }
  }
  for (std::size_t i = 0; i < totals.size(); ++i) trend.groups[i].points = points_from(totals[i]);
}

// The losses of all checkpoints, or else their scores; empty where not all store one.
std::vector<double> measures_of(const Trend& trend, std::optional<double> TrendStep::*which) {
  std::vector<double> values;
  for (const TrendStep& step : trend.steps)
    if (step.*which) values.push_back(*(step.*which));
  if (values.size() != trend.steps.size()) values.clear();
  return values;
}

Convergence judged(const Trend& trend) {
  const std::vector<TrendPoint>& points = trend.groups[0].points;
  std::vector<double> sizes, cosines;
  std::vector<double> measures = measures_of(trend, &TrendStep::loss);
  const bool losses = !measures.empty();
  if (!losses) measures = measures_of(trend, &TrendStep::score);
  const std::optional<double> last_step = trend.steps.back().step,
                              step_before = trend.steps[trend.steps.size() - 2].step;
  for (const TrendPoint& point : points) {
    if (point.update) sizes.push_back(*point.update);
    if (point.cosine) cosines.push_back(*point.cosine);
  }
  const double first = points.front().norm.value_or(0), last = points.back().norm.value_or(0);
  return judge_convergence({.sizes = sizes,
                            .cosines = cosines,
                            .broken = points.back().nonfinite > points.front().nonfinite,
                            .growth = first > 0 ? last / first : 1,
                            .measures = measures,
                            .smaller_is_better = losses,
                            .steps = last_step && step_before
                                         ? std::optional(*last_step - *step_before)
                                         : std::nullopt});
}

}  // namespace

Result<Trend> measure_trend(const std::vector<Catalog>& checkpoints,
                            const std::function<void(uint64_t done, uint64_t total)>& progress) {
  if (checkpoints.size() < 2) return Error("a trend needs two checkpoints or more");
  Trend trend;
  for (const Catalog& checkpoint : checkpoints) trend.steps.push_back(step_of(checkpoint));
  std::vector<TensorCourse> courses = courses_of(checkpoints, trend);
  if (courses.empty()) return Error("the checkpoints have no tensor in common");

  std::vector<Sums> sums(courses.size(), Sums(checkpoints.size()));
  std::vector<std::string> faults(courses.size());
  const uint64_t total = checkpoints[0].elements();
  std::atomic<uint64_t> done = 0;
  for_each_index(courses.size(), [&](std::size_t i) {
    Result<Sums> result = sums_of(courses[i]);
    if (result.ok())
      sums[i] = std::move(result).value();
    else
      faults[i] = result.error().message();
    done += element_count(courses[i].tensors[0]->view.shape).value_or(0);
    if (progress) progress(done, total);
  });
  for (std::size_t i = 0; i < courses.size(); ++i)
    if (!faults[i].empty())
      trend.notes.push_back(fmt::format("{}: {}: left out", printable(courses[i].name), faults[i]));
  add_groups(courses, sums, trend);
  Convergence convergence = judged(trend);
  trend.course = convergence.course;
  trend.reason = std::move(convergence.reason);
  return trend;
}

}  // namespace tensordiff
