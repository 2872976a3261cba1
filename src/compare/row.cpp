#include "compare/row.h"

#include <fmt/format.h>

namespace tensordiff {

TensorId id_of(const Tensor& tensor, const std::optional<Section>& section) {
  std::string name = tensor.name;
  if (section) name += fmt::format("[{}]", section->label);
  return {std::move(name), tensor.view.dtype, tensor.view.shape,
          tensor.fault,    tensor.place,      tensor.made_from};
}

}  // namespace tensordiff
