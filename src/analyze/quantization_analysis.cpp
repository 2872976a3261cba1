// quantization_analysis: into how few bits were the weights put, and what did it cost?
//
//   SQNR     = 10 log10(‖a‖² / ‖b − a‖²), over a tensor and over each of its rows (channels)
//   fitted   = −10 log10(1 − cos²): the same once b is scaled to fit; for integers, whose scale
//              lies elsewhere
//   block, step, levels = the largest blocks whose values lie on a grid of at most 256 levels

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/analysis.h"
#include "analyze/quantization.h"

namespace tensordiff {
namespace {

double decibels(double ratio) { return 10 * std::log10(ratio); }

bool fewer_bits(const Subject& pair) {
  return info(pair.dtype_b).bits < info(pair.dtype_a).bits && is_float(pair.dtype_a);
}

// Different values of b among those sampled, to those of a.
double levels_left(const Profile& profile) {
  const auto a = static_cast<double>(std::max<uint64_t>(1, profile.levels_a.distinct));
  return static_cast<double>(profile.levels_b.distinct) / a;
}

// Whether b may be rounded though its dtype is that of a: fewer different values, or so few values
// that this says nothing.
bool may_be_rounded(const Subject& pair, const Profile& profile) {
  if (!pair.changed() || pair.dtype_a != pair.dtype_b || !is_float(pair.dtype_a)) return false;
  return profile.levels_a.sampled < kFewValues || levels_left(profile) < kFewerLevels;
}

std::optional<BlockGrid> grid_in(const View& view) {
  Result<std::optional<BlockGrid>> grid = find_blocks(view);
  return grid.ok() ? std::move(grid).value() : std::nullopt;
}

void measure_noise(Quantized& found) {
  const Comparison& it = found.pair->comparison;
  const double signal = squares_of(it.a), noise = squares_of_change(it);
  found.fitted = is_integer(found.pair->dtype_b);
  if (found.fitted && it.diff.cosine && std::abs(*it.diff.cosine) < 1)
    found.sqnr = decibels(1 / (1 - *it.diff.cosine * *it.diff.cosine));
  else if (!found.fitted && signal > 0 && noise > 0)
    found.sqnr = decibels(signal / noise);
}

void add_tensors(const std::vector<Quantized>& found, Answer& answer) {
  Listing& list = answer.list(
      "tensors", {"tensor", "dtype_a", "dtype_b", "bits", "sqnr_db", "worst_row_sqnr_db", "max_abs",
                  "block", "step", "levels", "saturated"});
  for (const Quantized& each : found) {
    const std::optional<double> worst =
        each.fitted ? each.profile->row_fitted_sqnr_median : each.profile->row_sqnr_min;
    const Datum block = each.grid ? Datum(each.grid->block) : Datum();
    const Datum step = each.grid ? Datum(each.grid->step) : Datum();
    const Datum levels = each.grid ? Datum(each.grid->levels) : Datum();
    list.add({each.pair->name, name_of(each.pair->dtype_a), name_of(each.pair->dtype_b), each.bits,
              each.sqnr, worst, each.fitted ? Datum() : Datum(each.pair->comparison.diff.max_abs),
              block, step, levels, each.profile->levels_b.saturated});
  }
}

std::string schemes_of(const std::vector<Quantized>& found) {
  std::map<std::string, std::size_t> counts;
  for (const Quantized& each : found) ++counts[each.scheme];
  std::string text;
  for (const auto& [scheme, count] : counts) text += (text.empty() ? "" : ", ") + scheme;
  return text;
}

void examine(const Study& study, Answer& answer) {
  const std::vector<Quantized> found = find_quantized(study);
  if (found.empty()) {
    answer.field("scheme", "none").field("quantized", 0U);
    return;
  }
  double elements = 0, bits_a = 0, bits_b = 0;
  const Quantized* worst = nullptr;
  for (const Quantized& each : found) {
    const auto count = static_cast<double>(each.pair->comparison.diff.compared);
    elements += count;
    bits_a += count * info(each.pair->dtype_a).bits;
    bits_b += count * each.bits;
    if (each.sqnr && (!worst || *each.sqnr < *worst->sqnr)) worst = &each;
  }
  answer.field("scheme", schemes_of(found)).field("quantized", found.size());
  if (elements > 0)
    answer.field("bits_per_weight_a", bits_a / elements)
        .field("bits_per_weight_b", bits_b / elements);
  const bool fitted = std::ranges::any_of(found, &Quantized::fitted);
  if (fitted)
    answer.unknown("sqnr_db", "the scales of the integers; each tensor was scaled to fit instead");
  else
    answer.field("sqnr_db", sqnr_of(found));
  if (worst) answer.field("worst_tensor", worst->pair->name).field("worst_sqnr_db", *worst->sqnr);
  add_tensors(found, answer);
  answer.notes.push_back("blocks, steps, levels and saturation come from a sample of each tensor");
  if (fitted)
    answer.notes.push_back("worst_row_sqnr_db of fitted tensors is that of the median row");
}

}  // namespace

std::vector<Quantized> find_quantized(const Study& study) {
  const std::vector<const Subject*> weights = study.weights();
  const std::vector<Profile>& profiles = study.profiles();
  std::vector<Quantized> found;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const bool narrower = fewer_bits(*weights[i]);
    if (!narrower && !may_be_rounded(*weights[i], profiles[i])) continue;
    Quantized each;
    each.pair = weights[i];
    each.profile = &profiles[i];
    each.scheme = narrower ? std::string(name_of(weights[i]->dtype_b)) : "rounded to a grid";
    each.grid = grid_in(weights[i]->views.b);
    const bool few =
        profiles[i].levels_a.sampled >= kFewValues && levels_left(profiles[i]) < kFewLevels;
    const bool new_grid = each.grid && !grid_in(weights[i]->views.a);
    if (!narrower && !few && !new_grid) continue;
    each.bits = info(weights[i]->dtype_b).bits;
    if (!narrower) {
      const uint64_t levels = each.grid ? each.grid->levels : profiles[i].levels_b.distinct;
      each.bits = std::ceil(std::log2(std::max<double>(2, static_cast<double>(levels))));
    }
    measure_noise(each);
    found.push_back(std::move(each));
  }
  return found;
}

std::optional<double> sqnr_of(const std::vector<Quantized>& pairs) {
  double signal = 0, noise = 0;
  for (const Quantized& each : pairs) {
    signal += squares_of(each.pair->comparison.a);
    noise += squares_of_change(each.pair->comparison);
  }
  if (signal <= 0 || noise <= 0) return std::nullopt;
  return decibels(signal / noise);
}

constinit const Analysis analyses::quantization_analysis = {
    .name = "quantization_analysis",
    .flag = "--quantization-analysis",
    .question = "Into how few bits were the weights put, and what did it cost?",
    .definition = "scheme, bits per weight, signal to quantization noise, blocks, saturation",
    .examine = examine,
};

}  // namespace tensordiff
