// What is known of a model beside its dumps: its config.json.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tensordiff {

struct ModelFacts {
  std::optional<uint64_t> heads, kv_heads, head_dim;
  std::optional<uint64_t> window;      // How many tokens attention sees.
  std::optional<double> rope_theta;    // The base of RoPE.
  std::optional<double> norm_epsilon;  // Of LayerNorm or RMSNorm.
  std::optional<double> score_scale;   // What attention scores are multiplied by.
  std::optional<double> score_cap;     // Where attention scores are capped.
  std::string activation;              // "silu", "gelu_new"; empty: not said.
};

// Reads the keys that Hugging Face models use; what is not there stays unknown. An error says what
// is no JSON, or which number makes no sense.
Result<ModelFacts> parse_model_facts(std::string_view text);

}  // namespace tensordiff
