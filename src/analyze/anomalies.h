// What is wrong with the weights of b, seen against those of a: the rules that anomaly_detection,
// deployment_readiness, risk_assessment and alert_on_degradation share.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/study.h"

namespace tensordiff {

enum class Grade { none, info, warning, critical };
std::string_view name_of(Grade severity);

struct Anomaly {
  std::string_view kind;  // "nonfinite", "exploding", "vanishing", "dead_rows" …
  Grade severity = Grade::info;
  std::string tensor;
  double value = 0;      // What was measured,
  double reference = 0;  // and what it is held against.
  std::string meaning;   // "37 of 64 rows are zero; 0 in A"
};

// The worst first; equal ones in display order.
std::vector<Anomaly> find_anomalies(const Study& study);

// The limits, and why they lie where they lie, are in docs/analyses.md.
namespace anomaly {
inline constexpr double kRatio = 10;  // Exploding: rms of b over that of a; or its inverse.
inline constexpr double kRatioCritical = 100;
inline constexpr double kOutlierRatio = 3;       // The same for a tensor that stands out of all:
inline constexpr double kOutlierDeviations = 8;  // so many median deviations from the median ratio.
inline constexpr double kDeadShareCritical = 0.1;
inline constexpr double kCollapsed = 0.1;  // Effective rank of b over that of a.
inline constexpr double kShift = 0.1;      // Kolmogorov–Smirnov distance.
inline constexpr double kShiftWarning = 0.3;
inline constexpr double kSaturated = 1e-3;  // Share of values at the end of the type.
inline constexpr double kSaturatedCritical = 1e-2;
}  // namespace anomaly

}  // namespace tensordiff
