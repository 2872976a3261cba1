// What config.json beside a model says of its shape, in the words of the usual trainers.

#pragma once

#include <optional>

#include "base/json.h"

namespace tensordiff {

struct ModelConfig {
  std::optional<double> layers, heads, kv_heads, head_dim, hidden, context;

  // Elements that attention keeps for each token: keys and values of all layers.
  std::optional<double> kv_elements_per_token() const;
};

// Numbers that are missing or absurd are left out.
ModelConfig read_config(const Json& config);

}  // namespace tensordiff
