// risk_assessment: how risky is it to put b where a is, and for which reasons?
//
// The level is that of the gravest reason; every reason is listed with what it rests on.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/analysis.h"
#include "analyze/anomalies.h"
#include "analyze/gates.h"
#include "analyze/structure.h"

namespace tensordiff {
namespace {

constexpr double kLargeChange = 0.5, kMediumChange = 0.1;  // ‖B − A‖ / ‖A‖ of all weights.
constexpr double kLossRise = 0.05;

enum class Level { low, medium, high, critical };
std::string_view level_word(Level level) {
  constexpr std::string_view kNames[] = {"low", "medium", "high", "critical"};
  return kNames[static_cast<std::size_t>(level)];
}

struct Reason {
  Level level;
  std::string_view reason;
  std::string evidence;
};

void add_structure(const Study& study, std::vector<Reason>& reasons) {
  const std::vector<std::string> missing = missing_weights(study), added = added_weights(study),
                                 reshaped = reshaped_weights(study);
  if (!missing.empty())
    reasons.push_back({Level::high, "weights of A are missing", first_names(missing)});
  if (!reshaped.empty())
    reasons.push_back({Level::high, "weights have another shape", first_names(reshaped)});
  if (!added.empty())
    reasons.push_back({Level::medium, "weights that A does not have", first_names(added)});
  const Structure a = structure_of(study.a(), study.facts_a());
  const Structure b = structure_of(study.b(), study.facts_b());
  if (a.family != b.family && a.family != Family::unknown && b.family != Family::unknown)
    reasons.push_back({Level::high, "another family of model",
                       fmt::format("{} -> {}", name_of(a.family), name_of(b.family))});
  if (a.vocabulary != b.vocabulary)
    reasons.push_back(
        {Level::high, "another vocabulary",
         fmt::format("{} -> {} tokens", a.vocabulary.value_or(0), b.vocabulary.value_or(0))});
}

void add_size(const Study& study, std::vector<Reason>& reasons) {
  const std::vector<const Row*>& weights = study.weights();
  const std::optional<double> size = relative_change(weights);
  if (!size || *size < kMediumChange) return;
  reasons.push_back({*size >= kLargeChange ? Level::high : Level::medium,
                     "the weights changed much", fmt::format("by {:.3g} of their size", *size)});
}

void add_anomalies(const Study& study, std::vector<Reason>& reasons) {
  for (const Anomaly& each : find_anomalies(study)) {
    if (each.severity < Grade::warning) continue;
    reasons.push_back({each.severity == Grade::critical ? Level::critical : Level::medium,
                       each.kind, fmt::format("{}: {}", each.tensor, each.meaning)});
  }
}

void examine(const Study& study, Answer& answer) {
  if (study.pairs().empty()) {
    answer.unknown("level", "tensors that both sides have");
    return;
  }
  std::vector<Reason> reasons;
  add_anomalies(study, reasons);
  add_structure(study, reasons);
  add_size(study, reasons);
  const std::optional<Decline> decline = decline_of(study);
  if (!decline)
    answer.missing.push_back(
        "a loss or score in both checkpoints: quality is not part of the level");
  else if (decline->relative > kLossRise)
    reasons.push_back(
        {Level::high, "the stored measure became worse",
         fmt::format("{}: {:.4g} -> {:.4g}", decline->measure, decline->a, decline->b)});
  for (const Problem& problem : study.b().problems)
    reasons.push_back({Level::medium, "a problem in the files of B", problem.message});
  std::ranges::stable_sort(reasons, std::greater(), &Reason::level);
  answer.field("level", level_word(reasons.empty() ? Level::low : reasons[0].level));
  answer.field("reason", reasons.empty() ? "none" : reasons[0].reason);
  answer.field("reasons", reasons.size());
  Listing& list = answer.list("reasons_found", {"level", "reason", "evidence"});
  for (const Reason& each : reasons) list.add({level_word(each.level), each.reason, each.evidence});
}

}  // namespace

constinit const Analysis analyses::risk_assessment = {
    .name = "risk_assessment",
    .flag = "--risk-assessment",
    .question = "How risky is it to replace A by B, and why?",
    .definition = "risk level by anomalies, structure, size of the change and loss",
    .examine = examine,
};

}  // namespace tensordiff
