// regression_test: is b still as close to a as it has to be, or as it was? (A file called *_test
// would be taken for a test.)
//
// Against limits (--threshold rel_l2=, max_abs=, cosine=, missing=, not_finite=), and, where an
// earlier `-o report` is given (--baseline), tensor by tensor against what it found.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "analyze/analysis.h"
#include "analyze/gates.h"
#include "base/json.h"

namespace tensordiff {
namespace {

constexpr double kRelMax = 0.1;      // ‖b − a‖ / ‖a‖ of each tensor,
constexpr double kCosineMin = 0.99;  // and their cosine.
constexpr double kSlack = 0.1;       // How much worse than the baseline is still the same.
constexpr double kTiny = 1e-7;       // Changes below float32's rounding are no regression.

// One limit over all weights: names those that break it.
struct Limit {
  std::string name;
  double bound;
  bool at_least;  // Else at most.
  std::optional<double> (*value)(const Diff& diff);
};

Gate judge(const Limit& limit, std::span<const Subject* const> weights) {
  std::vector<std::string> bad;
  std::optional<double> worst;
  for (const Subject* pair : weights) {
    const std::optional<double> value = limit.value(pair->comparison.diff);
    if (!value) continue;
    const bool worse = limit.at_least ? *value < limit.bound : !(*value <= limit.bound);
    if (worse) bad.push_back(pair->name);
    const bool beats = !worst || (limit.at_least ? *value < *worst : *value > *worst);
    if (beats) worst = value;
  }
  std::string evidence = worst ? fmt::format("worst {:.4g}, limit {:.4g}", *worst, limit.bound)
                               : std::string("nothing to measure");
  if (!bad.empty()) evidence += fmt::format("; {} beyond it: {}", bad.size(), first_names(bad));
  return {limit.name, bad.empty(), std::move(evidence)};
}

Gate count_gate(std::string name, const std::vector<std::string>& bad, double limit) {
  return {std::move(name), static_cast<double>(bad.size()) <= limit,
          fmt::format("{} found, {:.4g} allowed{}{}", bad.size(), limit, bad.empty() ? "" : ": ",
                      first_names(bad))};
}

std::vector<std::string> not_finite(std::span<const Subject* const> weights) {
  std::vector<std::string> names;
  for (const Subject* pair : weights)
    if (pair->comparison.diff.nonfinite_mismatch > 0) names.push_back(pair->name);
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
  for (const Subject& pair : study.pairs()) {
    const auto known = before.find(pair.name);
    if (known == before.end()) continue;
    ++compared;
    const std::string_view status = (*known->second)["status"].string();
    const bool could = status != "error" && status != "incomparable";
    const double then = number_in((*known->second)["diff"]["rel_l2"]);
    const double now = pair.comparison.diff.rel_l2.value_or(0);
    const bool lost = could && !pair.compared();
    if (lost || !(now <= std::max(kTiny, (1 + slack) * then))) worse.push_back(pair.name);
  }
  return {"not_worse_than_baseline", worse.empty(),
          fmt::format("{} of {} tensors farther from a than in the baseline{}{}", worse.size(),
                      compared, worse.empty() ? "" : ": ", first_names(worse))};
}

void examine(const Study& study, Answer& answer) {
  const std::vector<const Subject*> weights = study.weights();
  if (weights.empty()) {
    answer.unknown("passed", "weights that can be compared");
    return;
  }
  const double unlimited = std::numeric_limits<double>::infinity();
  const Limit limits[] = {
      {"rel_l2", limit_of(study, "rel_l2", kRelMax), false,
       [](const Diff& diff) { return diff.rel_l2; }},
      {"max_abs", limit_of(study, "max_abs", unlimited), false,
       [](const Diff& diff) { return diff.max_abs; }},
      {"cosine", limit_of(study, "cosine", kCosineMin), true,
       [](const Diff& diff) { return diff.cosine; }},
  };
  std::vector<Gate> gates;
  for (const Limit& limit : limits) gates.push_back(judge(limit, weights));
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
    .question = "Is b still as close to a as it has to be, or as it was?",
    .definition = "limits, and an earlier report (--baseline); exit status 1 if it fails",
    .examine = examine,
};

}  // namespace tensordiff
