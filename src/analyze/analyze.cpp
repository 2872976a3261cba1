// Runs the analyses that were asked for.

#include <fmt/format.h>

#include <algorithm>

#include "analyze/analysis.h"

namespace tensordiff {

std::vector<std::string_view> threshold_names() {
  std::vector<std::string_view> names;
  for (const Analysis* analysis : analyses::kAll)
    for (const std::string_view name :
         analysis->thresholds ? analysis->thresholds() : std::vector<std::string_view>())
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

Result<void> check_thresholds(const AnalyzeOptions& options) {
  for (const auto& threshold : options.thresholds) {
    const std::string& name = threshold.first;
    std::string users;
    bool used = false;
    for (const Analysis* analysis : analyses::kAll) {
      const auto takes =
          analysis->thresholds ? analysis->thresholds() : std::vector<std::string_view>();
      if (std::ranges::find(takes, name) == takes.end()) continue;
      used = used || std::ranges::find(options.wanted, analysis) != options.wanted.end();
      users += fmt::format("{}{}", users.empty() ? "" : " or ", analysis->flag);
    }
    if (!used) return Error("'{}' has no effect without {}", name, users);
  }
  return {};
}

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

void add_change_by_depth(std::span<const Row* const> weights, Answer& answer) {
  const std::map<int64_t, std::vector<const Row*>> layers = by_depth(weights);
  if (layers.size() < 2) return;
  Chart chart;
  chart.name = "change_by_layer";
  chart.title = "size of the change by layer, relative to A";
  chart.y = {"‖B − A‖ / ‖A‖"};
  for (const auto& [depth, pairs] : layers) {
    chart.x.push_back(std::to_string(depth));
    chart.values.push_back(relative_change(pairs).value_or(0));
  }
  answer.charts.push_back(std::move(chart));
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
