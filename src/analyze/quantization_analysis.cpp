// quantization_analysis: how are the weights quantized, and what did it cost?
//
//   SQNR     = 10 log10(‖a‖² / ‖b − a‖²), over a tensor and over each of its rows (channels)
//   fitted   = the same once each row of b is scaled to fit; for integers without stored scales
//   damage   = expected error of each layer's output, as a share of their sum
//   keep     = the weights to keep in more bits, for a given size of the whole

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/analysis.h"
#include "analyze/quantization.h"
#include "analyze/quantization_damage.h"

namespace tensordiff {
namespace {

constexpr double kGrowth = 0.05;  // What is suggested without --size-budget: 5 % more.

double total_of(const std::vector<Damage>& damages) {
  double sum = 0;
  for (const Damage& each : damages) sum += each.error;
  return sum;
}

// Ranked by damage; what has none follows in display order.
void add_tensors(const Study& study, const std::vector<Damage>& damages, Answer& answer) {
  Listing& list = answer.list(
      "tensors", {"tensor", "bits", "sqnr_db", "damage", "output_error", "worst_row_sqnr_db",
                  "median_row_sqnr_db", "scheme", "step", "saturated", "dtype_a", "dtype_b"});
  const double total = total_of(damages);
  const auto add = [&](const Quantized& each, const Damage* damage) {
    const Profile& profile = *each.profile;
    const Datum worst = each.fitted ? each.rows.fitted_min : each.rows.sqnr_min;
    const Datum middle = each.fitted ? each.rows.fitted_median : each.rows.sqnr_median;
    const Datum share = damage && total > 0 ? Datum(damage->error / total) : Datum();
    const Datum error = damage ? Datum(std::sqrt(damage->error)) : Datum();
    list.add({each.pair->a.name, each.bits, each.sqnr, share, error, worst, middle, each.scheme,
              each.grid ? Datum(each.grid->step) : Datum(), profile.levels_b.saturated,
              name_of(each.pair->a.dtype), name_of(each.pair->b.dtype)});
  };
  std::vector<const Quantized*> ranked;
  for (const Damage& each : damages) {
    add(*each.weight, &each);
    ranked.push_back(each.weight);
  }
  for (const Quantized& each : study.quantization().found)
    if (std::ranges::find(ranked, &each) == ranked.end()) add(each, nullptr);
}

// Whether it was only stored in a type of fewer bits.
bool is_cast(const Quantized& each) {
  return !each.grid && is_plain(each.pair->b.dtype) && is_float(each.pair->b.dtype);
}

std::string schemes_of(const Quantization& all) {
  const std::vector<Quantized>& found = all.found;
  std::map<std::string, std::size_t> counts;
  for (const Quantized& each : found) ++counts[each.scheme];
  std::vector<std::pair<std::string, std::size_t>> order(counts.begin(), counts.end());
  std::ranges::stable_sort(order, std::greater(), &std::pair<std::string, std::size_t>::second);
  constexpr std::size_t kNamed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(kNamed, order.size()); ++i)
    text += (text.empty() ? "" : "; ") + order[i].first;
  if (order.size() > kNamed) text += fmt::format("; {} more", order.size() - kNamed);
  if (!all.not_told.empty())
    text += fmt::format("; unknown of {} {}", all.not_told.size(),
                        all.not_told.size() == 1 ? "weight" : "weights");
  return text;
}

void add_layers(const std::vector<Damage>& damages, Answer& answer) {
  std::map<int64_t, double> layers;
  for (const Damage& each : damages)
    if (each.weight->pair->depth()) layers[*each.weight->pair->depth()] += each.error;
  if (layers.size() < 2) return;
  Chart chart;
  chart.name = "damage_by_layer";
  chart.title = "expected damage by layer, as a share of all";
  chart.y = {"damage"};
  for (const auto& [depth, error] : layers) {
    chart.x.push_back(std::to_string(depth));
    chart.values.push_back(error / total_of(damages));
  }
  answer.charts.push_back(std::move(chart));
}

double removed_by(const std::vector<Upgrade>& plan) {
  double removed = 0;
  for (const Upgrade& each : plan) removed += each.removed;
  return removed;
}

// What each size of the whole could save.
void add_budgets(const std::vector<Damage>& damages, double now, Answer& answer) {
  const double total = total_of(damages);
  Listing& list = answer.list("budgets", {"size", "bytes", "kept", "damage_left", "sqnr_gain_db"});
  Chart chart{Chart::Kind::line,
              "damage_by_size",
              "damage that is left, by size of the weights",
              {},
              {"damage left"},
              {}};
  for (const double growth : {0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5}) {
    const std::vector<Upgrade> plan = plan_upgrades(damages, growth * now);
    const double left = std::max(0.0, 1 - removed_by(plan) / total);
    list.add({fmt::format("+{:.0f} %", 100 * growth), std::round(now * (1 + growth)), plan.size(),
              left, left > 0 ? Datum(0 - 10 * std::log10(left)) : Datum()});
    chart.x.push_back(fmt::format("+{:.0f} %", 100 * growth));
    chart.values.push_back(left);
  }
  answer.charts.push_back(std::move(chart));
}

void add_plan(const Study& study, const std::vector<Damage>& damages, Answer& answer) {
  const double now = quantized_bytes(study), total = total_of(damages);
  if (total <= 0 || now <= 0) return;
  const AnalyzeOptions& options = study.options();
  const double more = options.size_budget ? *options.size_budget - now
                                          : options.size_growth.value_or(kGrowth) * now;
  const std::vector<Upgrade> plan = plan_upgrades(damages, std::max(0.0, more));
  answer.field("size", std::round(now)).field("size_budget", std::round(now + more));
  if (more < 0) answer.notes.push_back("the weights are larger than the budget already");
  answer.field("keep_in_more_bits", plan.size());
  answer.field("damage_left", std::max(0.0, 1 - removed_by(plan) / total));
  Listing& list = answer.list("keep", {"tensor", "bits", "to_bits", "more_bytes", "damage_left"});
  double removed = 0;
  for (const Upgrade& each : plan) {
    removed += each.removed;
    list.add({each.damage->weight->pair->a.name, each.from_bits, each.to_bits,
              std::round(each.bytes), std::max(0.0, 1 - removed / total)});
  }
  add_budgets(damages, now, answer);
}

void add_damage(const Study& study, Answer& answer) {
  const std::vector<Damage> damages = damage_of(study);
  if (!damages.empty() && total_of(damages) > 0) {
    const auto measured = std::ranges::count_if(damages, &Damage::measured);
    answer.field("worst_tensor", damages[0].weight->pair->a.name);
    answer.field("worst_damage", damages[0].error / total_of(damages));
    add_plan(study, damages, answer);
    if (study.activations())
      answer.field("measured_on_inputs", measured);
    else
      answer.notes.push_back(
          "damage assumes inputs without preferred directions; --activations DUMP measures it");
  }
  add_tensors(study, damages, answer);
  add_layers(damages, answer);
}

void add_bits(const std::vector<Quantized>& found, Answer& answer) {
  double elements = 0, bits_a = 0, bits_b = 0;
  const Quantized* worst = nullptr;
  for (const Quantized& each : found) {
    const auto count = static_cast<double>(each.pair->comparison.diff.compared);
    elements += count;
    bits_a += count * each.bits_a;
    bits_b += count * each.bits;
    if (each.sqnr && (!worst || *each.sqnr < *worst->sqnr)) worst = &each;
  }
  if (elements > 0)
    answer.field("bits_per_weight_a", bits_a / elements)
        .field("bits_per_weight_b", bits_b / elements);
  if (std::ranges::any_of(found, &Quantized::fitted)) {
    answer.unknown("sqnr_db", "the scales of the integers; each row was scaled to fit instead");
    answer.notes.push_back("ratios of integers without scales are those after the best scale");
  } else {
    answer.field("sqnr_db", sqnr_of(found));
  }
  if (worst) answer.field("worst_sqnr_db", *worst->sqnr);
}

void examine(const Study& study, Answer& answer) {
  const Quantization& all = study.quantization();
  constexpr std::string_view kUntold =
      "stored scales, or values on a code book that is known: {} changed fit none, as after "
      "fine-tuning or rounding in another basis";
  // Norms that are stored in 16 bits say nothing of matrices that fit no code book.
  const bool only_casts = std::ranges::all_of(all.found, is_cast);
  const bool untold = only_casts && !all.not_told.empty();
  if (untold)
    answer.unknown("scheme", fmt::format(kUntold, all.not_told.size()));
  else if (!all.found.empty())
    answer.field("scheme", schemes_of(all));
  else
    answer.field("scheme", "none");
  answer.field("quantized", all.found.size()).field("not_told", all.not_told.size());
  if (all.found.empty() || untold) return;
  add_bits(all.found, answer);
  add_damage(study, answer);
  answer.notes.push_back("code books, groups and saturation come from a sample of each tensor");
}

}  // namespace

constinit const Analysis analyses::quantization_analysis = {
    .name = "quantization_analysis",
    .flag = "--quantization-analysis",
    .question = "How are the weights quantized, what did it cost, and what is worth more bits?",
    .definition = "scheme, noise, layers by expected damage, what to keep in more bits",
    .examine = examine,
};

}  // namespace tensordiff
