// Where in a model a tensor belongs, as its name tells: the layer, what is computed there, which
// parameter of it, and so on. naming/ reads it from the name once; every later stage uses it.

#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>

namespace tensordiff {

// What a part of a model computes, or the part that a weight belongs to. In the order in which a
// transformer computes them, which is the order of steps where a file has kept none.
enum class Role : uint8_t {
  embedding,  // Of tokens.
  positions,
  segments,
  patches,
  class_token,
  embedding_norm,
  layer_input,
  attention_norm,
  query,  // Query, key and value stand side by side wherever they occur: see naming/convention.h.
  key,
  value,
  fused_qkv,
  query_norm,
  key_norm,
  value_norm,
  query_final,  // After RoPE and norms: what attention reads.
  key_final,
  value_final,
  query_down,  // Attention with low ranks (DeepSeek): down to the rank, a norm, and up again.
  query_down_norm,
  query_up,
  kv_down,
  kv_down_norm,
  kv_up,
  relative_bias,
  attention_heads,  // Heads put together, before the output projection.
  setting,          // A number of the configuration that was dumped along.
  attention_output,
  attention,  // The module as a whole.
  post_attention_norm,
  middle,  // The stream between attention and MLP.
  cross_norm,
  cross_query,
  cross_key,
  cross_value,
  cross_output,
  ssm_in,  // State space models (Mamba).
  ssm_conv,
  ssm_x,
  ssm_dt,
  ssm_a,
  ssm_d,
  ssm_out,
  mlp_norm,
  router,
  gate,
  up,
  gate_up,
  activation,
  gated,       // act(gate) * up: what the last projection of a gated MLP reads.
  mlp_output,  // The last projection of an MLP.
  mlp,         // The module as a whole.
  post_mlp_norm,
  branch_norm,  // Behind attention or MLP; which of them is not told.
  layer_output,
  pooler,
  final_norm,
  logits,
  other,  // Not known.
};
inline constexpr std::size_t kRoles = static_cast<std::size_t>(Role::other) + 1;

// "attention norm", as in a sentence; `other` is "step".
std::string_view name_of(Role role);
bool is_norm(Role role);

enum class Param : uint8_t {
  none,  // What a module puts out.
  weight,
  bias,
  running_mean,
  running_var,
  batches,  // How many batches a norm has seen.
  packed,   // Several elements of a weight in one integer.
  scale,    // Of a quantized weight.
  zero_point,
};
std::string_view name_of(Param parameter);  // "" for none.

// A part of a model that has layers of its own.
enum class Tower : uint8_t { none, encoder, decoder, vision };
std::string_view name_of(Tower tower);  // "" for none.

struct Place {
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kAll = -2;     // All experts, or all layers, in one tensor.
  static constexpr int32_t kShared = -3;  // The expert that every token sees.

  // Where a number stands in the name, to write another in its place.
  struct Digits {
    uint32_t first = 0, size = 0;
    bool operator==(const Digits&) const = default;
  };

  int32_t layer = kNone;
  int32_t expert = kNone;
  int32_t head = kNone;
  int32_t rank = kNone;  // Of tensor or data parallel processes.
  int32_t call = kNone;  // Which call of the module: "q_proj@2".
  int32_t pass = kNone;  // Which run of the model: "Pass00003", "step_3".
  Role step = Role::other;
  Param parameter = Param::none;
  Tower tower = Tower::none;
  bool read = false;  // Somebody has read the name.
  // Every word of the name is understood. False: a step is told by the last words alone.
  bool known = false;
  // The name calls the number a layer; else it is the first number in the path.
  bool layer_named = false;
  // The name has the form {layer}_{stage}: what stands behind the "_" is a stage of any kind.
  bool staged = false;
  Digits layer_at = {};
  Digits count_at = {};  // Of the pass, or of the call.
  // The row of a convention that gave the step: it tells steps apart that a few models name alike.
  // It lasts as long as the program.
  std::string_view spelling = {};

  std::optional<int64_t> layer_number() const {
    return layer >= 0 ? std::optional<int64_t>(layer) : std::nullopt;
  }
  bool operator==(const Place&) const = default;
};

}  // namespace tensordiff
