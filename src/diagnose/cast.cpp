// b is a, rounded to a narrower float, bit for bit.
//
// A value of 2^e · 1.f keeps `bits` bits of fraction and no exponent below `exponent_min`; half to
// even, as every processor rounds, or towards zero, as a kernel does that only cuts bits off.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"

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

std::optional<Explanation> examine(const Case& it) {
  if (it.before == 0) return std::nullopt;
  for (const bool truncate : {false, true}) {
    for (const Format& format : kFormats) {
      std::size_t i = 0;
      const auto same = [&] {
        const double x = it.a.values[i], y = it.b.values[i];
        return rounded(x, format, truncate) == y || (std::isnan(x) && std::isnan(y));
      };
      while (i < it.a.values.size() && same()) ++i;
      if (i < it.a.values.size()) continue;
      Explanation result = explained_by(it, filled(it.a, [&](uint64_t row, uint64_t column) {
                                          return rounded(it.a.row(row)[column], format, truncate);
                                        }));
      result.text = fmt::format("b is a {} to {}, bit for bit",
                                truncate ? "cut off (not rounded)" : "rounded", format.name);
      result.parameters = {{"dtype", std::string(format.name)},
                           {"rounding", std::string(truncate ? "truncate" : "nearest")}};
      result.settled = true;
      result.confidence = 1;
      return result;
    }
  }
  return std::nullopt;
}

}  // namespace

constinit const Diagnosis diagnoses::cast = {
    .code = "cast",
    .question = "Is b just a in a narrower type?",
    .explains = "a conversion to bf16, f16 or an 8-bit float, and nothing else",
    .examine = examine,
};

}  // namespace tensordiff
