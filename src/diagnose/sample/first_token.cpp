#include "diagnose/sample/first_token.h"

#include <algorithm>
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

double error_of_best_tokens(const Site& site) {
  constexpr double kUnknown = std::numeric_limits<double>::infinity();
  constexpr uint64_t kElementsMax = 1 << 22, kTokensMin = 3, kShare = 8;
  const View& a = site.views.a;
  const View& b = site.views.b;
  if (a.shape.size() < 2 || a.shape != b.shape || a.elements() > kElementsMax) return kUnknown;
  const uint64_t features = a.shape.back();
  if (features == 0 || is_complex(a.dtype) || is_complex(b.dtype)) return kUnknown;
  const Result<Reader> of_a = Reader::open(a), of_b = Reader::open(b);
  if (!of_a.ok() || !of_b.ok()) return kUnknown;
  const uint64_t tokens = a.elements() / features;
  const uint64_t sequences = a.shape.size() > 2 ? std::min(a.shape[0], a.shape[1]) : 1;
  std::vector<double> x(features), y(features), errors;
  for (uint64_t token = 0; token < tokens; ++token) {
    of_a.value().values(token * features, features, x.data());
    of_b.value().values(token * features, features, y.data());
    double apart = 0, size = 0;
    for (uint64_t i = 0; i < features; ++i) {
      apart += (y[i] - x[i]) * (y[i] - x[i]);
      size += x[i] * x[i];
    }
    errors.push_back(size > 0 && std::isfinite(apart) ? std::sqrt(apart / size) : kUnknown);
  }
  const uint64_t wanted = sequences + std::max(kTokensMin, tokens / kShare);
  if (wanted > errors.size()) return kUnknown;
  std::ranges::nth_element(errors, errors.begin() + static_cast<std::ptrdiff_t>(wanted) - 1);
  return errors[wanted - 1];
}

}  // namespace tensordiff
