// What was tried on each pair, for --explain: equal outcomes once, pairs with equal outcomes once.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "report/style.h"

namespace tensordiff {

struct TrialGroup {
  // "rejected", the causes, and why; the reason is empty where the label says it all.
  struct Outcome {
    std::string_view label;
    std::string_view reason;
    std::vector<std::string_view> codes;
  };
  std::vector<std::size_t> pairs;
  std::vector<Outcome> outcomes;  // What was accepted comes first.
};

// Views into the report, which has to outlive them.
std::vector<TrialGroup> trial_groups(const Report& report);

// "cast, scale: does not fit a sample"
std::string outcome_text(const TrialGroup::Outcome& outcome);

// "layer_1, layer_2, layer_3 and 12 more"
std::string pairs_text(const TrialGroup& group, const Report& report);

std::string trial_lines(const Report& report, const Style& style, std::size_t width);

}  // namespace tensordiff
