// One site explained by the first diagnosis that accounts for it.

#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "diagnose/diagnose.h"
#include "diagnose/hypotheses/diagnosis.h"

namespace tensordiff {

using Wanted = std::function<bool(const Diagnosis&)>;

struct Told {
  std::optional<Finding> finding;
  bool made_here = false;  // Of a site that may only carry: it does more.
  std::vector<Trial> trials;
};

// Tries the diagnoses that are wanted, in their order.
void explain(const Case& it, const DiagnoseOptions& options, const Wanted& wanted, Told& told);

// By tokens that b leaves empty, where it does: no noise around them hides that.
void explain_blanks(const Run& run, const Site& site, Told& told);

// A site whose inputs differ already: made_here says whether it made an error of its own.
Told explain_carried(const Run& run, const DiagnoseOptions& options, const Site& site);

// What speaks of values, and not of the step or of noise.
bool of_values(const Diagnosis& diagnosis);

}  // namespace tensordiff
