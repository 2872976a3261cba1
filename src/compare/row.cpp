#include "compare/row.h"

#include <fmt/format.h>

namespace tensordiff {

namespace {

// Where its numbers stand is told of the name by which it is paired; here, of its own name.
Place place_in_name(const Tensor& tensor) {
  Place place = tensor.place;
  if (tensor.known_as.empty()) return place;
  const std::size_t at = tensor.name.find(tensor.known_as);
  for (Place::Digits* digits : {&place.layer_at, &place.count_at}) {
    if (at == std::string::npos) *digits = {};
    if (digits->size > 0) digits->first += static_cast<uint32_t>(at);
  }
  return place;
}

}  // namespace

TensorId id_of(const Tensor& tensor, const std::optional<Section>& section) {
  std::string name = tensor.name;
  if (section) name += fmt::format("[{}]", section->label);
  return {std::move(name), tensor.view.dtype,     tensor.view.shape,
          tensor.fault,    place_in_name(tensor), tensor.made_from};
}

}  // namespace tensordiff
