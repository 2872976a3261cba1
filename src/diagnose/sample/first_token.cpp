#include "diagnose/sample/first_token.h"

#include <cmath>
#include <limits>

#include "tensor/reader.h"

namespace tensordiff {

double first_token_error(const Site& site) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  constexpr uint64_t kFeaturesMax = 1 << 20;
  const View& a = site.views.a;
  const View& b = site.views.b;
  if (a.shape.size() < 2 || a.shape != b.shape || a.shape.back() > kFeaturesMax) return kUnknown;
  const uint64_t features = a.shape.back();
  // A row of as many elements as the tensor has is no token among others.
  if (features == 0 || features == a.elements() || is_complex(a.dtype)) return kUnknown;
  const Result<Reader> of_a = Reader::open(a), of_b = Reader::open(b);
  if (!of_a.ok() || !of_b.ok()) return kUnknown;
  std::vector<double> x(features), y(features);
  of_a.value().values(0, features, x.data());
  of_b.value().values(0, features, y.data());
  double apart = 0, size = 0;
  for (uint64_t i = 0; i < features; ++i) {
    apart += (y[i] - x[i]) * (y[i] - x[i]);
    size += x[i] * x[i];
  }
  return size > 0 && std::isfinite(apart) ? std::sqrt(apart / size) : kUnknown;
}

}  // namespace tensordiff
