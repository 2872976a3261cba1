#include "diagnose/verdict/size_apart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/noise/growth.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr double kFactorMin = 1.4;
constexpr double kOfOthers = 1.0 / 3;  // Of its own, in logarithms: what other layers may have.
constexpr double kOfInputs = 0.25;     // And what comes in; an MLP multiplies that with itself.
constexpr std::size_t kLayersMin = 3;
constexpr std::size_t kTokensMin = 3;
constexpr double kStandardErrors = 4;

// The logarithm of how much larger b is.
double growth_of(const Site& site) {
  const double ratio = site.comparison.diff.norm_ratio.value_or(1);
  return ratio > 0 && std::isfinite(ratio) ? std::log(ratio) : 0;
}

bool multiplies_what_is_normed(Role role) {
  return role == Role::query || role == Role::key || role == Role::value ||
         role == Role::attention_output || role == Role::mlp_output;
}

// Whether neither other layers nor what comes in have as much of it.
bool is_alone(const Run& run, const Site& site) {
  const double own = std::abs(growth_of(site));
  std::size_t layers = 1;
  for (const Site& other : run.sites) {
    if (&other == &site || other.role != site.role || !other.compared()) continue;
    if (std::abs(growth_of(other)) > kOfOthers * own) return false;
    ++layers;
  }
  return layers >= kLayersMin && std::ranges::all_of(site.inputs, [&](std::size_t input) {
           const Site& source = run.sites[input];
           // What is unrelated to A's meets other weights, and comes out of any size.
           return !source.created && unrelated(source) < 1 &&
                  std::abs(growth_of(source)) <= kOfInputs * own;
         });
}

// Whether most tokens have it, and not a few that are far larger than the others.
bool is_of_all_tokens(const Case& it, double growth) {
  std::vector<double> growths;
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    const double each = std::log(norm(it.b.row(row)) / norm(it.a.row(row)));
    if (std::isfinite(each)) growths.push_back(each);
  }
  if (growths.size() < kTokensMin) return false;
  const auto count = static_cast<double>(growths.size());
  double sum = 0, squares = 0;
  for (const double each : growths) sum += each, squares += each * each;
  const double mean = sum / count;
  const double error = std::sqrt(std::max(0.0, squares / count - mean * mean) / count);
  return std::abs(mean) > std::log(kFactorMin) &&
         std::abs(mean - growth) <= std::max(kStandardErrors * error, kOfOthers * std::abs(growth));
}

}  // namespace

bool may_be_apart(const Run& run, const Site& site) {
  return multiplies_what_is_normed(site.role) && !site.inputs.empty() &&
         std::abs(growth_of(site)) >= std::log(kFactorMin) && is_alone(run, site);
}

std::optional<Explanation> size_apart(const Case& it) {
  const double growth = growth_of(it.site);
  if (!may_be_apart(it.run, it.site) || !is_of_all_tokens(it, growth)) return std::nullopt;
  Explanation result;
  const double factor = std::exp(growth);
  result.text = fmt::format("B is {} times as large as A in this layer only",
                            human_number(std::round(factor * 100) / 100));
  result.parameters = {{"factor", factor}};
  result.after = it.before;
  result.settled = true;
  return result;
}

}  // namespace tensordiff
