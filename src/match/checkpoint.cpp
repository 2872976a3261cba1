#include "match/checkpoint.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"
#include "match/flat_name.h"

namespace tensordiff {
namespace {

bool holds_weights(const Catalog& catalog) {
  std::size_t named = 0, others = 0;
  for (const Tensor& tensor : catalog.tensors)
    if (tensor.auxiliary.empty() && !tensor.view.shape.empty())
      ++(is_weight(tensor) ? named : others);
  return named > others;
}

// By its layout, or by names that mean results of modules.
bool holds_results(const Catalog& catalog) {
  const auto is_result = [](const Tensor& tensor) {
    const bool known = tensor.place.known && tensor.place.step != Role::other;
    return tensor.place.parameter == Param::none && (known || tensor.place.staged);
  };
  const auto count = std::ranges::count_if(catalog.tensors, is_result);
  return !catalog.layout.empty() || 2 * static_cast<std::size_t>(count) >= catalog.tensors.size();
}

// Whether something was dumped of a module and of one inside it: "layer.0" and "layer.0.dense". A
// module has no parameter of its own name, so that no checkpoint has both.
bool holds_modules(const Catalog& catalog) {
  std::set<std::string_view> names;
  for (const Tensor& tensor : catalog.tensors) names.insert(tensor.name);
  return std::ranges::any_of(names, [&](std::string_view name) {
    for (std::size_t end = name.rfind('.'); end != std::string_view::npos && end > 0;
         end = name.rfind('.', end - 1))
      if (names.contains(name.substr(0, end))) return true;
    return false;
  });
}

}  // namespace

bool are_dumps(const Catalog& a, const Catalog& b) {
  if (are_checkpoints(a, b)) return false;
  // What is compared with results of modules is one, whatever its name.
  return (holds_results(a) && holds_results(b)) || holds_modules(a) || holds_modules(b);
}

bool is_weight(const Tensor& tensor) {
  static constexpr std::string_view kLeaves[] = {"weight", "bias",  "kernel", "gamma",
                                                 "beta",   "scale", "qweight"};
  if (tensor.place.parameter != Param::none) return true;
  const std::string_view name = tensor.pairing_name();
  const std::string_view leaf = name.substr(name.find_last_of("./:") + 1);
  // torch.nn.LSTM and its like count their layers in the names of their parameters.
  static constexpr std::string_view kRecurrent[] = {"weight_ih_l", "weight_hh_l", "bias_ih_l",
                                                    "bias_hh_l"};
  const auto starts = [leaf](std::string_view start) { return leaf.starts_with(start); };
  // Keras 3 numbers the variables of a layer: "layers/dense/vars/0".
  if (all_digits(leaf) && name.substr(0, name.size() - leaf.size()).ends_with("vars/")) return true;
  return std::ranges::find(kLeaves, leaf) != std::end(kLeaves) ||
         std::ranges::any_of(kRecurrent, starts) || module_of_flat(std::string(leaf)).has_value();
}

bool are_checkpoints(const Catalog& a, const Catalog& b) {
  return holds_weights(a) || holds_weights(b);
}

}  // namespace tensordiff
