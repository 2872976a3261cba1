#include "match/checkpoint.h"

#include <algorithm>

#include "match/canonical.h"

namespace tensordiff {
namespace {

bool names_weight(const std::string& name) {
  static constexpr std::string_view kLeaves[] = {"weight", "bias",  "kernel", "gamma",
                                                 "beta",   "scale", "qweight"};
  const std::string_view leaf = std::string_view(name).substr(name.find_last_of("./:") + 1);
  if (std::ranges::find(kLeaves, leaf) != std::end(kLeaves)) return true;
  const auto meaning = canonical_name(name);
  return meaning && !meaning->parameter.empty();
}

bool holds_weights(const Catalog& catalog) {
  const auto named = std::ranges::count_if(catalog.tensors, names_weight, &Tensor::name);
  return 2 * static_cast<std::size_t>(named) > catalog.tensors.size();
}

}  // namespace

bool are_checkpoints(const Catalog& a, const Catalog& b) {
  return holds_weights(a) || holds_weights(b);
}

}  // namespace tensordiff
