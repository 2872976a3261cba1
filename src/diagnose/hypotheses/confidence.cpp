#include "diagnose/hypotheses/confidence.h"

#include <algorithm>
#include <string>
#include <variant>

#include "diagnose/hypotheses/calibration.h"

namespace tensordiff::hypotheses {
namespace {

// Fewer tell too little: the standard error of a share is then above 5 points (√(0.1 × 0.9 / 30)).
constexpr unsigned kEnough = 30;

const Parameter* find(const Finding& finding, std::string_view name) {
  const auto it = std::ranges::find(finding.parameters, name, &Parameter::name);
  return it == finding.parameters.end() ? nullptr : &*it;
}

// Says what is wrong, and not only that the step is.
bool is_named(const Finding& finding) {
  return finding.code != "operator" || find(finding, "cause") || find(finding, "function_b");
}

struct Share {
  unsigned right = 0, all = 0;
  double value() const { return (right + 1.0) / (all + 2.0); }
};

}  // namespace

double confidence_of(const Finding& finding, Basis basis, std::span<const Counted> corpus) {
  const bool named = is_named(finding);
  Share of_code, of_basis, of_all;
  for (const Counted& row : corpus) {
    if (row.named != named) continue;
    const auto add = [&](Share& share) { share.right += row.right, share.all += row.all; };
    add(of_all);
    if (row.basis == basis) add(of_basis);
    if (row.basis == basis && row.code == finding.code) add(of_code);
  }
  for (const Share& share : {of_code, of_basis})
    if (share.all >= kEnough) return share.value();
  return of_all.value();
}

double confidence_of(const Finding& finding, Basis basis) {
  return confidence_of(finding, basis, kCalibration);
}

Basis basis_of(const Finding& finding) {
  const Parameter* standing = find(finding, "standing");
  const std::string* word = standing ? std::get_if<std::string>(&standing->value) : nullptr;
  if (!word) return Basis::transform;
  return *word == "given" ? Basis::given : *word == "fitted" ? Basis::fitted : Basis::unknown;
}

void rate(std::vector<Finding>& findings, bool activations) {
  for (Finding& finding : findings)
    finding.confidence =
        confidence_of(finding, activations ? basis_of(finding) : Basis::checkpoint);
}

}  // namespace tensordiff::hypotheses
