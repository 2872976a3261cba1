#include "match/fingerprint.h"

#include <algorithm>
#include <cmath>

#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 256;
constexpr uint64_t kWholeMax = 1 << 14;  // Elements that are read for the quantiles.

std::vector<double> quantiles_of(const Reader& reader, uint64_t count) {
  std::vector<double> values = values_at(reader, sample_positions(count, count));
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(values);
  std::vector<double> quantiles;
  for (std::size_t i = 0; i < kSample && !values.empty(); ++i)
    quantiles.push_back(values[i * (values.size() - 1) / (kSample - 1)]);
  return quantiles;
}

}  // namespace

Fingerprint fingerprint_of(const Tensor& tensor) {
  const uint64_t count = tensor.elements();
  if (!tensor.fault.empty() || count == 0) return {};
  const Result<Reader> reader = Reader::open(tensor.view);
  if (!reader.ok()) return {};
  return {
      .shape = tensor.view.shape,
      .elements = count,
      .in_order = values_at(reader.value(), sample_positions(count, kSample)),
      .quantiles = count <= kWholeMax ? quantiles_of(reader.value(), count) : std::vector<double>{},
  };
}

double disagreement(const Fingerprint& a, const Fingerprint& b) {
  if (a.elements == 0 || a.elements != b.elements) return 1;
  if (a.shape == b.shape || a.quantiles.empty()) return unexplained(a.in_order, b.in_order);
  return unexplained(a.quantiles, b.quantiles);
}

}  // namespace tensordiff
