// Some spellings mean one thing in one family of models and another in the next. What else there is
// tells which:
//   - "post_attention_layernorm" stands before the MLP, unless another norm stands there or behind
//     the MLP (Gemma 2, OLMo 2); beside "post_self_attn_layernorm" it does in any case (GLM-4);
//   - "mlp.gate" chooses experts where there are any;
//   - "layer.1.layer_norm" of T5 is that of cross attention in the decoder, of the MLP elsewhere;
//   - "norm2" beside "norm3" is that of cross attention (PyTorch's decoder layers, DETR,
//   diffusers);
//   - "attn_norm" beside "attn_norm_2" is that of the MLP (GGUF of Falcon, where both read the
//   same);
//   - "mlp.act_fn" beside a fused gate_up_proj is act(gate) * up (vLLM, sglang);
//   - a name without a parameter is a weight where most are: "cls_token", "experts.down_proj".

#include <algorithm>
#include <bitset>

#include "base/parallel.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

constexpr std::size_t kTowers = static_cast<std::size_t>(Tower::vision) + 1;

bool is_after_attention(const Place& place) {
  return place.step == Role::mlp_norm && place.spelling.starts_with("post.");
}

bool is_after_self_attention(const Place& place) {
  return is_after_attention(place) && place.spelling.starts_with("post.self.attn.");
}

bool is_gate_of_mlp(const Place& place) {
  return place.spelling == "mlp.gate" || place.spelling == "feed.forward.gate";
}

// "norm2", "layer_norm2", "norm_2": a norm of a layer by its number alone.
bool is_norm(const Place& place, char number) {
  std::string_view spelling = place.spelling;
  if (spelling.starts_with("layer.")) spelling.remove_prefix(6);
  return spelling.starts_with("norm") && spelling.ends_with(number) && spelling.size() <= 6;
}

class Dialect {
 public:
  void see(const Place& place) {
    if (!is_after_attention(place)) roles_.set(static_cast<std::size_t>(place.step));
    (is_after_self_attention(place) ? after_self_ : after_) |= is_after_attention(place);
    if (!place.known) return;
    c_attn_ |= place.spelling == "attn.c.attn";
    second_ |= place.spelling == "attn.norm.2";
    if (is_norm(place, '3')) third_.set(static_cast<std::size_t>(place.tower));
    ++known_;
    parameters_ += place.parameter != Param::none;
    experts_ |= place.expert != Place::kNone;
  }

  void settle(Place& place) const {
    const bool both = after_ && after_self_;
    if (both ? is_after_self_attention(place)
             : is_after_attention(place) && (has(Role::mlp_norm) || has(Role::post_mlp_norm)))
      place.step = Role::post_attention_norm;
    if (place.spelling == "layer.1.layer.norm" && place.tower == Tower::decoder)
      place.step = Role::cross_norm;
    if (is_norm(place, '2') && third_[static_cast<std::size_t>(place.tower)])
      place.step = Role::cross_norm;
    if (place.spelling == "attn.norm" && second_) place.step = Role::mlp_norm;
    if (is_gate_of_mlp(place) && experts_ && place.expert == Place::kNone)
      place.step = Role::router;
    if (place.spelling == "mlp.act.fn" && has(Role::gate_up)) place.step = Role::gated;
    // LitGPT's fused projection; where GPT-2's has its own name, what attention itself gives.
    if (place.spelling == "attn.attn" && c_attn_) place.step = Role::attention_heads;
    if (place.known && place.parameter == Param::none && 2 * parameters_ > known_)
      place.parameter = Param::weight;
  }

 private:
  bool has(Role role) const { return roles_[static_cast<std::size_t>(role)]; }

  std::size_t known_ = 0, parameters_ = 0;
  bool experts_ = false, after_ = false, after_self_ = false, c_attn_ = false;
  bool second_ = false;              // There is an "attn_norm_2".
  std::bitset<kTowers> third_ = {};  // By tower: there is a "norm3".
  std::bitset<kRoles> roles_;
};

// `names` and `places` give each by its index.
template <class Name, class PlaceOf>
void read_all(std::size_t count, const Name& name, const PlaceOf& place) {
  for_each_index(count, [&](std::size_t i) { place(i) = read_place(name(i)); });
  Dialect dialect;
  for (std::size_t i = 0; i < count; ++i) dialect.see(place(i));
  for (std::size_t i = 0; i < count; ++i) dialect.settle(place(i));
}

}  // namespace

std::vector<Place> read_places(std::span<const std::string> names) {
  std::vector<Place> places(names.size());
  read_all(
      names.size(), [&](std::size_t i) -> const std::string& { return names[i]; },
      [&](std::size_t i) -> Place& { return places[i]; });
  return places;
}

void read_places(Catalog& catalog) {
  std::vector<Tensor>& tensors = catalog.tensors;
  read_all(
      tensors.size(),
      [&](std::size_t i) -> const std::string& { return tensors[i].pairing_name(); },
      [&](std::size_t i) -> Place& { return tensors[i].place; });
}

void read_missing_places(Catalog& catalog) {
  if (std::ranges::any_of(catalog.tensors, [](const Tensor& each) { return !each.place.read; }))
    read_places(catalog);
}

}  // namespace tensordiff
