// RoPE at other positions: the frequencies agree, and all tokens of b are turned as tokens k places
// on are in a.
//
// With frequencies f_i the angles differ by k · f_i in every pair; the k that fits all pairs best
// is the offset.

#include <fmt/format.h>

#include <cmath>

#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"
#include "diagnose/rotation.h"

namespace tensordiff {
namespace {

constexpr int kOffsetMax = 4096;

// How badly an offset explains the angles of the first token, in radians per pair.
double misfit(const RotaryStep& step, int offset) {
  double sum = 0;
  for (uint64_t pair = 0; pair < step.a.pairs; ++pair) {
    const double turn = step.b.angle(0, pair) - step.a.angle(0, pair);
    sum += std::abs(wrapped(turn - offset * step.a.frequency(pair)));
  }
  return sum / static_cast<double>(step.a.pairs);
}

std::optional<Explanation> examine(const Case& it) {
  const std::optional<RotaryStep> step = learn_step(it);
  if (!step || !step->same_pairing) return std::nullopt;
  int best = 0;
  double least = misfit(*step, 0);
  for (int size = 1; size <= kOffsetMax; ++size) {
    for (const int offset : {size, -size}) {
      // A larger offset must be clearly better: with few pairs some large one fits by chance.
      const double here = misfit(*step, offset);
      if (here < 0.5 * least) least = here, best = offset;
    }
  }
  if (best == 0) return std::nullopt;
  Explanation result;
  result.after = step->b.left * norm(it.b.values) / it.norm_a;
  result.text = fmt::format("RoPE of b is {} position{} {} a's", std::abs(best),
                            std::abs(best) == 1 ? "" : "s", best > 0 ? "ahead of" : "behind");
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
