#include "analyze/quantization_damage.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "analyze/layer_inputs.h"
#include "base/parallel.h"

namespace tensordiff {
namespace {

// Eight bits with a scale of 16 for each 32 of them, and a float of 16.
constexpr double kSteps[] = {8.5, 16};

double elements_of(const Quantized& weight) {
  return static_cast<double>(weight.pair->comparison.diff.compared);
}

double error_at(const Damage& damage, double bits) {
  return damage.error * std::pow(4, damage.weight->bits - bits);
}

Upgrade step_of(const Damage& damage, double from, double to) {
  return {&damage, from, to, (to - from) * elements_of(*damage.weight) / 8,
          error_at(damage, from) - error_at(damage, to)};
}

// All steps that could be taken; those of one weight in their order.
std::vector<Upgrade> steps_of(const std::vector<Damage>& damages) {
  std::vector<Upgrade> steps;
  for (const Damage& damage : damages) {
    double from = damage.weight->bits;
    for (const double to : kSteps) {
      if (to <= from || to > damage.weight->bits_a) continue;
      steps.push_back(step_of(damage, from, to));
      from = to;
    }
  }
  return steps;
}

}  // namespace

std::vector<Damage> damage_of(const Study& study) {
  std::vector<Damage> damages;
  for (const Quantized& each : study.quantization().found)
    if (each.sqnr && !each.fitted) damages.push_back({&each, std::pow(10, -*each.sqnr / 10)});
  if (study.activations()) {
    const LayerInputs inputs(*study.activations(), study);
    for_each_index(damages.size(), [&](std::size_t i) {
      const std::optional<double> error = inputs.output_error(*damages[i].weight->pair);
      if (!error) return;
      damages[i].error = *error;
      damages[i].measured = true;
    });
  }
  std::ranges::stable_sort(damages, std::greater(), &Damage::error);
  return damages;
}

std::vector<Upgrade> plan_upgrades(const std::vector<Damage>& damages, double bytes) {
  std::vector<Upgrade> steps = steps_of(damages);
  // The second step of a weight removes less for a byte than its first: the order keeps them apart.
  std::ranges::stable_sort(steps, [](const Upgrade& x, const Upgrade& y) {
    return x.removed * y.bytes > y.removed * x.bytes;
  });
  std::vector<Upgrade> plan;
  std::map<const Damage*, std::size_t> taken;
  for (const Upgrade& step : steps) {
    if (step.bytes > bytes || step.removed <= 0) continue;
    const auto before = taken.find(step.damage);
    const double from =
        before == taken.end() ? step.damage->weight->bits : plan[before->second].to_bits;
    if (from != step.from_bits) continue;  // Its first step did not fit.
    bytes -= step.bytes;
    if (before == taken.end()) {
      taken.emplace(step.damage, plan.size());
      plan.push_back(step);
      continue;
    }
    Upgrade& both = plan[before->second];
    both.to_bits = step.to_bits;
    both.bytes += step.bytes;
    both.removed += step.removed;
  }
  return plan;
}

double quantized_bytes(const Study& study) {
  double bytes = 0;
  for (const Tensor& tensor : study.b().tensors)
    if (tensor.fault.empty() && purpose_of(tensor.name, tensor.view.shape) == Purpose::weight &&
        tensor.auxiliary.empty())
      bytes += stored_bits(tensor) * static_cast<double>(tensor.elements()) / 8;
  for (const Quantized& each : study.quantization().found) {
    if (!each.grid) continue;
    const auto stored = static_cast<double>(info(each.pair->b.dtype).bits);
    bytes -= (stored - each.bits) * elements_of(each) / 8;
  }
  return std::max(0.0, bytes);
}

}  // namespace tensordiff
