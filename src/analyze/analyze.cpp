// Runs the analyses that were asked for.

#include <algorithm>

#include "analyze/analysis.h"

namespace tensordiff {

std::vector<Answer> analyze(const Study& study) {
  std::vector<Answer> answers;
  for (const Analysis* analysis : analyses::kAll) {
    if (std::ranges::find(study.options().wanted, analysis) == study.options().wanted.end())
      continue;
    Answer& answer = answers.emplace_back();
    answer.name = analysis->name;
    analysis->examine(study, answer);
  }
  return answers;
}

std::string camel_case(std::string_view name) {
  std::string out;
  bool start = true;
  for (const char c : name) {
    if (c != '_') out += start && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    start = c == '_';
  }
  return out;
}

}  // namespace tensordiff
