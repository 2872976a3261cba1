// RoPE at other positions: the frequencies agree, and all tokens of b are turned as tokens k places
// on are in a.
//
// With frequencies f_i the angles differ by k · f_i in every pair; the k that fits all pairs best
// is the offset.

#include <fmt/format.h>

#include <cmath>
#include <complex>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/limits.h"
#include "diagnose/replay/rotation.h"

namespace tensordiff {
namespace {

constexpr int kOffsetMax = 4096;
// A larger offset must be so much better: with few pairs some large one fits by chance.
constexpr double kClearlyBetter = 0.25;

// How far b is ahead of a in each pair, over all tokens, and how fast the pair turns.
struct Lead {
  std::complex<double> turn;
  double frequency = 0;
};

std::vector<Lead> leads_of(const RotaryStep& step) {
  std::vector<Lead> leads(step.a.form.pairs());
  for (uint64_t pair = 0; pair < leads.size(); ++pair) {
    for (uint64_t token = 0; token < step.a.tokens; ++token)
      leads[pair].turn +=
          std::polar(std::sqrt(step.a.strength_of(token, pair) * step.b.strength_of(token, pair)),
                     step.b.angle(token, pair) - step.a.angle(token, pair));
    leads[pair].frequency = step.a.frequency(pair);
  }
  return leads;
}

// How badly an offset explains the leads: 0 is exactly.
double misfit(const std::vector<Lead>& leads, int offset) {
  double sum = 0, all = 0;
  for (const Lead& lead : leads) {
    const double size = std::abs(lead.turn);
    sum += size * (1 - std::cos(std::arg(lead.turn) - offset * lead.frequency));
    all += size;
  }
  return all > 0 ? sum / all : 0;
}

std::optional<Explanation> examine(const Case& it) {
  if (!it.rotary || !it.rotary->same_pairing() || !it.rotary->same_size() ||
      !it.rotary->same_norm())
    return std::nullopt;
  const std::vector<Lead> leads = leads_of(*it.rotary);
  int best = 0;
  double least = misfit(leads, 0);
  const double noise = std::max(limits::kTurn, limits::kTurnRoundoffs * it.site.roundoff);
  if (least < noise * noise / 2) return std::nullopt;
  for (int size = 1; size <= kOffsetMax; ++size) {
    for (const int offset : {size, -size}) {
      const double here = misfit(leads, offset);
      if (here < kClearlyBetter * least) least = here, best = offset;
    }
  }
  if (best == 0) return std::nullopt;
  Explanation result = explain_rotation(
      it, fmt::format("B's RoPE is {} position{} {} A's", std::abs(best),
                      std::abs(best) == 1 ? "" : "s", best > 0 ? "ahead of" : "behind"));
  result.parameters = {{"offset", static_cast<double>(best)}};
  return result;
}

}  // namespace

constinit const Diagnosis diagnoses::rope_position = {
    .code = "rope_position",
    .question = "Does RoPE count positions from elsewhere?",
    .explains = "positions that start at 1, a cache length not added, padding counted in",
    .replays = true,
    .examine = examine,
};

}  // namespace tensordiff
