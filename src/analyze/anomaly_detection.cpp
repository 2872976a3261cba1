// anomaly_detection: what is wrong with the weights of b, seen against those of a?
//
//   nonfinite  NaN or infinite values                  exploding, vanishing  rms(b) / rms(a)
//   dead_rows  rows that became zero                   collapsed  variance or effective rank gone
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

class Finder {
 public:
  explicit Finder(const Study& study) : study_(study), weights_(study.weights()) {}

  std::vector<Anomaly> find() {
    const std::vector<Profile>& profiles = study_.profiles();
    find_scale();
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      find_nonfinite(*weights_[i]);
      find_dead(*weights_[i], profiles[i]);
      find_collapsed(*weights_[i], profiles[i]);
      find_shifted(*weights_[i], profiles[i]);
      find_saturated(*weights_[i], profiles[i]);
    }
    std::ranges::stable_sort(found_, std::greater(), &Anomaly::severity);
    return std::move(found_);
  }

 private:
  void add(const Subject& pair, Anomaly anomaly) {
    anomaly.tensor = pair.name_b;
    found_.push_back(std::move(anomaly));
  }

  void find_nonfinite(const Subject& pair) {
    const uint64_t a = pair.comparison.a.nan + pair.comparison.a.inf;
    const uint64_t b = pair.comparison.b.nan + pair.comparison.b.inf;
    if (b == 0) return;
    // What a has as well is not new: masks are often made of infinities.
    add(pair, {"nonfinite", b > a ? Grade::critical : Grade::info, "", static_cast<double>(b),
               static_cast<double>(a),
               fmt::format("{} NaN, {} infinite; {} in a", pair.comparison.b.nan,
                           pair.comparison.b.inf, a)});
  }

  // Logarithms of rms(b) / rms(a), and how they are spread over the model.
  void find_scale() {
    std::vector<double> ratios;
    for (const Subject* pair : weights_) {
      const double a = rms_of(pair->comparison.a), b = rms_of(pair->comparison.b);
      if (a > 0 && b > 0) ratios.push_back(std::log(b / a));
    }
    if (ratios.empty()) return;
    const auto middle_of = [](std::vector<double> values) {
      std::ranges::nth_element(values,
                               values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
      return values[values.size() / 2];
    };
    const double middle = middle_of(ratios);
    std::vector<double> deviations;
    for (const double ratio : ratios) deviations.push_back(std::abs(ratio - middle));
    const double deviation = middle_of(deviations);
    for (const Subject* pair : weights_) judge_scale(*pair, middle, deviation);
  }

  void judge_scale(const Subject& pair, double middle, double deviation) {
    const double a = rms_of(pair.comparison.a), b = rms_of(pair.comparison.b);
    if (a <= 0 || b <= 0) return;
    const double size = std::abs(std::log(b / a));
    const bool outlier = std::abs(std::log(b / a) - middle) > kOutlierDeviations * deviation;
    if (size < std::log(kRatio) && !(outlier && size >= std::log(kOutlierRatio))) return;
    add(pair, {b > a ? "exploding" : "vanishing",
               size >= std::log(kRatioCritical) ? Grade::critical : Grade::warning, "", b, a,
               fmt::format("root mean square {:.4g} times that of a", b / a)});
  }

  void find_dead(const Subject& pair, const Profile& profile) {
    if (profile.rows_b.dead <= profile.rows_a.dead) return;
    const double share = static_cast<double>(profile.rows_b.dead - profile.rows_a.dead) /
                         static_cast<double>(profile.rows);
    add(pair,
        {"dead_rows", share >= kDeadShareCritical ? Grade::critical : Grade::warning, "",
         static_cast<double>(profile.rows_b.dead), static_cast<double>(profile.rows_a.dead),
         fmt::format("{} of {} rows are zero; {} in a", profile.rows_b.dead, profile.rows,
                     profile.rows_a.dead)});
  }

  void find_collapsed(const Subject& pair, const Profile& profile) {
    const std::optional<double> std_a = pair.comparison.a.std, std_b = pair.comparison.b.std;
    if (std_a && std_b && *std_a > 0 && *std_b == 0)
      return add(pair, {"collapsed", Grade::critical, "", 0, *std_a,
                        "all values are the same; they were not in a"});
    const double before = profile.spectrum_a.effective_rank();
    const double after = profile.spectrum_b.effective_rank();
    if (before > 2 && after > 0 && after < kCollapsed * before)
      add(pair, {"collapsed", Grade::warning, "", after, before,
                 fmt::format("effective rank {:.3g}; {:.3g} in a", after, before)});
  }

  void find_shifted(const Subject& pair, const Profile& profile) {
    const auto count = static_cast<double>(profile.distribution_values);
    if (count == 0) return;
    // What two samples of one distribution exceed once in a hundred times.
    const double chance = 1.63 * std::sqrt(2 / count);
    const double distance = profile.distribution_distance;
    if (distance < std::max(kShift, chance)) return;
    add(pair, {"shifted", distance >= kShiftWarning ? Grade::warning : Grade::info, "",
               distance, std::max(kShift, chance),
               fmt::format("the distributions of the values are {:.3g} apart, of 1", distance)});
  }

  void find_saturated(const Subject& pair, const Profile& profile) {
    const double b = profile.levels_b.saturated;
    if (b < kSaturated || b <= profile.levels_a.saturated) return;
    add(pair, {"saturated", b >= kSaturatedCritical ? Grade::critical : Grade::warning, "", b,
               profile.levels_a.saturated,
               fmt::format("{:.3g} % of the values lie at the end of the range of {}", 100 * b,
                           name_of(pair.dtype_b))});
  }

  const Study& study_;
  std::vector<const Subject*> weights_;
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
    .question = "What is wrong with the weights of b, seen against those of a?",
    .definition = "NaN, exploding, vanishing, dead, collapsed, shifted or saturated weights",
    .examine = examine,
};

}  // namespace tensordiff
