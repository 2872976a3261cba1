// b is a plus the same vector in every token: a bias that is missing, or there twice.
//
// The best such vector is the mean of b − a over the tokens. With it gone, noise must be left.

#include <fmt/format.h>

#include <cmath>

#include "base/text.h"
#include "diagnose/diagnosis.h"
#include "diagnose/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kPointsMin = 3;  // That each mean is taken over.

// The mean of b − a over all values that `slice` puts together.
template <class Slice>
std::vector<double> mean_gap(const Case& it, uint64_t slices, const Slice& slice) {
  std::vector<double> sum(slices), count(slices);
  for (uint64_t row = 0; row < it.a.rows(); ++row) {
    for (uint64_t i = 0; i < it.a.features; ++i) {
      const double gap = it.b.row(row)[i] - it.a.row(row)[i];
      if (!std::isfinite(gap)) continue;
      sum[slice(row, i)] += gap;
      count[slice(row, i)] += 1;
    }
  }
  for (uint64_t s = 0; s < slices; ++s) sum[s] /= std::max(count[s], 1.0);
  return sum;
}

template <class Slice>
Explanation fit(const Case& it, uint64_t slices, const Slice& slice) {
  const std::vector<double> shift = mean_gap(it, slices, slice);
  Explanation result = explained_by(it, filled(it.a, [&](uint64_t row, uint64_t i) {
                                      return it.a.row(row)[i] + shift[slice(row, i)];
                                    }));
  result.parameters = {{"offset_norm", norm(shift)}};
  if (slices == 1) result.parameters = {{"offset", shift[0]}};
  return result;
}

std::optional<Explanation> examine(const Case& it) {
  if (it.a.values.size() < kPointsMin) return std::nullopt;
  Explanation one = fit(it, 1, [](uint64_t, uint64_t) { return uint64_t{0}; });
  one.text = fmt::format("b = a + {}", human_number(std::get<double>(one.parameters[0].value)));
  if (accepted(it, one) || it.a.rows() < kPointsMin) return one;
  Explanation bias = fit(it, it.a.features, [](uint64_t, uint64_t i) { return i; });
  bias.text = fmt::format(
      "the same vector is added to every {}: a bias that is missing, doubled or another",
      it.run.activations ? "token" : "row");
  if (accepted(it, bias) || it.a.features < kPointsMin) return bias;
  Explanation shift = fit(it, it.a.rows(), [](uint64_t row, uint64_t) { return row; });
  shift.text = "one number for each token is added to all its features";
  return accepted(it, shift) ? shift : bias;
}

}  // namespace

constinit const Diagnosis diagnoses::offset = {
    .code = "offset",
    .question = "Is b a plus something constant along an axis?",
    .explains = "a bias missing, doubled, or added once for each rank",
    .examine = examine,
};

}  // namespace tensordiff
