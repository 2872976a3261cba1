// The signature is the mean over all elements of five functions of x / s, s being the largest
// magnitude: x, |x|, x^2, x^3 and sqrt|x|. Sums do not depend on the order of the elements.
//
// The mean of n values of deviation d is known to d / sqrt(n). Two tensors drawn from one
// distribution differ by about that much, so their distance, counted in such errors, is about 1;
// of other distributions it grows with sqrt(n). The same elements rounded with relative error e
// differ by e d / sqrt(n) as long as the rounding is not biased: a distance of e, 0.004 for bf16.

#include "match/signature.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr std::size_t kPiece = 1 << 14;

std::array<double, 5> features(double x) {
  const double size = std::abs(x);
  return {x, size, x * x, x * x * x, std::sqrt(size)};
}

// Calls see(value) for each finite element; false where it cannot be read.
template <class See>
bool for_each_value(const View& view, See see) {
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok()) return false;
  std::vector<double> values(2 * kPiece);
  const std::size_t parts = is_complex(view.dtype) ? 2 : 1;
  const uint64_t count = view.elements();
  for (uint64_t first = 0; first < count; first += kPiece) {
    const std::size_t piece = std::min<uint64_t>(kPiece, count - first);
    reader.value().values(first, piece, values.data());
    for (std::size_t i = 0; i < piece * parts; ++i)
      if (std::isfinite(values[i])) see(values[i]);
  }
  return reader.value().intact();
}

}  // namespace

Signature signature_of(const Tensor& tensor, uint64_t elements_max) {
  const uint64_t count = tensor.elements();
  // What ranks hold together depends on how it is put together.
  if (!tensor.fault.empty() || !tensor.shards.empty() || count == 0 || count > elements_max)
    return {};
  double low = std::numeric_limits<double>::infinity(), high = -low;
  uint64_t finite = 0;
  const bool read = for_each_value(tensor.view, [&](double value) {
    low = std::min(low, value), high = std::max(high, value), ++finite;
  });
  const double scale = std::max(std::abs(low), std::abs(high));
  if (!read || finite == 0 || scale == 0) return {};

  std::array<double, 5> sums{}, squares{};
  for_each_value(tensor.view, [&](double value) {
    const std::array<double, 5> found = features(value / scale);
    for (std::size_t i = 0; i < found.size(); ++i) {
      sums[i] += found[i];
      squares[i] += found[i] * found[i];
    }
  });
  Signature signature{count, {}, {}, low < high};
  const double n = static_cast<double>(finite);
  // Back to the units of the tensor, so that another scale is another signature.
  const std::array<double, 5> units = features(scale);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double mean = sums[i] / n;
    signature.means[i] = mean * units[i];
    signature.deviations[i] = std::sqrt(std::max(0.0, squares[i] / n - mean * mean)) * units[i];
  }
  return signature;
}

double distance(const Signature& a, const Signature& b) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (a.elements == 0 || a.elements != b.elements || !a.varied || !b.varied) return kFar;
  double sum = 0;
  for (std::size_t i = 0; i < a.means.size(); ++i) {
    const double error = (a.deviations[i] + b.deviations[i]) / 2;
    const double apart = a.means[i] - b.means[i];
    if (error > 0) sum += apart * apart / (error * error);
  }
  return std::sqrt(sum / static_cast<double>(a.means.size()) * static_cast<double>(a.elements));
}

}  // namespace tensordiff
