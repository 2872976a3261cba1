#include "analyze/model_config.h"

#include <initializer_list>
#include <string_view>

namespace tensordiff {
namespace {

constexpr double kSaneMax = 1e9;

std::optional<double> first_of(const Json& config, std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    const std::optional<double> number = config[key].number();
    if (number && *number >= 1 && *number <= kSaneMax) return number;
  }
  return std::nullopt;
}

}  // namespace

ModelConfig read_config(const Json& whole) {
  // Models that see and read keep the part that reads in a section of its own.
  const Json& text = whole["text_config"];
  const Json& config = text.is_object() ? text : whole;
  ModelConfig found;
  found.layers = first_of(config, {"num_hidden_layers", "n_layer", "num_layers", "n_layers"});
  found.heads = first_of(config, {"num_attention_heads", "n_head", "n_heads", "num_heads"});
  found.kv_heads = first_of(config, {"num_key_value_heads", "n_kv_heads", "num_kv_heads"});
  found.hidden = first_of(config, {"hidden_size", "n_embd", "d_model", "dim"});
  found.head_dim = first_of(config, {"head_dim", "d_kv"});
  found.context = first_of(
      config, {"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "seq_length"});
  if (!found.kv_heads) found.kv_heads = found.heads;
  if (!found.head_dim && found.hidden && found.heads) found.head_dim = *found.hidden / *found.heads;
  return found;
}

std::optional<double> ModelConfig::kv_elements_per_token() const {
  if (!layers || !kv_heads || !head_dim) return std::nullopt;
  return 2 * *layers * *kv_heads * *head_dim;
}

}  // namespace tensordiff
