#include "match/auxiliary.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "match/checkpoint.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// Where a word has to stand in a name: as any of its parts (between '.', '/' or ':') or as the
// last.
enum class Where { any, last };

struct Row {
  std::string_view kind;
  Where where;
  std::string_view words;
};

// Names that frameworks give to what is no weight.
constexpr Row kRows[] = {
    {"optimizer state", Where::any,
     "optimizer optimizers optimizer_state optimizer_states optimizer_state_dict optim opt_state "
     "param_groups lr_scheduler lr_schedulers opt_param_scheduler scheduler grad_scaler scaler "
     "amp_scaler loss_scaler loss_scale callbacks rng_state rng_states random_rng_state "
     "cuda_rng_state np_rng_state torch_rng_state rng_tracker_states"},
    {"optimizer state", Where::last,
     "exp_avg exp_avg_sq max_exp_avg_sq momentum_buffer adam_m adam_v adam adam_1 momentum "
     "exponential_moving_average"},
    {"counter", Where::last,
     "num_batches_tracked global_step num_updates n_averaged num_tracked step iteration "
     "iterations epoch version _version checkpoint_version dp_world_size mp_world_size "
     "tp_world_size pp_world_size save_counter"},
    {"position table", Where::last,
     "position_ids token_type_ids relative_position_index relative_coords_table inv_freq "
     "original_inv_freq freqs freqs_cis freqs_cos freqs_sin cos_cached sin_cached rope_freqs "
     "rope_cache"},
    {"position table", Where::any, "rope rope_freqs rotary_emb rotary_pos_emb"},
    {"mask", Where::last, "attn_mask attention_mask causal_mask mask masked_bias tril"},
    {"quantization parameter", Where::last,
     "input_scale output_scale k_scale v_scale q_scale weight_format input_zero_point "
     "input_global_scale pre_quant_scale activation_post_process"},
};

// Whether one of the words of a row, separated by spaces, is this one.
bool has_word(std::string_view words, std::string_view word) {
  for (std::size_t at = words.find(word); at != std::string_view::npos;
       at = words.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || words[at - 1] == ' ') && (end == words.size() || words[end] == ' '))
      return true;
  }
  return false;
}

// The parts of a name, from the last on: "0" of TensorFlow's "kernel:0" is none.
std::vector<std::string_view> parts_of(std::string_view name) {
  if (name.ends_with(":0")) name.remove_suffix(2);
  std::vector<std::string_view> parts;
  while (!name.empty()) {
    const std::size_t at = name.find_last_of("./:") + 1;
    if (at < name.size()) parts.push_back(name.substr(at));
    name = name.substr(0, at == 0 ? 0 : at - 1);
  }
  return parts;
}

std::string_view kind_by_name(std::string_view name) {
  const std::string text = lower(name);
  const std::vector<std::string_view> parts = parts_of(text);
  for (const Row& row : kRows) {
    const std::size_t count =
        row.where == Where::last ? std::min<std::size_t>(1, parts.size()) : parts.size();
    for (std::size_t i = 0; i < count; ++i) {
      // T5X keeps the weights beside the state: "optimizer/target/encoder".
      if (i > 0 && parts[i] == "optimizer" && parts[i - 1] == "target") continue;
      if (has_word(row.words, parts[i])) return row.kind;
    }
  }
  return {};
}

// GPT-2 and its like keep the triangle of what a token may see as "attn.bias": [1, 1, n, n].
bool is_triangle(const Tensor& tensor) {
  const Shape& shape = tensor.view.shape;
  return shape.size() == 4 && shape[0] == 1 && shape[1] == 1 && shape[2] == shape[3] &&
         tensor.name.ends_with("bias");
}

// Integers count or point at something, and numbers of Python (float64 without axes) set something.
// Those of a byte, and matrices of 32 bits, may be weights in a packing that is not known.
std::string_view kind_by_type(const Tensor& tensor) {
  const DType dtype = tensor.view.dtype;
  const std::size_t rank = tensor.view.shape.size();
  if (dtype == DType::boolean) return rank == 0 ? "setting" : "mask";
  if (rank == 0 && (is_integer(dtype) || dtype == DType::f64)) return "setting";
  if (dtype == DType::i64 || dtype == DType::u64) return "integers";
  if (is_integer(dtype) && rank <= 1) return "integers";
  return {};
}

// As a mask of nothing does; weights that an exporter folded into constants are not alike.
bool holds_one_value(const Tensor& tensor) {
  constexpr uint64_t kReadMax = 1 << 16;  // A mask of 256 tokens.
  const uint64_t count = tensor.elements();
  if (count <= 1) return true;
  if (count > kReadMax || !tensor.shards.empty()) return false;
  const Result<Reader> reader = Reader::open(tensor.view);
  if (!reader.ok()) return false;
  std::vector<double> values(count);
  reader.value().values(0, count, values.data());
  return std::ranges::all_of(values, [&](double value) { return value == values[0]; });
}

// Exporters of graphs write each number of the code as a node of its own: "/layer.0/Constant_5".
bool is_graph_number(const Tensor& tensor) {
  const std::string text = lower(tensor.pairing_name());
  const auto is_constant = [](std::string_view part) {
    return part.starts_with("constant") &&
           part.substr(8).find_first_not_of("_0123456789") == std::string_view::npos;
  };
  return std::ranges::any_of(parts_of(text), is_constant) && holds_one_value(tensor);
}

std::string_view kind_of(const Tensor& tensor) {
  if (const std::string_view kind = kind_by_name(tensor.pairing_name()); !kind.empty()) return kind;
  if (!tensor.fault.empty()) return {};
  if (is_graph_number(tensor)) return "graph constant";
  return is_triangle(tensor) ? "mask" : kind_by_type(tensor);
}

}  // namespace

void mark_auxiliary(Catalog& a, Catalog& b) {
  if (!are_checkpoints(a, b)) return;
  for (Catalog* side : {&a, &b})
    for (Tensor& tensor : side->tensors)
      if (tensor.auxiliary.empty() && tensor.made_from.empty()) tensor.auxiliary = kind_of(tensor);
}

}  // namespace tensordiff
