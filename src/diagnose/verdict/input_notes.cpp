#include "diagnose/verdict/input_notes.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "match/checkpoint.h"

namespace tensordiff {

std::string weights_note(const Insight& insight) {
  if (!insight.judged)
    return "warning: --weights has no effect: A and B are not dumps of what layers compute";
  const WeightUse use = insight.weight_use.value_or(WeightUse());
  if (use.steps == 0)
    return "warning: --weights has no effect: no step of the dumps multiplies by a weight";
  return fmt::format("{}--weights: {} of {} steps can be computed again{}",
                     use.usable == 0 ? "warning: " : "", use.usable, use.steps,
                     use.usable == 0 ? "; none of its names and sizes fit the dumps" : "");
}

void note_mixed_kinds(const Catalog& a, const Catalog& b, std::vector<std::string>& notes) {
  const auto weights = [](const Catalog& side) {
    return static_cast<std::size_t>(std::ranges::count_if(
        side.tensors, [](const Tensor& tensor) { return is_weight(tensor); }));
  };
  const auto layers = [](const Catalog& side) {
    return std::ranges::any_of(side.tensors,
                               [](const Tensor& t) { return t.place.layer_number().has_value(); });
  };
  const bool model_a = 2 * weights(a) > a.tensors.size();
  const bool model_b = 2 * weights(b) > b.tensors.size();
  if (model_a == model_b || weights(model_a ? b : a) > 0 || !layers(model_a ? b : a)) return;
  notes.push_back(fmt::format(
      "{} looks like a dump of activations and {} like the weights of a model: to use the weights, "
      "compare two dumps and give --weights {}",
      model_a ? "B" : "A", model_a ? "A" : "B", printable((model_a ? a : b).path)));
}

}  // namespace tensordiff
