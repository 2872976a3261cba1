// b is a plus the same vector in every token: a bias that is missing, or there twice.
//
// The best such vector is the mean of b − a over the tokens. With it gone, noise must be left.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "diagnose/hypotheses/diagnosis.h"
#include "diagnose/replay/linear_replay.h"
#include "diagnose/sample/fit.h"

namespace tensordiff {
namespace {

constexpr uint64_t kPointsMin = 3;      // That each mean is taken over.
constexpr double kBiasTolerance = 0.1;  // How near the offset is to the bias, which it averages.

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
Explanation fit(const Case& it, const std::vector<double>& shift, const Slice& slice) {
  Explanation result = explained_by(it, filled(it.a, [&](uint64_t row, uint64_t i) {
                                      return it.a.row(row)[i] + shift[slice(row, i)];
                                    }));
  result.parameters = {{"offset_norm", norm(shift)}};
  if (shift.size() == 1) result.parameters = {{"offset", shift[0]}};
  return result;
}

// Which part of the given bias the offset is: "b lacks the bias".
void name_bias(const Case& it, const std::vector<double>& shift, Explanation& result) {
  const std::optional<Projection> projection = projection_of(it.run, it.site);
  if (!projection) return;
  const std::vector<double> bias = it.run.weights.bias(it.site.layer, *projection, it.a.features);
  const double times = bias.empty() ? 0 : std::round(factor_between(bias, shift));
  if (times == 0) return;
  std::vector<double> rest = shift;
  for (std::size_t i = 0; i < rest.size(); ++i) rest[i] -= times * bias[i];
  if (norm(rest) > kBiasTolerance * norm(shift)) return;
  result.text = times == -1
                    ? "B omits the bias of this projection"
                    : fmt::format("B adds the bias of this projection {:.0f} times", times + 1);
  result.parameters.push_back({"bias_times", times + 1});
}

// One factor is simpler than a vector, and explains as much where all tokens are alike.
bool is_factor(const Case& it) {
  const double along = std::abs(factor_between(it.a.values, it.b.values)) * it.norm_a;
  const double size = norm(it.b.values);
  Explanation factor;
  factor.after = std::sqrt(std::max(0.0, (size - along) * (size + along))) / it.norm_a;
  return it.norm_a > 0 && accepted(it, factor);
}

// The bias of a convolution is one number for each channel, which stands behind the batch.
std::optional<Explanation> of_channels(const Case& it) {
  const Shape& shape = it.site.views.a.shape;
  const TokenView source = by_tokens(it.site.views.a, it.run.extent);
  if (!it.run.activations || shape.size() < 3 || shape[1] == it.run.extent.tokens ||
      !std::ranges::is_sorted(source.order))
    return std::nullopt;
  uint64_t size = 1;  // Of a channel.
  for (std::size_t axis = 2; axis < shape.size(); ++axis) size *= shape[axis];
  const auto by_channel = [&](uint64_t row, uint64_t i) {
    const uint64_t token = it.a.first_token + row % it.a.tokens;
    const uint64_t at = row / it.a.tokens * source.tokens + token;
    return (at * it.a.features + i) / size % shape[1];
  };
  if (it.a.rows() == 0 || it.a.values.size() < kPointsMin * shape[1]) return std::nullopt;
  Explanation bias = fit(it, mean_gap(it, shape[1], by_channel), by_channel);
  bias.text = "one number for each channel is added: a bias that is missing, doubled or another";
  return accepted(it, bias) ? std::optional(std::move(bias)) : std::nullopt;
}

std::optional<Explanation> examine(const Case& it) {
  if (it.a.values.size() < kPointsMin) return std::nullopt;
  const auto all = [](uint64_t, uint64_t) { return uint64_t{0}; };
  Explanation one = fit(it, mean_gap(it, 1, all), all);
  one.text = fmt::format("B = A + {}", human_number(std::get<double>(one.parameters[0].value)));
  if (accepted(it, one)) return one;
  if (std::optional<Explanation> channels = of_channels(it)) return channels;
  if (it.a.rows() < kPointsMin) return one;
  if (is_factor(it)) return std::nullopt;
  const auto by_feature = [](uint64_t, uint64_t i) { return i; };
  const std::vector<double> vector = mean_gap(it, it.a.features, by_feature);
  Explanation bias = fit(it, vector, by_feature);
  bias.text = fmt::format(
      "the same vector is added to every {}: a bias that is missing, doubled or another",
      it.run.activations ? "token" : "row");
  name_bias(it, vector, bias);
  if (accepted(it, bias) || it.a.features < kPointsMin) return bias;
  const auto by_row = [](uint64_t row, uint64_t) { return row; };
  Explanation shift = fit(it, mean_gap(it, it.a.rows(), by_row), by_row);
  shift.text = it.run.activations ? "one number for each token is added to all its features"
                                  : "one number for each row is added to all of the row";
  return accepted(it, shift) ? shift : bias;
}

}  // namespace

constinit const Diagnosis diagnoses::offset = {
    .code = "offset",
    .question = "Is B = A plus a constant along an axis?",
    .explains = "a bias missing, doubled, or added once for each rank",
    .examine = examine,
};

}  // namespace tensordiff
