#include "diagnose/model_facts.h"

#include <cmath>
#include <initializer_list>

#include "base/json.h"

namespace tensordiff {
namespace {

constexpr uint64_t kSizeMax = uint64_t{1} << 32;

using Keys = std::initializer_list<std::string_view>;

// The first of the keys that is there and not null: models spell one thing in several ways.
const Json& first_of(const Json& config, Keys keys) {
  for (const std::string_view key : keys)
    if (!config[key].is_null()) return config[key];
  return config[std::string_view()];
}

Result<std::optional<uint64_t>> size_in(const Json& config, Keys keys) {
  const Json& found = first_of(config, keys);
  if (found.is_null()) return std::optional<uint64_t>();
  const std::optional<uint64_t> size = found.u64();
  if (!size || *size == 0 || *size > kSizeMax) return Error("'{}' is no size", *keys.begin());
  return size;
}

Result<std::optional<double>> number_in(const Json& config, Keys keys) {
  const Json& found = first_of(config, keys);
  if (found.is_null()) return std::optional<double>();
  const std::optional<double> number = found.number();
  if (!number || !(*number > 0) || !std::isfinite(*number))
    return Error("'{}' is no number above 0", *keys.begin());
  return number;
}

}  // namespace

Result<ModelFacts> parse_model_facts(std::string_view text) {
  const Json whole = TRY(Json::parse(text));
  if (!whole.is_object()) return Error("a configuration is a JSON object");
  // Models of text and images keep that of the text apart.
  const Json& config = whole["text_config"].is_object() ? whole["text_config"] : whole;
  ModelFacts facts;
  facts.heads = TRY(size_in(config, {"num_attention_heads", "n_head", "n_heads"}));
  facts.kv_heads = TRY(size_in(config, {"num_key_value_heads", "num_kv_heads", "n_kv_heads"}));
  facts.head_dim = TRY(size_in(config, {"head_dim"}));
  const auto width = TRY(size_in(config, {"hidden_size", "n_embd", "dim"}));
  if (!facts.head_dim && facts.heads && width && *width % *facts.heads == 0)
    facts.head_dim = *width / *facts.heads;
  facts.window = TRY(size_in(config, {"sliding_window"}));
  facts.rope_theta = TRY(number_in(config, {"rope_theta", "rotary_emb_base"}));
  if (!facts.rope_theta)
    facts.rope_theta = TRY(number_in(config["rope_parameters"], {"rope_theta"}));
  facts.norm_epsilon =
      TRY(number_in(config, {"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps", "norm_eps"}));
  if (const auto scalar = TRY(number_in(config, {"query_pre_attn_scalar"})))
    facts.score_scale = 1 / std::sqrt(*scalar);
  if (const auto factor = TRY(number_in(config, {"attention_multiplier"})))
    facts.score_scale = factor;
  facts.score_cap = TRY(number_in(config, {"attn_logit_softcapping"}));
  facts.activation =
      first_of(config, {"hidden_activation", "hidden_act", "activation_function"}).string();
  return facts;
}

}  // namespace tensordiff
