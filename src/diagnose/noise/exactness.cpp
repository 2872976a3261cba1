#include "diagnose/noise/exactness.h"

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/limits.h"
#include "diagnose/verdict/judge.h"

namespace tensordiff {
namespace {

constexpr double kTiny = 1e-2;  // Unit roundoffs above it are those of 8-bit floats.

// Runs that agree to the last bits so far round alike: in a narrow type, where a step is rounded a
// few times at most, an error of more roundoffs than that was made. In unit roundoffs.
constexpr double kExact = 0.25;
constexpr double kInexact = 3;
constexpr double kInexactTwin = 1;      // Where another step that reads the same agrees, too.
constexpr std::size_t kExactSteps = 4;  // It takes so many to show, without such a step.

// Noise is alike in projections of one input. A large bias makes one of them seem quieter, so it
// takes two that are.
constexpr std::size_t kTwinsMin = 2;
constexpr double kTwinsApart = 6;

// The largest error of the other projections of the same input, and how many they are.
struct Twins {
  std::size_t count = 0;
  double least = INFINITY, most = 0;  // In roundoffs.
};

bool projects(Role role) {
  return role == Role::query || role == Role::key || role == Role::value || role == Role::gate ||
         role == Role::up;
}

Twins twins_of(const Run& run, const Site& site) {
  Twins twins;
  if (!projects(site.role)) return twins;
  for (const Site& other : run.sites) {
    if (&other == &site || !projects(other.role) || !other.compared() ||
        other.block != site.block || other.inputs != site.inputs || other.roundoff == 0)
      continue;
    ++twins.count;
    twins.least = std::min(twins.least, other.error / other.roundoff);
    twins.most = std::max(twins.most, other.error / other.roundoff);
  }
  return twins;
}

}  // namespace

std::string inexact_reason(const Run& run, const Site& site, const Exactness& before) {
  if (site.roundoff < limits::kNarrow || site.roundoff > kTiny) return "";
  const double roundoffs = site.error / site.roundoff;
  if (roundoffs <= kInexactTwin) return "";
  const Twins twins = twins_of(run, site);
  const bool exact = before.roundoffs <= kExact;
  if (exact && (twins.least <= kExact || (roundoffs > kInexact && before.steps >= kExactSteps)))
    return fmt::format("differs by {} rounding steps although all its inputs agree to the last bit",
                       human_number(roundoffs));
  if (twins.count >= kTwinsMin && roundoffs > kInexact &&
      roundoffs > kTwinsApart * std::max(twins.most, kExact))
    return fmt::format("differs by {} rounding steps; other steps with the same input differ by {}",
                       human_number(roundoffs), human_number(twins.most));
  return "";
}

}  // namespace tensordiff
