// regression_test: is b still as close to a as it has to be, or as it was? (A file called *_test
// would be taken for a test.)
//
// Against limits (--threshold with the name of a metric, or missing, not_finite, reshaped), and,
// where an earlier `-o report` is given (--baseline), tensor by tensor against what it found.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analyze/analysis.h"
#include "analyze/gates.h"
#include "base/json.h"
#include "compare/metric.h"
#include "compare/status_words.h"

namespace tensordiff {
namespace {

constexpr double kRelMax = 0.1;      // ‖B − A‖ / ‖A‖ of each tensor,
constexpr double kCosineMin = 0.99;  // and their cosine.
constexpr double kSlack = 0.1;       // How much worse than the baseline is still the same.
constexpr double kTiny = 1e-7;       // Changes below float32's rounding are no regression.

// The limit of each metric over all weights, where there is one by default.
constexpr std::pair<std::string_view, double> kDefaults[] = {
    {"rel_l2", kRelMax},
    {"max_abs", std::numeric_limits<double>::infinity()},
    {"cosine", kCosineMin},
};

std::vector<std::string_view> thresholds() {
  std::vector<std::string_view> names = {"missing", "not_finite", "reshaped", "slack"};
  for (const Metric& metric : metrics())
    if (metric.good != Metric::Good::near_one) names.push_back(metric.name);
  return names;
}

// Names the weights that break the limit of a metric.
Gate judge(const Metric& metric, double bound, std::span<const Row* const> weights) {
  const bool at_least = metric.good == Metric::Good::high;
  std::vector<std::string> bad;
  std::optional<double> worst;
  for (const Row* pair : weights) {
    const std::optional<double> value = metric.of(pair->comparison.diff);
    if (!value) continue;
    const bool worse = at_least ? *value < bound : !(*value <= bound);
    if (worse) bad.push_back(pair->a.name);
    const bool beats = !worst || (at_least ? *value < *worst : *value > *worst);
    if (beats) worst = value;
  }
  std::string evidence = worst ? fmt::format("worst {:.4g}, limit {:.4g}", *worst, bound)
                               : std::string("nothing to measure");
  if (!bad.empty()) evidence += fmt::format("; {} beyond it: {}", bad.size(), first_names(bad));
  return {std::string(metric.name), bad.empty(), std::move(evidence)};
}

Gate count_gate(std::string name, const std::vector<std::string>& bad, double limit) {
  return {std::move(name), static_cast<double>(bad.size()) <= limit,
          fmt::format("{} found, {:.4g} allowed{}{}", bad.size(), limit, bad.empty() ? "" : ": ",
                      first_names(bad))};
}

std::vector<std::string> not_finite(std::span<const Row* const> weights) {
  std::vector<std::string> names;
  for (const Row* pair : weights)
    if (pair->comparison.diff.nonfinite_mismatch > 0) names.push_back(pair->a.name);
  return names;
}

// "nan" and the like are text in a report.
double number_in(const Json& json) {
  if (const std::optional<double> number = json.number()) return *number;
  return json.string().empty() ? 0 : std::numeric_limits<double>::infinity();
}

Gate against_baseline(const Json& baseline, const Study& study) {
  const double slack = limit_of(study, "slack", kSlack);
  std::map<std::string_view, const Json*> before;
  for (const Json& pair : baseline["pairs"].array()) before[pair["name_a"].string()] = &pair;
  std::vector<std::string> worse;
  uint64_t compared = 0;
  for (const Row* pair : study.pairs()) {
    const auto known = before.find(pair->a.name);
    if (known == before.end()) continue;
    ++compared;
    const std::optional<Status> status = status_named((*known->second)["status"].string());
    const bool could = !status || *status < Status::incomparable;
    const double then = number_in((*known->second)["diff"]["rel_l2"]);
    const double now = pair->comparison.diff.rel_l2.value_or(0);
    const bool lost = could && !pair->compared();
    if (lost || !(now <= std::max(kTiny, (1 + slack) * then))) worse.push_back(pair->a.name);
  }
  return {"not_worse_than_baseline", worse.empty(),
          fmt::format("{} of {} tensors farther from A than in the baseline{}{}", worse.size(),
                      compared, worse.empty() ? "" : ": ", first_names(worse))};
}

// Those with a default in their own order, then what the user set besides.
std::vector<Gate> metric_gates(const Study& study, std::span<const Row* const> weights) {
  std::vector<Gate> gates;
  std::vector<std::string_view> done;
  for (const auto& [name, bound] : kDefaults) {
    gates.push_back(judge(*metric_named(name), limit_of(study, name, bound), weights));
    done.push_back(name);
  }
  for (const auto& [name, bound] : study.options().thresholds) {
    const Metric* metric = metric_named(name);
    if (!metric || std::ranges::find(done, name) != done.end()) continue;
    gates.push_back(judge(*metric, limit_of(study, name, bound), weights));
    done.push_back(name);
  }
  return gates;
}

void examine(const Study& study, Answer& answer) {
  const std::vector<const Row*>& weights = study.weights();
  if (weights.empty()) {
    answer.unknown("passed", "weights that can be compared");
    return;
  }
  std::vector<Gate> gates = metric_gates(study, weights);
  gates.push_back(count_gate("not_finite", not_finite(weights), limit_of(study, "not_finite", 0)));
  gates.push_back(count_gate("missing", missing_weights(study), limit_of(study, "missing", 0)));
  gates.push_back(count_gate("reshaped", reshaped_weights(study), limit_of(study, "reshaped", 0)));
  if (!study.options().baseline.empty()) {
    const Result<Json> baseline = Json::parse(study.options().baseline);
    const bool report =
        baseline.ok() && baseline.value()["schema"].string().starts_with("tensordiff.report/");
    if (report)
      gates.push_back(against_baseline(baseline.value(), study));
    else
      gates.push_back(
          {"baseline", false, "the baseline is not a report of this program (-o report)"});
  } else {
    answer.notes.push_back("no baseline was given: limits alone decide");
  }
  answer.field("passed", std::ranges::all_of(gates, &Gate::passed));
  add_gates(gates, answer);
}

}  // namespace

constinit const Analysis analyses::regression_test = {
    .name = "regression_test",
    .flag = "--regression-test",
    .question = "Is B within the limits, and no farther from A than in the baseline?",
    .definition = "limits, and an earlier report (--baseline); exit status 1 if it fails",
    .examine = examine,
    .thresholds = thresholds,
};

}  // namespace tensordiff
