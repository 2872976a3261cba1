#include "analyze/study.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "analyze/attention_heads.h"
#include "analyze/layer_map.h"
#include "analyze/low_rank.h"
#include "analyze/profile.h"
#include "analyze/quantization.h"
#include "base/text.h"

namespace tensordiff {
namespace {

bool contains_any(std::string_view name, std::span<const std::string_view> words) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return name.find(word) != std::string_view::npos; });
}

constexpr std::array<std::string_view, 10> kOptimizerWords = {
    "optimizer",  "optim.",  "exp_avg",    "momentum_buffer", "moment1",
    "square_avg", "exp_inf", "opt_state.", "lr_scheduler",    "rng_state"};
constexpr std::array<std::string_view, 4> kGradientWords = {".grad", "grad.", "gradient", "grads."};

}  // namespace

Purpose purpose_of(std::string_view name, const Shape& shape) {
  const std::string low = lower(name);
  if (contains_any(low, kOptimizerWords))
    return shape.empty() ? Purpose::scalar : Purpose::optimizer;
  if (contains_any(low, kGradientWords)) return Purpose::gradient;
  return shape.empty() ? Purpose::scalar : Purpose::weight;
}

std::string pattern_of(std::string_view name, const Place& place) {
  if (place.layer < 0 || place.layer_at.size == 0) return std::string(name);
  return std::string(name).replace(place.layer_at.first, place.layer_at.size, "*");
}

double rms_of(const Stats& stats) {
  return stats.norm && stats.finite ? *stats.norm / std::sqrt(static_cast<double>(stats.finite))
                                    : 0;
}

std::map<int64_t, std::vector<const Row*>> by_depth(std::span<const Row* const> pairs) {
  std::map<int64_t, std::vector<const Row*>> layers;
  for (const Row* pair : pairs)
    if (pair->depth()) layers[*pair->depth()].push_back(pair);
  return layers;
}

double squares_of(const Stats& stats) { return stats.norm ? *stats.norm * *stats.norm : 0; }

double squares_of_change(const Comparison& comparison) {
  return comparison.diff.mse.value_or(0) * static_cast<double>(comparison.diff.compared);
}

std::optional<double> relative_change(std::span<const Row* const> pairs) {
  double before = 0, change = 0;
  for (const Row* pair : pairs) {
    before += squares_of(pair->comparison.a);
    change += squares_of_change(pair->comparison);
  }
  if (before <= 0) return std::nullopt;
  return std::sqrt(change / before);
}

Study::Study(const Catalog& a, const Catalog& b, const AnalyzeOptions& options)
    : a_(a), b_(b), options_(options), facts_a_(Facts::of(a)), facts_b_(Facts::of(b)) {}

Study::~Study() = default;

void Study::add_pair(const Row& row) {
  pairs_.push_back(&row);
  if (is_weight(row) && row.compared() && !row.views.a.parts.empty()) weights_.push_back(&row);
}

void Study::add_unpaired(char side, const Tensor& tensor) {
  (side == 'a' ? only_a_ : only_b_).push_back(&tensor);
}

const std::vector<Profile>& Study::profiles() const {
  if (!profiles_) profiles_ = std::make_unique<std::vector<Profile>>(profile_weights(*this));
  return *profiles_;
}

const Attention& Study::attention() const {
  if (!attention_) attention_ = std::make_unique<Attention>(attention_of(*this));
  return *attention_;
}

const Quantization& Study::quantization() const {
  if (!quantization_) quantization_ = std::make_unique<Quantization>(find_quantized(*this));
  return *quantization_;
}

const LayerMap& Study::layer_map() const {
  if (!layer_map_) layer_map_ = std::make_unique<LayerMap>(map_layers(*this));
  return *layer_map_;
}

HigherRanks& Study::higher_ranks() const {
  if (!higher_ranks_) higher_ranks_ = std::make_unique<HigherRanks>();
  return *higher_ranks_;
}

}  // namespace tensordiff
