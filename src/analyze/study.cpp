#include "analyze/study.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "analyze/attention_heads.h"
#include "analyze/profile.h"
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

std::optional<int64_t> number_of(std::string_view word) {
  int64_t value = 0;
  if (!all_digits(word)) return std::nullopt;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

// The first part of a dotted name that is a number: where it starts and ends.
std::optional<std::pair<std::size_t, std::size_t>> number_place(std::string_view name) {
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    if (number_of(name.substr(begin, end - begin))) return std::pair(begin, end);
    begin = end + 1;
  }
  return std::nullopt;
}

}  // namespace

Purpose purpose_of(std::string_view name, const Shape& shape) {
  const std::string low = lower(name);
  if (contains_any(low, kOptimizerWords))
    return shape.empty() ? Purpose::scalar : Purpose::optimizer;
  if (contains_any(low, kGradientWords)) return Purpose::gradient;
  return shape.empty() ? Purpose::scalar : Purpose::weight;
}

std::optional<int64_t> depth_of(std::string_view name) {
  const std::optional<CanonicalName> known = canonical_name(name);
  if (known && known->layer >= 0) return known->layer;
  const auto place = number_place(name);
  if (!place) return std::nullopt;
  return number_of(name.substr(place->first, place->second - place->first));
}

std::string pattern_of(std::string_view name) {
  const auto place = number_place(name);
  if (!place) return std::string(name);
  return std::string(name.substr(0, place->first)) + "*" + std::string(name.substr(place->second));
}

double rms_of(const Stats& stats) {
  return stats.norm && stats.finite ? *stats.norm / std::sqrt(static_cast<double>(stats.finite))
                                    : 0;
}

std::map<int64_t, std::vector<const Subject*>> by_depth(std::span<const Subject* const> pairs) {
  std::map<int64_t, std::vector<const Subject*>> layers;
  for (const Subject* pair : pairs)
    if (pair->depth) layers[*pair->depth].push_back(pair);
  return layers;
}

double squares_of(const Stats& stats) { return stats.norm ? *stats.norm * *stats.norm : 0; }

double squares_of_change(const Comparison& comparison) {
  return comparison.diff.mse.value_or(0) * static_cast<double>(comparison.diff.compared);
}

std::optional<double> relative_change(std::span<const Subject* const> pairs) {
  double before = 0, change = 0;
  for (const Subject* pair : pairs) {
    before += squares_of(pair->comparison.a);
    change += squares_of_change(pair->comparison);
  }
  if (before <= 0) return std::nullopt;
  return std::sqrt(change / before);
}

Study::Study(const Catalog& a, const Catalog& b, const AnalyzeOptions& options)
    : a_(a), b_(b), options_(options), facts_a_(Facts::of(a)), facts_b_(Facts::of(b)) {}

Study::~Study() = default;

void Study::add_pair(Subject subject) {
  subject.purpose = purpose_of(subject.name, subject.shape_a);
  subject.canonical = canonical_name(subject.name);
  if (!subject.depth) subject.depth = depth_of(subject.name);
  pairs_.push_back(std::move(subject));
}

void Study::add_unpaired(char side, const Tensor& tensor) {
  (side == 'a' ? only_a_ : only_b_).push_back(&tensor);
}

std::vector<const Subject*> Study::weights() const {
  std::vector<const Subject*> found;
  for (const Subject& pair : pairs_)
    if (pair.weight() && pair.compared() && !pair.views.a.parts.empty()) found.push_back(&pair);
  return found;
}

const std::vector<Profile>& Study::profiles() const {
  if (!profiles_) profiles_ = std::make_unique<std::vector<Profile>>(profile_weights(*this));
  return *profiles_;
}

const Attention& Study::attention() const {
  if (!attention_) attention_ = std::make_unique<Attention>(attention_of(*this));
  return *attention_;
}

}  // namespace tensordiff
