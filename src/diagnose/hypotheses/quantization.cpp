// B is A, rounded to a few evenly spaced levels in each block.
//
// In a block of an 8-bit or 4-bit scheme all values are whole multiples of one step (an offset
// moves the whole numbers, not the step), at most 2^bits apart, and no value is farther from a than
// half a step.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/limits.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

// The largest first, as a part of a block is on its grid, too. 0: a whole row.
constexpr uint64_t kBlocks[] = {0, 256, 128, 64, 32, 16};
constexpr double kBlurred = 0.2;  // From here on a grid cannot be seen.
constexpr double kHalfStep = 0.52;
constexpr double kNoiseMost = 8;  // Growth of noise in one step, of the largest value.
constexpr double kBlocksHolding = 0.98;
constexpr std::size_t kValuesMaxHere = 1 << 18;

// What keeps values from being where a grid would put those of a.
struct Blur {
  double roundoff = 0;
  double noise = 0;  // Of what was put on the grid, against a.
};

// Whether a block is on a grid of this step, and no farther from a than half of it and noise.
bool on_grid(std::span<const double> a, std::span<const double> b, double step, const Blur& blur) {
  const auto [first, last] = std::ranges::minmax(b);
  // A value many steps from zero is rounded by a share of a step.
  const double most = std::max(std::abs(first), std::abs(last));
  const double tolerance = std::max(limits::kWhole, 2 * blur.roundoff * most / step);
  if (tolerance > kBlurred) return false;
  for (std::size_t i = 0; i < b.size(); ++i) {
    const double level = (b[i] - first) / step;
    if (std::abs(level - std::round(level)) > tolerance) return false;
    if (std::abs(b[i] - a[i]) > kHalfStep * step + kNoiseMost * blur.noise * most) return false;
  }
  return true;
}

// The levels of a block.
struct Grid {
  double first = 0, step = 0;
  double levels = 0;  // How many the ends of the block are apart; 0: its values are on no grid.

  double nearest(double value) const {
    const double level = std::clamp(std::round((value - first) / step), 0.0, levels);
    return first + level * step;
  }
};

Grid grid_of(std::span<const double> a, std::span<const double> b, const Blur& blur) {
  std::vector<double> values(b.begin(), b.end());
  std::ranges::sort(values);
  const double span = values.back() - values.front();
  if (span == 0) return {};
  double gap = span;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double here = values[i] - values[i - 1];
    if (here > 1e-4 * span) gap = std::min(gap, here);
  }
  // The smallest gap is known poorly, and may be of a few steps where levels are many; the span in
  // steps makes the step exact. The value next to zero is rounded least, but a grid need not have
  // a zero.
  double least = span;
  for (const double value : values)
    if (value != 0) least = std::min(least, std::abs(value));
  for (const double guess : {gap, least}) {
    for (const double steps : {1.0, 2.0, 3.0}) {
      const double step = span / std::max(1.0, std::round(steps * span / guess));
      if (on_grid(a, b, step, blur)) return {values.front(), step, std::round(span / step)};
    }
  }
  return {};
}

// By the values that the model speaks of.
void measure_model(const Case& it, Matrix model, Explanation& result) {
  double before = 0, after = 0, size = 0;
  for (std::size_t i = 0; i < model.values.size(); ++i) {
    const double x = it.a.values[i], y = it.b.values[i], made = model.values[i];
    if (!std::isfinite(made) || !std::isfinite(y)) continue;
    size += x * x;
    before += (y - x) * (y - x);
    after += (y - made) * (y - made);
  }
  result.before = size > 0 ? std::sqrt(before / size) : 1;
  result.after = size > 0 ? std::sqrt(after / size) : 1;
  result.model = std::move(model);
}

std::optional<Explanation> examine(const Case& it) {
  const std::size_t count = std::min(it.a.values.size(), kValuesMaxHere);
  const Blur blur{it.site.roundoff, it.run.activations ? it.site.error_in : 0};
  for (const uint64_t wanted : kBlocks) {
    const uint64_t block = wanted == 0 ? it.a.features : wanted;
    if (block < 16 || it.a.features % block != 0) continue;
    double holding = 0, blocks = 0, most = 0;
    Matrix model = it.b;  // Where a block is on no grid, or was not looked at, nothing is said.
    std::ranges::fill(model.values, NAN);
    const double spared = (1 - kBlocksHolding) * static_cast<double>(count / block);
    for (std::size_t at = 0; at + block <= count && blocks - holding <= spared; at += block) {
      const Grid grid = grid_of(std::span(it.a.values).subspan(at, block),
                                std::span(it.b.values).subspan(at, block), blur);
      blocks += 1;
      holding += grid.levels > 0 && grid.levels <= 255;
      most = std::max(most, grid.levels);
      for (std::size_t i = at; i < at + block && grid.levels > 0; ++i)
        model.values[i] = grid.nearest(it.a.values[i]);
    }
    if (blocks == 0 || holding < kBlocksHolding * blocks) continue;
    const int bits = most < 16 ? 4 : 8;
    // A grid of 255 levels fits 32 arbitrary values of a narrow float now and then, not all blocks.
    Explanation result;
    result.text = fmt::format("B is A quantized to {} bits in blocks of {}", bits, block);
    result.parameters = {{"bits", static_cast<double>(bits)},
                         {"block", static_cast<double>(block)}};
    measure_model(it, std::move(model), result);
    result.settled = true;
    if (falls(it, result)) return result;
  }
  return std::nullopt;
}

}  // namespace

constinit const Diagnosis diagnoses::quantization = {
    .code = "quantization",
    .question = "Is B a quantized A?",
    .explains = "weights or activations that went through an integer format",
    .examine = examine,
};

}  // namespace tensordiff
