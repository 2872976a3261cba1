#include "diagnose/harmless.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/carried.h"
#include "diagnose/fit.h"
#include "diagnose/routing.h"

namespace tensordiff {
namespace {

constexpr double kShareOfBudget = 1.0 / 3;  // That a token of its own may take.

// Tokens of a mixture of experts that another expert took over are noise, though they are far off.
void forgive_rerouted(const Run& run, Site& site) {
  if (site.reason.empty()) return;
  const std::vector<uint64_t> tokens = rerouted_tokens(run, site, kShareOfBudget * site.budget);
  if (tokens.empty()) return;
  site.reason.clear();
  site.note =
      fmt::format("tokens {} took other experts: rounding decides near a tie", ranges_text(tokens));
}

// Which token of an expert stands first depends on the rank of that expert among those of the
// token, so that its tokens are a set.
void forgive_order_in_expert(const Run& run, Site& site) {
  const std::optional<double> left =
      site.reason.empty() ? std::nullopt : left_as_sets(run, site, site.budget);
  if (!left) return;
  site.reason.clear();
  site.note = "the expert gets the same tokens in another order: rounding decides near a tie";
  site.error = *left;
}

constexpr double kRounded = 1e-5;  // Of values that were multiplied in float32.

// Whether one holds the other times one number, as far as statistics tell.
bool only_scales(const Stats& from, const Stats& to) {
  if (!from.norm || !to.norm || !from.min || !to.min || *from.norm == 0) return false;
  const double factor = *to.norm / *from.norm;
  const auto near = [&](double x, double y) { return std::abs(x - y) <= kRounded * std::abs(y); };
  const bool straight = near(factor * *from.min, *to.min) && near(factor * *from.max, *to.max);
  const bool negated = near(-factor * *from.max, *to.min) && near(-factor * *from.min, *to.max);
  return from.finite == to.finite && from.zeros == to.zeros && (straight || negated);
}

// Steps that may do no more than multiply: queries and keys are scaled before attention.
bool may_scale(Role role) { return role == Role::query_final || role == Role::key_final; }

// One side may compute in one step what the other does in two, as a norm folded into a convolution:
// then it holds the same in both places, and behind the second the two agree. The second step of
// the other side must compute something, too: where its two tensors are multiples of each other,
// the factor is a difference that nothing shows to be undone.
bool is_folded(const Run& run, const Site& site) {
  const auto index = static_cast<std::size_t>(&site - run.sites.data());
  for (std::size_t i = index + 1; i < run.sites.size(); ++i) {
    const Site& next = run.sites[i];
    if (std::ranges::find(next.inputs, index) == next.inputs.end()) continue;
    const bool agrees = next.compared() && next.error <= site.budget;
    const bool fused_in_a = same_statistics(site.comparison.a, next.comparison.a);
    const bool fused_in_b = same_statistics(site.comparison.b, next.comparison.b);
    if (!agrees || fused_in_a == fused_in_b) return false;
    return may_scale(next.role) || !only_scales(fused_in_a ? site.comparison.b : site.comparison.a,
                                                fused_in_a ? next.comparison.b : next.comparison.a);
  }
  return false;
}

void forgive_folded(const Run& run, Site& site) {
  if (site.reason.empty() || !is_folded(run, site)) return;
  site.reason.clear();
  site.note = "one side fuses this step with the next; the result agrees";
  site.error = site.error_in;
}

}  // namespace

void forgive_harmless(const Run& run, Site& site) {
  forgive_rerouted(run, site);
  forgive_order_in_expert(run, site);
  forgive_folded(run, site);
}

}  // namespace tensordiff
