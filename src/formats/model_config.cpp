#include "formats/model_config.h"

#include <charconv>
#include <cmath>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "formats/config.h"

namespace tensordiff {
namespace {

// No model has so many of anything; larger numbers are mistakes.
constexpr uint64_t kSizeMax = uint64_t{1} << 32;

using Keys = std::initializer_list<std::string_view>;

// The settings that describe the language model, by the last word of their key.
using Words = std::map<std::string, std::string, std::less<>>;

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

// Reads numbers by their spellings, those of Hugging Face first, then those of GGUF.
class Reading {
 public:
  Reading(const Words& words, bool strict) : words_(words), strict_(strict) {}

  Result<std::optional<uint64_t>> size(Keys keys) const {
    const std::string* text = first_of(keys);
    if (!text) return std::optional<uint64_t>();
    std::optional<uint64_t> size = number_in<uint64_t>(*text);
    if (!size)
      if (const auto real = number_in<double>(*text);
          real && *real == std::floor(*real) && *real > 0 && *real <= double(kSizeMax))
        size = static_cast<uint64_t>(*real);
    if (size && *size > 0 && *size <= kSizeMax) return size;
    if (strict_) return Error("'{}' is not a size", *keys.begin());
    return std::optional<uint64_t>();
  }

  Result<std::optional<double>> number(Keys keys) const {
    const std::string* text = first_of(keys);
    if (!text) return std::optional<double>();
    const std::optional<double> number = number_in<double>(*text);
    if (number && *number > 0 && std::isfinite(*number)) return number;
    if (strict_) return Error("'{}' is not a number above 0", *keys.begin());
    return std::optional<double>();
  }

  std::string text(Keys keys) const {
    const std::string* text = first_of(keys);
    return text ? *text : "";
  }

 private:
  // The first of the spellings that is there and not null.
  const std::string* first_of(Keys keys) const {
    for (const std::string_view key : keys)
      if (const auto found = words_.find(key); found != words_.end() && found->second != "null")
        return &found->second;
    return nullptr;
  }

  const Words& words_;
  bool strict_;
};

Result<ModelConfig> read(const Words& words, bool strict) {
  const Reading from(words, strict);
  ModelConfig config;
  config.layers =
      TRY(from.size({"num_hidden_layers", "n_layer", "num_layers", "n_layers", "block_count"}));
  config.hidden = TRY(from.size({"hidden_size", "n_embd", "d_model", "dim", "embedding_length"}));
  config.context = TRY(from.size({"max_position_embeddings", "n_positions", "n_ctx", "max_seq_len",
                                  "seq_length", "context_length"}));
  config.heads = TRY(
      from.size({"num_attention_heads", "n_head", "n_heads", "num_heads", "head_count", "nhead"}));
  config.kv_heads =
      TRY(from.size({"num_key_value_heads", "num_kv_heads", "n_kv_heads", "head_count_kv"}));
  config.head_dim = TRY(from.size({"head_dim", "d_kv", "key_length"}));
  config.window = TRY(from.size({"sliding_window"}));
  config.rope_theta = TRY(from.number({"rope_theta", "rotary_emb_base", "freq_base"}));
  config.norm_epsilon = TRY(from.number({"rms_norm_eps", "layer_norm_epsilon", "layer_norm_eps",
                                         "norm_eps", "layer_norm_rms_epsilon"}));
  if (const auto scalar = TRY(from.number({"query_pre_attn_scalar"})))
    config.score_scale = 1 / std::sqrt(*scalar);
  if (const auto factor = TRY(from.number({"attention_multiplier"}))) config.score_scale = factor;
  config.score_cap = TRY(from.number({"attn_logit_softcapping"}));
  config.activation = from.text({"hidden_activation", "hidden_act", "activation_function"});
  if (!config.kv_heads) config.kv_heads = config.heads;
  if (!config.head_dim && config.heads && config.hidden && *config.hidden % *config.heads == 0)
    config.head_dim = *config.hidden / *config.heads;
  return config;
}

// Models of text and images keep the settings of the text in a section of their own.
constexpr std::string_view kText = "text_config.", kRope = "rope_parameters.";

// `settings` are those of config.json, sections joined with dots.
void add_settings(const std::vector<Metadata>& settings, Words& words) {
  bool sections = false;
  for (const Metadata& setting : settings) sections |= setting.key.starts_with(kText);
  for (const Metadata& setting : settings) {
    std::string_view key = setting.key;
    if (sections != key.starts_with(kText)) continue;
    if (sections) key.remove_prefix(kText.size());
    if (key.find('.') == std::string_view::npos) words[std::string(key)] = setting.value;
  }
  for (const Metadata& setting : settings) {
    std::string_view key = setting.key;
    if (sections && key.starts_with(kText)) key.remove_prefix(kText.size());
    if (key.starts_with(kRope)) words.emplace(key.substr(kRope.size()), setting.value);
  }
}

}  // namespace

std::optional<double> ModelConfig::kv_elements_per_token() const {
  if (!layers || !kv_heads || !head_dim) return std::nullopt;
  return 2.0 * static_cast<double>(*layers) * static_cast<double>(*kv_heads) *
         static_cast<double>(*head_dim);
}

Result<ModelConfig> parse_model_config(std::string_view json) {
  const Json whole = TRY(Json::parse(json));
  if (!whole.is_object()) return Error("a configuration is a JSON object");
  Words words;
  add_settings(settings_in(whole), words);
  return read(words, true);
}

ModelConfig model_config_of(const Catalog& catalog) {
  std::vector<Metadata> settings;
  std::string architecture;  // Of a GGUF: what the keys of its language model start with.
  for (const Metadata& entry : catalog.metadata) {
    if (entry.key.starts_with(kConfigPrefix))
      settings.push_back({entry.key.substr(kConfigPrefix.size()), entry.value});
    if (entry.key == "general.architecture") architecture = entry.value + ".";
  }
  Words words;
  add_settings(settings, words);
  for (const Metadata& entry : catalog.metadata) {
    if (entry.key.starts_with(kConfigPrefix) || !entry.key.starts_with(architecture)) continue;
    const std::size_t dot = entry.key.rfind('.');
    words.emplace(dot == std::string::npos ? entry.key : entry.key.substr(dot + 1), entry.value);
  }
  return read(words, false).value();
}

}  // namespace tensordiff
