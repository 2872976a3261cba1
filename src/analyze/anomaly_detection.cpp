// anomaly_detection: what is wrong with the weights of B, seen against those of A?
//
//   nonfinite  NaN or infinite values                  exploding, vanishing  rms(b) / rms(a)
//   dead_rows, dead_columns  that became zero          collapsed  variance or effective rank gone
//   shifted    Kolmogorov–Smirnov distance of values   saturated  values at the end of their type

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "analyze/analysis.h"
#include "analyze/anomalies.h"
#include "analyze/profile.h"

namespace tensordiff {
namespace {

using namespace anomaly;

// What is so many times as large was about zero before.
constexpr double kFromZero = 10;

class Finder {
 public:
  explicit Finder(const Study& study) : study_(study), weights_(study.weights()) {}

  std::vector<Anomaly> find() {
    const std::vector<Profile>& profiles = study_.profiles();
    find_scale();
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      find_nonfinite(*weights_[i]);
      find_dead(*weights_[i], profiles[i]);
      find_dead_columns(*weights_[i], profiles[i]);
      find_collapsed(*weights_[i], profiles[i]);
      find_shifted(*weights_[i], profiles[i]);
      find_saturated(*weights_[i], profiles[i]);
    }
    std::ranges::stable_sort(found_, std::greater(), &Anomaly::severity);
    return std::move(found_);
  }

 private:
  void add(const Row& pair, Anomaly anomaly) {
    anomaly.tensor = pair.b.name;
    found_.push_back(std::move(anomaly));
  }

  void find_nonfinite(const Row& pair) {
    const uint64_t a = pair.comparison.a.nan + pair.comparison.a.inf;
    const uint64_t b = pair.comparison.b.nan + pair.comparison.b.inf;
    if (b == 0) return;
    // What a has as well is not new: masks are often made of infinities.
    add(pair, {"nonfinite", b > a ? Grade::critical : Grade::info, "", static_cast<double>(b),
               static_cast<double>(a),
               fmt::format("{} NaN, {} infinite; {} in A", pair.comparison.b.nan,
                           pair.comparison.b.inf, a)});
  }

  // Levels without their scale: how large their values are says nothing.
  static bool in_one_unit(const Row& pair) {
    return is_integer(pair.a.dtype) == is_integer(pair.b.dtype);
  }

  static double middle_of(std::vector<double> values) {
    std::ranges::nth_element(values,
                             values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
    return values[values.size() / 2];
  }

  // How rms(b) / rms(a) is spread over the model, and how large its weights are.
  struct Scale {
    double middle = 0, deviation = 0;  // Of the logarithms of the ratios.
    double size = 0;                   // The median rms in a.
  };

  void find_scale() {
    std::vector<double> ratios, sizes;
    for (const Row* pair : weights_) {
      const double a = rms_of(pair->comparison.a), b = rms_of(pair->comparison.b);
      if (!in_one_unit(*pair) || a <= 0 || b <= 0) continue;
      ratios.push_back(std::log(b / a));
      sizes.push_back(a);
    }
    if (ratios.empty()) return;
    Scale scale{middle_of(ratios), 0, middle_of(sizes)};
    std::vector<double> deviations;
    for (const double ratio : ratios) deviations.push_back(std::abs(ratio - scale.middle));
    scale.deviation = middle_of(deviations);
    for (const Row* pair : weights_)
      if (in_one_unit(*pair)) judge_scale(*pair, scale);
  }

  void judge_scale(const Row& pair, const Scale& scale) {
    const double a = rms_of(pair.comparison.a), b = rms_of(pair.comparison.b);
    if (a <= 0 || b <= 0) return;
    // Biases start at about zero: what is below the weights of the model does not explode, and what
    // was far below them has nothing to lose.
    if (b > a ? b < scale.size : a < scale.size / kRatioCritical) return;
    // The rms of n values is only known to a share of √(1 / 2n), and there are two of them.
    const double noise =
        3 / std::sqrt(static_cast<double>(std::max<uint64_t>(1, pair.comparison.diff.compared)));
    const double size = std::abs(std::log(b / a)) - noise;
    const bool outlier =
        std::abs(std::log(b / a) - scale.middle) > kOutlierDeviations * scale.deviation;
    if (size < std::log(kRatio) && !(outlier && size >= std::log(kOutlierRatio))) return;
    add(pair, {b > a ? "exploding" : "vanishing",
               size >= std::log(kRatioCritical) ? Grade::critical : Grade::warning, "", b, a,
               fmt::format("root mean square {:.4g} times that of A", b / a)});
  }

  void find_dead(const Row& pair, const Profile& profile) {
    if (profile.rows_b.dead <= profile.rows_a.dead) return;
    const double share = static_cast<double>(profile.rows_b.dead - profile.rows_a.dead) /
                         static_cast<double>(profile.rows);
    add(pair, {"dead_rows", share >= kDeadShareCritical ? Grade::critical : Grade::warning, "",
               static_cast<double>(profile.rows_b.dead), static_cast<double>(profile.rows_a.dead),
               fmt::format("{} of {} rows are zero; {} in A", profile.rows_b.dead, profile.rows,
                           profile.rows_a.dead)});
  }

  void find_dead_columns(const Row& pair, const Profile& profile) {
    const uint64_t a = profile.rows_a.dead_columns, b = profile.rows_b.dead_columns;
    if (b <= a) return;
    const double share = static_cast<double>(b - a) / static_cast<double>(profile.columns);
    add(pair, {"dead_columns", share >= kDeadShareCritical ? Grade::critical : Grade::warning, "",
               static_cast<double>(b), static_cast<double>(a),
               fmt::format("{} of {} columns are zero; {} in A", b, profile.columns, a)});
  }

  void find_collapsed(const Row& pair, const Profile& profile) {
    const std::optional<double> std_a = pair.comparison.a.std, std_b = pair.comparison.b.std;
    if (std_a && std_b && *std_a > 0 && *std_b == 0) {
      // A norm of ones or a bias of zeros does nothing: it was folded into other weights, or lost.
      const double value = pair.comparison.b.mean.value_or(0);
      const bool idle = pair.b.shape.size() == 1 && (value == 1 || value == 0);
      return add(pair, {"collapsed", idle ? Grade::warning : Grade::critical, "", 0, *std_a,
                        fmt::format("all values are {:.4g}; they were not the same in A", value)});
    }
    const double before = profile.spectrum_a.effective_rank();
    const double after = profile.spectrum_b.effective_rank();
    if (before > 2 && after > 0 && after < kCollapsed * before)
      add(pair, {"collapsed", Grade::warning, "", after, before,
                 fmt::format("effective rank {:.3g}; {:.3g} in A", after, before)});
  }

  void find_shifted(const Row& pair, const Profile& profile) {
    const auto count = static_cast<double>(profile.distribution_values);
    if (count == 0 || !in_one_unit(pair)) return;
    // Values that lie close together, as those of norms, have another distribution after the least
    // move; what counts is how far they moved against their own size.
    if (pair.comparison.diff.rel_l2.value_or(0) < kShift) return;
    // A bias that training begins at about zero has another distribution after the first steps.
    // What grows so in a weight is said to explode.
    if (pair.comparison.diff.norm_ratio.value_or(0) > kFromZero) return;
    // What two samples of one distribution exceed once in a hundred times.
    const double chance = 1.63 * std::sqrt(2 / count);
    const double distance = profile.distribution_distance;
    if (distance < std::max(kShift, chance)) return;
    add(pair, {"shifted", distance >= kShiftWarning ? Grade::warning : Grade::info, "", distance,
               std::max(kShift, chance),
               fmt::format("the distributions of the values are {:.3g} apart, of 1", distance)});
  }

  void find_saturated(const Row& pair, const Profile& profile) {
    const double b = profile.levels_b.saturated;
    if (!in_one_unit(pair)) return;  // A scale by the largest value puts that one at the end.
    if (b < kSaturated || b <= profile.levels_a.saturated) return;
    add(pair, {"saturated", b >= kSaturatedCritical ? Grade::critical : Grade::warning, "", b,
               profile.levels_a.saturated,
               fmt::format("{:.3g} % of the values lie at the end of the range of {}", 100 * b,
                           name_of(pair.b.dtype))});
  }

  const Study& study_;
  std::vector<const Row*> weights_;
  std::vector<Anomaly> found_;
};

void examine(const Study& study, Answer& answer) {
  const std::vector<Anomaly> found = find_anomalies(study);
  std::set<std::string_view> tensors;
  for (const Anomaly& each : found)
    if (each.severity >= Grade::warning) tensors.insert(each.tensor);
  answer.field("type", found.empty() ? "none" : found[0].kind);
  answer.field("severity", name_of(found.empty() ? Grade::none : found[0].severity));
  answer.field("affected", tensors.size()).field("anomalies", found.size());
  answer.field("looked_at", study.weights().size());
  Listing& list = answer.list("anomalies_found",
                              {"tensor", "kind", "severity", "value", "reference", "meaning"});
  for (const Anomaly& each : found)
    list.add(
        {each.tensor, each.kind, name_of(each.severity), each.value, each.reference, each.meaning});
  const auto sampled = [](const Profile& profile) { return profile.sampled; };
  if (std::ranges::any_of(study.profiles(), sampled))
    answer.notes.push_back(
        "ranks, distributions and saturation of large tensors come from a sample");
}

}  // namespace

std::string_view name_of(Grade severity) {
  constexpr std::string_view kNames[] = {"none", "info", "warning", "critical"};
  return kNames[static_cast<std::size_t>(severity)];
}

std::vector<Anomaly> find_anomalies(const Study& study) { return Finder(study).find(); }

constinit const Analysis analyses::anomaly_detection = {
    .name = "anomaly_detection",
    .flag = "--anomaly-detection",
    .question = "What is wrong with the weights of B, seen against those of A?",
    .definition = "NaN, exploding, vanishing, dead, collapsed, shifted or saturated weights",
    .examine = examine,
};

}  // namespace tensordiff
