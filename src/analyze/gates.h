// Checks that pass or fail, with what they were judged by: how readiness, regressions and alerts
// are told in one form.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "analyze/answer.h"
#include "analyze/study.h"

namespace tensordiff {

struct Gate {
  std::string name;
  bool passed = true;
  std::string evidence;  // "3 tensors of a are missing: fc.bias, …"
};

// The list of gates, those that failed first, their count, and the alarm if there are any.
void add_gates(std::vector<Gate> gates, Answer& answer);

// The limit that the user set (--threshold NAME=X), or else the default.
double limit_of(const Study& study, std::string_view name, double otherwise);

// "fc.bias, fc.weight, …": the first few names.
std::string first_names(const std::vector<std::string>& names);

// Weights of a that b does not have, and the other way round.
std::vector<std::string> missing_weights(const Study& study);
std::vector<std::string> added_weights(const Study& study);
std::vector<std::string> reshaped_weights(const Study& study);

// How much worse the stored loss (or score) became: relative to a, above 0 worse. Nothing where
// the files do not tell.
struct Decline {
  std::string measure;
  double a = 0, b = 0;
  double relative = 0;
  bool smaller_is_better = true;
};
std::optional<Decline> decline_of(const Study& study);

// A step counter that both checkpoints store under one name; nothing where it did not move.
struct StepsBetween {
  std::string counter;
  double a = 0, b = 0;
};
std::optional<StepsBetween> steps_between(const Study& study);

}  // namespace tensordiff
