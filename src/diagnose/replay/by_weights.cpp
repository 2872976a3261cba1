#include "diagnose/replay/by_weights.h"

#include "base/parallel.h"
#include "diagnose/limits.h"
#include "diagnose/replay/expected.h"
#include "diagnose/replay/linear_replay.h"

namespace tensordiff {
namespace {

bool multiplies(const Run& run, const Site& site) {
  return projection_of(run, site) || site.role == Role::mlp_output;
}

}  // namespace

std::vector<bool> against_weights(const Run& run) {
  if (run.weights.empty()) return std::vector<bool>(run.sites.size());
  std::vector<char> found(run.sites.size());  // Written to by many threads.
  for_each_index(run.sites.size(), [&](std::size_t i) {
    const Site& site = run.sites[i];
    if (!site.compared() || site.error <= limits::kReplayed * site.roundoff ||
        !multiplies(run, site))
      return;
    const std::optional<Expected> expected = expected_of(run, site);
    found[i] = expected && !expected->met();
  });
  return {found.begin(), found.end()};
}

WeightUse weight_use(const Run& run) {
  WeightUse use;
  for (const Site& site : run.sites) {
    if (!site.compared() || !multiplies(run, site)) continue;
    ++use.steps;
    if (site.inputs.size() != 1 || !run.sites[site.inputs[0]].compared()) continue;
    const uint64_t out = by_tokens(site.views.a, run.extent).features;
    const uint64_t in = by_tokens(run.sites[site.inputs[0]].views.a, run.extent).features;
    const std::optional<Projection> projection = projection_of(run, site);
    const bool fits = projection ? !run.weights.matrices(site.layer, *projection, out, in).empty()
                                 : run.weights.inner_size(site.layer, in) > 0;
    use.usable += fits ? 1 : 0;
  }
  return use;
}

}  // namespace tensordiff
