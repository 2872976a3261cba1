// gradient_analysis: how large are the gradients, layer by layer, and do they get through?
//
// From gradients that b holds, else from the optimizer's running mean of them (first moments,
// momentum), else from the update b − a, which is labelled as the stand-in that it is.
//
//   flow  = smallest rms of a layer / largest; below kVanishing little gets through
//   steadiness = rms(first moments) / sqrt(mean(second moments)): 1 steady gradients, 0 all noise

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/analysis.h"

namespace tensordiff {
namespace {

constexpr double kVanishing = 1e-3;
constexpr double kExplodingRatio = 10;  // Gradients as a whole, b over a.

struct Gradient {
  std::string name;
  std::optional<int64_t> depth;
  Stats stats;                        // Of b,
  std::optional<Stats> stats_before;  // and of a.
};

// Weights of b in the order of the file, which is how optimizers number them.
std::vector<const Tensor*> parameters(const Catalog& catalog) {
  std::vector<const Tensor*> found;
  for (const Tensor& tensor : catalog.tensors)
    if (purpose_of(tensor.name, tensor.view.shape) == Purpose::weight &&
        is_float(tensor.view.dtype))
      found.push_back(&tensor);
  return found;
}

// "optimizer.state.3.exp_avg" is of parameter 3, if that has the same shape.
const Tensor& parameter_of(const Tensor& moment, std::span<const Tensor* const> all) {
  if (purpose_of(moment.name, moment.view.shape) != Purpose::optimizer) return moment;
  const std::optional<int64_t> number = moment.place.layer_number();
  if (!number || static_cast<std::size_t>(*number) >= all.size()) return moment;
  const Tensor& parameter = *all[static_cast<std::size_t>(*number)];
  return parameter.view.shape == moment.view.shape ? parameter : moment;
}

template <class Wanted>
std::vector<Gradient> collect(const Study& study, const Wanted& wanted) {
  const std::vector<const Tensor*> all = parameters(study.b());
  std::map<std::string_view, const Row*> pairs;
  for (const Row* pair : study.pairs())
    if (pair->compared()) pairs.emplace(pair->b.name, pair);
  std::vector<Gradient> found;
  for (const Tensor& tensor : study.b().tensors) {
    if (!tensor.fault.empty() || !wanted(tensor)) continue;
    const Tensor& parameter = parameter_of(tensor, all);
    Gradient gradient{parameter.name, {}, {}, {}};
    gradient.depth = parameter.place.layer_number();
    if (const auto pair = pairs.find(tensor.name); pair != pairs.end()) {
      gradient.stats = pair->second->comparison.b;
      gradient.stats_before = pair->second->comparison.a;
    } else if (const Result<Stats> stats = statistics(tensor.view); stats.ok()) {
      gradient.stats = stats.value();
    }
    found.push_back(std::move(gradient));
  }
  return found;
}

bool is_mean(const Tensor& tensor) {
  return tensor.name.ends_with("exp_avg") || tensor.name.ends_with("momentum_buffer");
}
bool is_gradient(const Tensor& tensor) {
  return purpose_of(tensor.name, tensor.view.shape) == Purpose::gradient;
}

std::vector<Gradient> updates(const Study& study) {
  std::vector<Gradient> found;
  for (const Row* pair : study.weights()) {
    Gradient gradient{pair->a.name, pair->depth(), {}, {}};
    gradient.stats.finite = pair->comparison.diff.compared;
    gradient.stats.norm = std::sqrt(squares_of_change(pair->comparison));
    found.push_back(std::move(gradient));
  }
  return found;
}

// Only of AdamW and its like, which keep both moments.
std::optional<double> steadiness(const Study& study) {
  double means = 0, squares = 0;
  for (const Gradient& each : collect(study, is_mean)) means += squares_of(each.stats);
  const auto is_square = [](const Tensor& tensor) { return tensor.name.ends_with("exp_avg_sq"); };
  for (const Gradient& each : collect(study, is_square))
    squares += each.stats.mean.value_or(0) * static_cast<double>(each.stats.finite);
  return squares > 0 ? std::optional(std::sqrt(means / squares)) : std::nullopt;
}

struct Flow {
  double smallest = 0, largest = 0, total = 0, before = 0;
  uint64_t not_finite = 0, zero = 0;
};

// Layers that did not move at all are frozen: that says nothing of the gradients they would get.
Flow flow_of(std::span<const Gradient> gradients, bool stand_in) {
  std::map<int64_t, std::pair<double, double>> layers;  // Squares and elements.
  Flow flow;
  bool all_before = !gradients.empty();
  for (const Gradient& each : gradients) {
    flow.total += squares_of(each.stats);
    flow.before += each.stats_before ? squares_of(*each.stats_before) : 0;
    all_before &= each.stats_before.has_value();
    flow.not_finite += each.stats.nan + each.stats.inf > 0;
    flow.zero += squares_of(each.stats) == 0;
    if (!each.depth) continue;
    layers[*each.depth].first += squares_of(each.stats);
    layers[*each.depth].second += static_cast<double>(each.stats.finite);
  }
  if (!all_before) flow.before = 0;
  if (stand_in) std::erase_if(layers, [](const auto& layer) { return layer.second.first == 0; });
  bool first = true;
  for (const auto& [depth, sums] : layers) {
    const double rms = sums.second > 0 ? std::sqrt(sums.first / sums.second) : 0;
    flow.smallest = first ? rms : std::min(flow.smallest, rms);
    flow.largest = std::max(flow.largest, rms);
    first = false;
  }
  if (layers.size() < 2) flow.largest = 0;
  return flow;
}

std::string_view status_of(const Flow& flow) {
  if (flow.not_finite > 0) return "exploding";
  if (flow.before > 0 && flow.total > kExplodingRatio * kExplodingRatio * flow.before)
    return "exploding";
  if (flow.total == 0) return "none";
  if (flow.largest > 0 && flow.smallest < kVanishing * flow.largest) return "vanishing";
  return "even";
}

void examine(const Study& study, Answer& answer) {
  std::vector<Gradient> gradients = collect(study, is_gradient);
  std::string_view source = "gradients";
  if (gradients.empty()) gradients = collect(study, is_mean), source = "optimizer_moments";
  if (gradients.empty()) {
    gradients = updates(study), source = "update_as_stand_in";
    answer.missing.push_back("gradients or optimizer moments; the update B − A is used instead");
  }
  const Flow flow = flow_of(gradients, source == "update_as_stand_in");
  answer.field("status", gradients.empty() ? "unknown" : status_of(flow)).field("source", source);
  answer.field("norm", std::sqrt(flow.total));
  if (flow.before > 0) answer.field("growth", std::sqrt(flow.total / flow.before));
  if (flow.largest > 0)
    answer.field("flow", flow.smallest / flow.largest);
  else
    answer.unknown("flow", "at least two layers that have numbers in their names and moved");
  if (const std::optional<double> steady = steadiness(study))
    answer.field("steadiness", *steady);
  else
    answer.unknown("steadiness", "first and second moments of an optimizer");
  answer.field("not_finite", flow.not_finite).field("zero", flow.zero);
  std::ranges::stable_sort(gradients, std::greater(),
                           [](const Gradient& each) { return rms_of(each.stats); });
  Listing& list = answer.list("tensors", {"tensor", "rms", "norm"});
  for (const Gradient& each : gradients) list.add({each.name, rms_of(each.stats), each.stats.norm});
}

}  // namespace

constinit const Analysis analyses::gradient_analysis = {
    .name = "gradient_analysis",
    .flag = "--gradient-analysis",
    .question = "How large are the gradients, and do they reach all layers?",
    .definition = "norms of gradients, of optimizer moments, or of the update as a stand-in",
    .examine = examine,
};

}  // namespace tensordiff
