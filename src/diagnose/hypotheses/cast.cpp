// B is A, rounded to a narrower float: bit for bit, or as nearly as the noise of the run allows.
//
// A value of 2^e · 1.f keeps `bits` bits of fraction and no exponent below `exponent_min`; half to
// even, as every processor rounds, or towards zero, as a kernel does that only cuts bits off.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

struct Format {
  std::string_view name;
  int bits;
  int exponent_min;
};

constexpr Format kFormats[] = {{"bf16", 7, -126}, {"f16", 10, -14},   {"tf32", 10, -126},
                               {"f32", 23, -126}, {"f8_e4m3", 3, -6}, {"f8_e5m2", 2, -14}};

double rounded(double value, const Format& format, bool truncate) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.exponent_min);
  const double step = std::ldexp(1.0, exponent - format.bits);
  return (truncate ? std::trunc(value / step) : std::nearbyint(value / step)) * step;
}

// Nearer to the noise than this, a format cannot be told from it.
constexpr double kAboveNoise = 4;

// A few round numbers are on the grid of some format by chance.
constexpr std::size_t kMovedMin = 4;

// One of so many values may be farther off: all are on the grid, which says more.
constexpr std::size_t kFew = 100;

// How B holds to a format: on its grid, and from A no farther than rounding and noise take it.
struct Held {
  bool all = true;
  bool exact = true;      // Bit for bit.
  std::size_t moved = 0;  // Values of A that are not on the grid themselves.
  // Squared distances from A, and what of them is beyond the rounding of one value. Noise takes a
  // value across the middle of two steps, so the distance from the rounded A would not tell.
  double before = 0, after = 0;
  std::vector<std::size_t> far = {};  // Values that rounding and noise do not explain.
};

Held held(const Case& it, const Format& format, bool truncate) {
  const double noise = std::max(it.site.error_in, it.site.roundoff);
  const bool above = std::ldexp(1.0, -format.bits - 1) >= kAboveNoise * noise;
  const double typical = it.norm_a / std::sqrt(static_cast<double>(it.a.values.size()));
  Held result;
  const std::size_t few = it.a.values.size() / kFew;
  for (std::size_t i = 0; i < it.a.values.size() && result.all; ++i) {
    const double x = it.a.values[i], y = it.b.values[i], gap = std::abs(y - x);
    result.moved += rounded(x, format, truncate) != x && !std::isnan(x);
    if (std::isfinite(gap)) result.before += gap * gap;
    if (rounded(x, format, truncate) == y || (std::isnan(x) && std::isnan(y))) continue;
    result.exact = false;
    if (!std::isfinite(x) || !std::isfinite(y)) result.all = false;
    if (!result.all) break;
    const double step = std::ldexp(1.0, std::ilogb(std::max(std::abs(x), 1e-300)) - format.bits);
    const double most = std::max(step, std::ldexp(1.0, format.exponent_min - format.bits));
    const double beyond = std::max(0.0, gap - (truncate ? 1 : 0.5) * most);
    if (beyond > 8 * noise * std::max(std::abs(x), typical)) {
      result.far.push_back(i);
      result.before -= gap * gap;
    } else {
      result.after += beyond * beyond;
    }
    result.all = above && rounded(y, format, false) == y && result.far.size() <= few;
  }
  return result;
}

// What a cast leaves of the difference, of the values that it speaks of.
Explanation explained_by_cast(const Case& it, const Format& format, bool truncate, const Held& as) {
  Explanation result;
  Matrix model = filled(it.a, [&](uint64_t row, uint64_t column) {
    return rounded(it.a.row(row)[column], format, truncate);
  });
  for (const std::size_t i : as.far) model.values[i] = NAN;
  result.model = std::move(model);
  result.before = it.norm_a > 0 ? std::sqrt(std::max(0.0, as.before)) / it.norm_a : 1;
  result.after = it.norm_a > 0 ? std::sqrt(as.after) / it.norm_a : 1;
  result.text = fmt::format("B is A {} to {}{}", truncate ? "truncated" : "rounded", format.name,
                            as.exact ? ", bit for bit" : "");
  result.parameters = {{"dtype", std::string(format.name)},
                       {"rounding", std::string(truncate ? "truncate" : "nearest")}};
  result.settled = true;
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  if (it.before == 0) return std::nullopt;
  // What was computed again in float64 is rounded at least to the type that b has anyway.
  const int finest = it.own ? info(it.site.views.b.dtype).mantissa_bits : 64;
  for (const bool truncate : {false, true}) {
    for (const Format& format : kFormats) {
      if (format.bits >= finest) continue;
      const Held as = held(it, format, truncate);
      const bool stored_so = name_of(it.site.views.b.dtype) == format.name;
      if (!as.all || (as.moved < kMovedMin && !stored_so)) continue;
      Explanation result = explained_by_cast(it, format, truncate, as);
      if (falls(it, result)) return result;
    }
  }
  return std::nullopt;
}

}  // namespace

constinit const Diagnosis diagnoses::cast = {
    .code = "cast",
    .question = "Is B just A in a narrower type?",
    .explains = "a conversion to bf16, f16 or an 8-bit float, and nothing else",
    .examine = examine,
};

}  // namespace tensordiff
