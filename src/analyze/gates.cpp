#include "analyze/gates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "analyze/analysis.h"

namespace tensordiff {
namespace {

constexpr std::size_t kNamesShown = 3;

std::vector<std::string> weights_among(std::span<const Tensor* const> tensors) {
  std::vector<std::string> names;
  for (const Tensor* tensor : tensors)
    if (purpose_of(tensor->name, tensor->view.shape) == Purpose::weight &&
        tensor->auxiliary.empty())
      names.push_back(tensor->name);
  return names;
}

}  // namespace

void add_gates(std::vector<Gate> gates, Answer& answer) {
  std::ranges::stable_sort(gates, {}, &Gate::passed);  // What failed is what matters.
  Listing& list = answer.list("gates", {"gate", "passed", "evidence"});
  std::vector<std::string> failed;
  for (const Gate& gate : gates) {
    list.add({gate.name, gate.passed, gate.evidence});
    if (!gate.passed) failed.push_back(gate.name);
  }
  answer.field("failed", failed.size()).field("checked", gates.size());
  if (!failed.empty())
    answer.alarm = fmt::format("{} of {} checks failed: {}", failed.size(), gates.size(),
                               fmt::join(failed, ", "));
}

double limit_of(const Study& study, std::string_view name, double otherwise) {
  // A limit that no analysis declares could not be set.
  [[maybe_unused]] const std::vector<std::string_view> names = threshold_names();
  assert(std::ranges::find(names, name) != names.end());
  for (const auto& [key, limit] : study.options().thresholds)
    if (key == name) otherwise = limit;
  return otherwise;
}

std::string first_names(const std::vector<std::string>& names) {
  const std::size_t count = std::min(kNamesShown, names.size());
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += (i ? ", " : "") + names[i];
  return names.size() > count ? text + ", …" : text;
}

std::vector<std::string> missing_weights(const Study& study) {
  return weights_among(study.only_a());
}

std::vector<std::string> added_weights(const Study& study) { return weights_among(study.only_b()); }

std::vector<std::string> reshaped_weights(const Study& study) {
  std::vector<std::string> names;
  for (const Row* pair : study.pairs())
    if (is_weight(*pair) && pair->comparison.status == Status::incomparable)
      names.push_back(pair->a.name);
  return names;
}

std::optional<Decline> decline_of(const Study& study) {
  const Progress after = progress_of(study.facts_b());
  for (const Fact* fact : {after.loss, after.score}) {
    const std::optional<double> before = fact ? study.facts_a().named(fact->name) : std::nullopt;
    if (!before || *before == 0 || !std::isfinite(*before)) continue;
    const bool loss = fact == after.loss;
    // A loss that is no number any more is as bad as it gets.
    constexpr double kWorst = std::numeric_limits<double>::infinity();
    if (!std::isfinite(fact->value)) return Decline{fact->name, *before, fact->value, kWorst, loss};
    const double growth = (fact->value - *before) / std::abs(*before);
    return Decline{fact->name, *before, fact->value, loss ? growth : -growth, loss};
  }
  return std::nullopt;
}

std::optional<StepsBetween> steps_between(const Study& study) {
  const Fact* after = progress_of(study.facts_b()).step;
  const std::optional<double> before = after ? study.facts_a().named(after->name) : std::nullopt;
  if (!before || !std::isfinite(*before) || !std::isfinite(after->value)) return std::nullopt;
  if (*before == after->value) return std::nullopt;
  return StepsBetween{after->name, *before, after->value};
}

}  // namespace tensordiff
