// The shape of a model, as its config.json, the keys of a GGUF or the metadata of a file state it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "tensor/catalog.h"

namespace tensordiff {

struct ModelConfig {
  std::optional<uint64_t> layers, hidden, context;
  std::optional<uint64_t> heads, kv_heads, head_dim;
  std::optional<uint64_t> window;      // How many tokens attention sees.
  std::optional<double> rope_theta;    // The base of RoPE.
  std::optional<double> norm_epsilon;  // Of LayerNorm or RMSNorm.
  std::optional<double> score_scale;   // What attention scores are multiplied by.
  std::optional<double> score_cap;     // Where attention scores are capped.
  std::string activation;              // "silu", "gelu_new"; empty: not said.

  // Elements that attention keeps for each token: keys and values of all layers.
  std::optional<double> kv_elements_per_token() const;
};

// A config.json that the user names. What is missing stays unknown; an error says why it is not
// JSON, or which number makes no sense.
Result<ModelConfig> parse_model_config(std::string_view json);

// What the metadata of an opened model says. Numbers that make no sense are left out: an input may
// say anything about itself.
ModelConfig model_config_of(const Catalog& catalog);

}  // namespace tensordiff
