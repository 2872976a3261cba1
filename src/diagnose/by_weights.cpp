#include "diagnose/by_weights.h"

#include "base/parallel.h"
#include "diagnose/expected.h"
#include "diagnose/linear_replay.h"

namespace tensordiff {
namespace {

constexpr double kLoud = 16;  // Roundoffs: less is not told by computing again either.

bool multiplies(const Run& run, const Site& site) {
  return projection_of(run, site) || site.role == Role::mlp_output;
}

}  // namespace

std::vector<bool> against_weights(const Run& run) {
  if (run.weights.empty()) return std::vector<bool>(run.sites.size());
  std::vector<char> found(run.sites.size());  // Written to by many threads.
  for_each_index(run.sites.size(), [&](std::size_t i) {
    const Site& site = run.sites[i];
    if (!site.compared() || site.error <= kLoud * site.roundoff || !multiplies(run, site)) return;
    const std::optional<Expected> expected = expected_of(run, site);
    found[i] = expected && !expected->met();
  });
  return {found.begin(), found.end()};
}

}  // namespace tensordiff
