// The signature is the mean over all elements of five functions of x: x, |x|, x^2, x^3 and sqrt|x|.
// Sums do not depend on the order of the elements. The sixth power of any float32 is a double; a
// larger one makes a distance that is not a number, which is never near.
//
// The mean of n values of deviation d is known to d / sqrt(n). Two tensors drawn from one
// distribution differ by about that much, so their distance, counted in such errors, is about 1;
// of other distributions it grows with sqrt(n). The same elements rounded with relative error e
// differ by e d / sqrt(n) as long as the rounding is not biased: a distance of e, 0.004 for bf16.
//
// The five say much the same of a bell curve. The second look takes the means of cos(k z) and
// sin(k z) for some k, z = (x - mean) / deviation of the first tensor, which say little of each
// other.

#include "match/signature.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>

#include "tensor/reader.h"
#include "tensor/shards.h"

namespace tensordiff {
namespace {

constexpr std::size_t kPiece = 1 << 14;
constexpr std::size_t kWaves = 6;

// Calls see(value, position) for each element; false where it cannot be read.
template <class See>
bool for_each_value(const View& view, See see) {
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok()) return false;
  std::vector<double> values(2 * kPiece);
  const std::size_t parts = is_complex(view.dtype) ? 2 : 1;
  const uint64_t count = view.elements();
  for (uint64_t first = 0; first < count; first += kPiece) {
    const std::size_t piece = std::min<uint64_t>(kPiece, count - first);
    reader.value().components(first, piece, values.data());
    for (std::size_t i = 0; i < piece * parts; ++i) see(values[i], first + i / parts);
  }
  return reader.value().intact();
}

// Cosines and sines, as the parts of complex numbers.
struct Waves {
  std::array<std::complex<double>, kWaves> sums{};
  double count = 0;
};

std::optional<Waves> waves_of(const Tensor& tensor, double center, double scale) {
  Waves waves;
  const auto see = [&](double value, uint64_t) {
    if (!std::isfinite(value)) return;
    const std::complex<double> first = std::polar(1.0, (value - center) / scale);
    std::complex<double> wave = first;
    for (std::complex<double>& sum : waves.sums) {
      sum += wave;
      wave *= first;
    }
    ++waves.count;
  };
  for (const View& view : distinct_shards(tensor))
    if (!for_each_value(view, see)) return std::nullopt;
  return waves;
}

}  // namespace

void ValueMoments::add(double value) {
  if (!std::isfinite(value)) return;
  const double size = std::abs(value);
  const std::array<double, 5> found = {value, size, value * value, value * value * value,
                                       std::sqrt(size)};
  for (std::size_t i = 0; i < found.size(); ++i) {
    sums[i] += found[i];
    squares[i] += found[i] * found[i];
  }
  ++finite;
  low = std::min(low, value);
  high = std::max(high, value);
}

void ValueMoments::add(const ValueMoments& other) {
  elements += other.elements;
  finite += other.finite;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    sums[i] += other.sums[i];
    squares[i] += other.squares[i];
  }
  low = std::min(low, other.low);
  high = std::max(high, other.high);
}

Signature signature_of(const ValueMoments& moments) {
  if (moments.finite == 0) return {};
  Signature signature{moments.elements, {}, {}, moments.low < moments.high};
  const double n = static_cast<double>(moments.finite);
  for (std::size_t i = 0; i < moments.sums.size(); ++i) {
    const double mean = moments.sums[i] / n;
    signature.means[i] = mean;
    signature.deviations[i] = std::sqrt(std::max(0.0, moments.squares[i] / n - mean * mean));
  }
  return signature;
}

Signature signature_of(const Tensor& tensor, uint64_t elements_max) {
  if (!tensor.fault.empty()) return {};
  ValueMoments moments;
  for (const View& view : distinct_shards(tensor)) {
    moments.elements += view.elements();
    if (moments.elements > elements_max) return {};
    if (!for_each_value(view, [&](double value, uint64_t) { moments.add(value); })) return {};
  }
  return signature_of(moments);
}

std::vector<ValueMoments> moments_along(const View& view, std::size_t axis) {
  const uint64_t size = view.shape[axis];
  uint64_t inner = 1;
  for (std::size_t i = axis + 1; i < view.shape.size(); ++i) inner *= view.shape[i];
  std::vector<ValueMoments> result(size);
  for (ValueMoments& moments : result) moments.elements = view.elements() / size;
  const bool read = for_each_value(
      view, [&](double value, uint64_t position) { result[position / inner % size].add(value); });
  return read ? result : std::vector<ValueMoments>{};
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

double distance_in_detail(const Tensor& a, const Tensor& b, const Signature& of_a) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  const double scale = of_a.deviations[0];
  if (!(scale > 0)) return kFar;
  const std::optional<Waves> waves_a = waves_of(a, of_a.means[0], scale);
  const std::optional<Waves> waves_b = waves_of(b, of_a.means[0], scale);
  if (!waves_a || !waves_b || waves_a->count == 0 || waves_b->count == 0) return kFar;
  double sum = 0;
  for (std::size_t k = 0; k < kWaves; ++k) {
    const std::complex<double> mean = waves_a->sums[k] / waves_a->count;
    // The real and imaginary parts of a number of size 1 vary by 1 - |mean|^2 together.
    const double variance = std::max(1 - std::norm(mean), 1e-6);
    sum += std::norm(mean - waves_b->sums[k] / waves_b->count) / variance;
  }
  return std::sqrt(sum / kWaves * waves_a->count);
}

}  // namespace tensordiff
