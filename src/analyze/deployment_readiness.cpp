// deployment_readiness: may b take the place of a? A checklist; one failure is one too many.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/analysis.h"
#include "analyze/anomalies.h"
#include "analyze/gates.h"
#include "analyze/structure.h"
#include "base/text.h"

namespace tensordiff {
namespace {

constexpr double kGrowthMax = 0.1;   // Of the bytes of the weights: more may not fit.
constexpr double kBesideMax = 0.01;  // Bytes that are no weights, to those that are.

struct SideBytes {
  double weights = 0, beside = 0, doubles = 0;
};
SideBytes bytes_of_side(const Catalog& catalog) {
  SideBytes bytes;
  const Tensor* tied = tied_head(catalog);
  for (const Tensor& tensor : catalog.tensors) {
    if (!tensor.fault.empty() || &tensor == tied) continue;
    const auto size = static_cast<double>(tensor.bytes());
    const bool weight = purpose_of(tensor.name, tensor.view.shape) == Purpose::weight;
    (weight ? bytes.weights : bytes.beside) += size;
    if (weight && tensor.view.dtype == DType::f64) bytes.doubles += size;
  }
  return bytes;
}

// What is counted in words, and what it is said of: "tensor with new NaN in B".
struct Counted {
  std::string_view one, many, of;
};
Gate names_gate(std::string name, const std::vector<std::string>& bad, const Counted& what) {
  const std::string_view noun = bad.size() == 1 ? what.one : what.many;
  const std::string of = what.of.empty() ? "" : fmt::format(" {}", what.of);
  return {std::move(name), bad.empty(),
          bad.empty() ? fmt::format("no {}{}", what.many, of)
                      : fmt::format("{} {}{}: {}", bad.size(), noun, of, first_names(bad))};
}

std::vector<std::string> not_finite(const Study& study) {
  std::vector<std::string> names;
  for (const Row* pair : study.weights()) {
    const Stats& b = pair->comparison.b;
    const Stats& a = pair->comparison.a;
    if (b.nan + b.inf > a.nan + a.inf) names.push_back(pair->b.name);
  }
  return names;
}

std::vector<std::string> unreadable(const Study& study) {
  std::vector<std::string> names;
  for (const Row* pair : study.pairs())
    if (pair->comparison.status == Status::error) names.push_back(pair->b.name);
  for (const Tensor* tensor : study.only_b())
    if (!tensor->fault.empty()) names.push_back(tensor->name);
  return names;
}

std::vector<std::string> critical(const Study& study) {
  std::vector<std::string> found;
  for (const Anomaly& each : find_anomalies(study))
    if (each.severity == Grade::critical)
      found.push_back(fmt::format("{} of {}", each.kind, each.tensor));
  return found;
}

void examine(const Study& study, Answer& answer) {
  const SideBytes a = bytes_of_side(study.a()), b = bytes_of_side(study.b());
  std::vector<std::string> problems;
  for (const Problem& problem : study.b().problems) problems.push_back(problem.message);
  const double limit = limit_of(study, "memory_growth", kGrowthMax);
  std::vector<Gate> gates = {
      names_gate("readable", unreadable(study),
                 {"unreadable tensor", "unreadable tensors", "in B"}),
      names_gate("safe", problems, {"problem", "problems", "in the files of B"}),
      names_gate("finite", not_finite(study),
                 {"tensor", "tensors", "with new NaN or infinite values"}),
      names_gate("complete", missing_weights(study), {"weight", "weights", "of A missing from B"}),
      names_gate("nothing_unknown", added_weights(study),
                 {"weight", "weights", "that A does not have"}),
      names_gate("same_shapes", reshaped_weights(study), {"weight", "weights", "of another shape"}),
      names_gate("healthy", critical(study), {"critical anomaly", "critical anomalies", ""}),
      {"lean", b.beside <= kBesideMax * std::max(1.0, b.weights),
       fmt::format("{} beside weights of {}", human_bytes(static_cast<uint64_t>(b.beside)),
                   human_bytes(static_cast<uint64_t>(b.weights)))},
      {"not_double", b.doubles == 0,
       fmt::format("{} in float64", human_bytes(static_cast<uint64_t>(b.doubles)))},
      {"fits", b.weights <= (1 + limit) * a.weights,
       fmt::format("{} after {}; {:.3g} % more are allowed",
                   human_bytes(static_cast<uint64_t>(b.weights)),
                   human_bytes(static_cast<uint64_t>(a.weights)), 100 * limit)},
  };
  if (study.weights().empty()) {
    answer.unknown("ready", "weights that can be compared");
    return;
  }
  answer.field("ready", std::ranges::all_of(gates, &Gate::passed));
  add_gates(gates, answer);
}

}  // namespace

constinit const Analysis analyses::deployment_readiness = {
    .name = "deployment_readiness",
    .flag = "--deployment-readiness",
    .question = "Can B replace A?",
    .definition = "a checklist: readable, safe, finite, complete, same shapes, healthy, lean, fits",
    .examine = examine,
    .thresholds = []() -> std::vector<std::string_view> { return {"memory_growth"}; },
};

}  // namespace tensordiff
