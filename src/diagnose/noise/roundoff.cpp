#include "diagnose/noise/roundoff.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "diagnose/limits.h"
#include "diagnose/verdict/judge.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

// Roundings that one step adds up, in unit roundoffs. float32 sums are made in float32, where a sum
// of K products is off by up to sqrt(K / 2), so 64 is K = 8192. Narrower types are summed in
// float32 and rounded once for each operation; a step is a handful of operations.
constexpr double kStepsWide = 64;
constexpr double kStepsNarrow = 16;
constexpr double kStepsTiny = 4;        // 8-bit floats: one rounding is already 3 to 6 %.
constexpr std::size_t kSample = 96;     // Scattered: each is a page to fetch.
constexpr int kFormatBits[] = {7, 10};  // Of the fraction: bf16, f16 (and TF32).

// How many bits of fraction a value needs.
int fraction_bits(double value) {
  int exponent = 0;
  double fraction = std::abs(std::frexp(value, &exponent)) * 2 - 1;
  int bits = 0;
  for (; fraction > 0 && bits < 53; ++bits) {
    fraction *= 2;
    if (fraction >= 1) fraction -= 1;
  }
  return bits;
}

}  // namespace

int bits_needed(const View& view) {
  const int of_dtype = info(view.dtype).mantissa_bits;
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok() || of_dtype < kFormatBits[0]) return of_dtype;
  std::vector<double> values =
      values_at(reader.value(), sample_positions(view.elements(), kSample));
  std::erase_if(values, [](double value) { return value == 0 || !std::isfinite(value); });
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  int bits = 0;
  for (const double value : values) bits = std::max(bits, fraction_bits(value));
  const bool telling = values.size() >= 32 && std::ranges::any_of(values, [](double value) {
                         return value != std::floor(value);
                       });
  return telling ? std::min(bits, of_dtype) : of_dtype;
}

double roundoff_of(DType dtype, int bits) {
  int needed = info(dtype).mantissa_bits;
  for (const int format : kFormatBits)
    if (bits <= format) needed = std::min(needed, format);
  return std::ldexp(1.0, -needed - 1);
}

double roundoff_of(const View& view) {
  return is_float(view.dtype) ? roundoff_of(view.dtype, bits_needed(view)) : 0;
}

double steps_of(double roundoff) {
  if (roundoff < limits::kNarrow) return kStepsWide;
  return roundoff < 1e-2 ? kStepsNarrow : kStepsTiny;
}

}  // namespace tensordiff
