#include "diagnose/exactness.h"

#include <fmt/format.h>

#include "base/text.h"

namespace tensordiff {
namespace {

constexpr double kNarrow = 1e-6;  // Unit roundoffs above it are those of narrow types.
constexpr double kTiny = 1e-2;    // And above this of 8-bit floats.

// Runs that agree to the last bits so far round alike: in a narrow type, where a step is rounded a
// few times at most, an error of more roundoffs than that was made. In unit roundoffs.
constexpr double kExact = 0.25;
constexpr double kInexact = 3;
constexpr double kInexactTwin = 1;      // Where another step that reads the same agrees, too.
constexpr std::size_t kExactSteps = 4;  // It takes so many to show, without such a step.

// Projections of one input, of which another one agrees.
bool has_exact_twin(const Run& run, const Site& site) {
  return std::ranges::any_of(run.sites, [&](const Site& other) {
    const bool projects = other.role == Role::query || other.role == Role::key ||
                          other.role == Role::value || other.role == Role::gate ||
                          other.role == Role::up;
    return &other != &site && projects && other.compared() && other.layer == site.layer &&
           other.inputs == site.inputs && other.error <= kExact * other.roundoff;
  });
}

}  // namespace

std::string inexact_reason(const Run& run, const Site& site, const Exactness& before) {
  if (site.roundoff < kNarrow || site.roundoff > kTiny) return "";
  const double roundoffs = site.error / site.roundoff;
  if (roundoffs <= kInexactTwin || before.roundoffs > kExact) return "";
  const bool stands_out = roundoffs > kInexact && before.steps >= kExactSteps;
  if (!stands_out && !has_exact_twin(run, site)) return "";
  return fmt::format("it is off by {} roundings where all before it agrees to the last bit",
                     human_number(roundoffs));
}

}  // namespace tensordiff
