// A question about two models as a whole, and the list of those that can be asked.
//
// An analysis reads what was compared, and measures more through the Study where it has to. It
// answers from what the files hold, and says "unknown" where they do not hold it. To add one:
// write analyze/<name>.cpp, add it to the list below, and describe it in docs/analyses.md.

#pragma once

#include <string_view>
#include <vector>

#include "analyze/answer.h"
#include "analyze/study.h"
#include "base/result.h"

namespace tensordiff {

struct Analysis {
  std::string_view name;      // As in the JSON: "memory_analysis".
  std::string_view flag;      // "--memory-analysis"
  std::string_view question;  // One line, for people.
  std::string_view definition;
  void (*examine)(const Study& study, Answer& answer);
  // The names of the limits that --threshold sets in it; nullptr: it has none.
  std::vector<std::string_view> (*thresholds)() = nullptr;
};

namespace analyses {

extern const Analysis change_summary;
extern const Analysis what_changed;
extern const Analysis low_rank;
extern const Analysis learning_progress;
extern const Analysis convergence_analysis;
extern const Analysis anomaly_detection;
extern const Analysis gradient_analysis;
extern const Analysis learning_rate_analysis;
extern const Analysis hyperparameter_impact;
extern const Analysis architecture_comparison;
extern const Analysis param_efficiency_analysis;
extern const Analysis memory_analysis;
extern const Analysis inference_speed_estimate;
extern const Analysis performance_impact_estimate;
extern const Analysis quantization_analysis;
extern const Analysis embedding_analysis;
extern const Analysis similarity_matrix;
extern const Analysis clustering_change;
extern const Analysis attention_analysis;
extern const Analysis head_importance;
extern const Analysis attention_pattern_diff;
extern const Analysis deployment_readiness;
extern const Analysis regression_test;
extern const Analysis risk_assessment;
extern const Analysis alert_on_degradation;

// In this order they are shown.
inline constexpr const Analysis* kAll[] = {
    &change_summary,
    &what_changed,
    &low_rank,
    &learning_progress,
    &convergence_analysis,
    &anomaly_detection,
    &gradient_analysis,
    &learning_rate_analysis,
    &hyperparameter_impact,
    &architecture_comparison,
    &param_efficiency_analysis,
    &memory_analysis,
    &inference_speed_estimate,
    &performance_impact_estimate,
    &quantization_analysis,
    &embedding_analysis,
    &similarity_matrix,
    &clustering_change,
    &attention_analysis,
    &head_importance,
    &attention_pattern_diff,
    &deployment_readiness,
    &regression_test,
    &risk_assessment,
    &alert_on_degradation,
};

}  // namespace analyses

// The names of all limits, each once.
std::vector<std::string_view> threshold_names();

// Refuses limits that none of the wanted analyses looks at: they would seem to hold.
Result<void> check_thresholds(const AnalyzeOptions& options);

// The answers to what the options ask for, in the order of the list.
std::vector<Answer> analyze(const Study& study);

// A chart of ‖b − a‖ / ‖a‖ by layer, where there are at least two layers.
void add_change_by_depth(std::span<const Row* const> weights, Answer& answer);

// "memory_analysis" -> "MemoryAnalysis"
std::string camel_case(std::string_view name);

}  // namespace tensordiff
