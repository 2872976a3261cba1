#include "diagnose/replay/norm_gain.h"

#include <algorithm>

namespace tensordiff {
namespace {

constexpr GainWay kWays[] = {
    {"w", [](double w) { return w; }},
    {"1 + w", [](double w) { return 1 + w; }},
    {"no weight", [](double) { return 1.0; }},
    {"w twice", [](double w) { return w * w; }},
};

bool is_plain_norm(Role role) {
  return role == Role::attention_norm || role == Role::mlp_norm || role == Role::final_norm;
}

}  // namespace

std::optional<NormGain> stored_gain(const Run& run, const Site& norm) {
  if (!is_plain_norm(norm.role)) return std::nullopt;
  const uint64_t size = by_tokens(norm.views.a, run.extent).features;
  NormGain gain{run.weights.vector(norm.layer, norm.role, Param::weight, size),
                run.weights.vector(norm.layer, norm.role, Param::bias, size)};
  if (gain.weight.empty()) return std::nullopt;
  gain.bias.resize(size);
  return gain;
}

std::span<const GainWay> ways_of_models() { return std::span(kWays).first(2); }
std::span<const GainWay> ways_of_mistakes() { return kWays; }

NormGain in_way(NormGain stored, const GainWay& way) {
  std::ranges::transform(stored.weight, stored.weight.begin(), way.weight);
  return stored;
}

Matrix without_gain(Matrix out, const NormGain& gain) {
  for (uint64_t row = 0; row < out.rows(); ++row)
    for (uint64_t i = 0; i < out.features; ++i)
      out.row(row)[i] = (out.row(row)[i] - gain.bias[i]) / gain.weight[i];
  return out;
}

Matrix with_gain(Matrix unit, const NormGain& gain) {
  for (uint64_t row = 0; row < unit.rows(); ++row)
    for (uint64_t i = 0; i < unit.features; ++i)
      unit.row(row)[i] = unit.row(row)[i] * gain.weight[i] + gain.bias[i];
  return unit;
}

}  // namespace tensordiff
