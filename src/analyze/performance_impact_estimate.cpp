// performance_impact_estimate: what do speed and quality gain or lose?
//
//   speedup = best time of a / best time of b, by the roofline of inference_speed_estimate
//   quality = by the signal to noise ratio of the weights, where b is a rounded a. What retraining
//             does to quality cannot be read off the weights, and is unknown.

#include <algorithm>

#include "analyze/analysis.h"
#include "analyze/edit.h"
#include "analyze/quantization.h"
#include "analyze/roofline.h"

namespace tensordiff {
namespace {

// In dB. 8 bits with a scale for each row leave about 40, 4 bits about 19, bfloat16 about 55.
constexpr double kNegligible = 35, kSmall = 25, kNoticeable = 15;

std::string_view impact_of(double sqnr) {
  if (sqnr >= kNegligible) return "negligible";
  if (sqnr >= kSmall) return "small";
  return sqnr >= kNoticeable ? "noticeable" : "large";
}

// Whether all that changed are weights that were rounded.
bool only_rounded(const Study& study, const std::vector<Quantized>& quantized) {
  return std::ranges::all_of(study.weights(), [&](const Row* pair) {
    return !pair->changed() ||
           std::ranges::find(quantized, pair, &Quantized::pair) != quantized.end() ||
           find_cast(*pair);
  });
}

void examine(const Study& study, Answer& answer) {
  const std::optional<Device> device = find_device(study.options().device);
  std::optional<Roofline> a, b;
  if (device) {
    a = roofline_of(study.a(), study.facts_a(), *device);
    b = roofline_of(study.b(), study.facts_b(), *device);
  }
  if (a && b)
    answer.field("speedup", a->seconds / b->seconds).field("device", device->name);
  else
    answer.unknown("speedup", "matrices whose work depends on the weights alone, a known device");
  const std::vector<const Row*>& weights = study.weights();
  const std::optional<double> magnitude = relative_change(weights);
  answer.field("magnitude", magnitude);
  const std::vector<Quantized>& quantized = study.quantization().found;
  const std::optional<double> sqnr = sqnr_of(quantized);
  bool integers = false;
  for (const Quantized& each : quantized) integers |= each.fitted;
  if (magnitude && *magnitude == 0) {
    answer.field("quality_impact", "none");
  } else if (sqnr && !integers && only_rounded(study, quantized)) {
    answer.field("quality_impact", impact_of(*sqnr)).field("sqnr_db", *sqnr);
  } else {
    answer.unknown(
        "quality_impact",
        "an evaluation of both: weights that were retrained do not show how well they do");
  }
  Listing& list = answer.list("tensors", {"tensor", "sqnr_db", "impact"});
  for (const Quantized& each : quantized)
    if (each.sqnr) list.add({each.pair->a.name, *each.sqnr, impact_of(*each.sqnr)});
}

}  // namespace

constinit const Analysis analyses::performance_impact_estimate = {
    .name = "performance_impact_estimate",
    .flag = "--performance-impact-estimate",
    .question = "What do speed and quality gain or lose?",
    .definition = "estimated speed-up (roofline); signal-to-noise ratio if B is quantized",
    .examine = examine,
};

}  // namespace tensordiff
