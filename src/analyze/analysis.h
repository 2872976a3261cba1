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

namespace tensordiff {

struct Analysis {
  std::string_view name;      // As in the JSON: "memory_analysis".
  std::string_view flag;      // "--memory-analysis"
  std::string_view question;  // One line, for people.
  std::string_view definition;
  void (*examine)(const Study& study, Answer& answer);
};

namespace analyses {

extern const Analysis change_summary;
extern const Analysis memory_analysis;

// In this order they are shown.
inline constexpr const Analysis* kAll[] = {
    &change_summary,
    &memory_analysis,
};

}  // namespace analyses

// The answers to what the options ask for, in the order of the list.
std::vector<Answer> analyze(const Study& study);

// "memory_analysis" -> "MemoryAnalysis"
std::string camel_case(std::string_view name);

}  // namespace tensordiff
