#include "convert/misfit.h"

#include <cmath>
#include <limits>

#include "align/evidence.h"
#include "tensor/sample.h"

namespace tensordiff {
namespace {

// As many as alignment looks at, so that its bound on chance holds here as well.
constexpr std::size_t kSample = 256;

}  // namespace

double misfit(const AlignedPair& pair) {
  const Result<Reader> a = Reader::open(pair.a);
  const Result<Reader> b = Reader::open(pair.b);
  if (!a.ok() || !b.ok()) return std::numeric_limits<double>::infinity();
  const std::vector<uint64_t> positions = misfit_positions(pair.a.elements());
  return misfit(values_at(a.value(), positions), values_at(b.value(), positions));
}

std::vector<uint64_t> misfit_positions(uint64_t elements) {
  return sample_positions(elements, kSample);
}

double misfit(std::span<const double> x, std::span<const double> y) {
  double sum = 0, count = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    sum += y[i];
    count += 1;
  }
  const double mean = count > 0 ? sum / count : 0;
  double apart = 0, spread = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    apart += (y[i] - x[i]) * (y[i] - x[i]);
    spread += (y[i] - mean) * (y[i] - mean);
  }
  if (spread == 0) return std::numeric_limits<double>::quiet_NaN();
  return apart / spread;
}

double misfit_max(uint64_t elements, std::size_t candidates) {
  return disagreement_max(elements, candidates);
}

}  // namespace tensordiff
