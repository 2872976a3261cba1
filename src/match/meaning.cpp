// Some spellings mean one thing in one family of models and another in the next. What else a side
// has tells which:
//   - "post_attention_layernorm" stands before the mlp, unless another norm does (Gemma 2);
//   - a norm after attention or mlp is the only one there where none stands before (BERT);
//   - "mlp.gate" chooses experts where there are any;
//   - "mlp.gate" beside "mlp.fc" may be either half of a gated mlp: TensorRT-LLM has them the other
//     way round. Both halves have roles of their own, for conventions.cpp to ask the values;
//   - "layer.1.layer_norm" of T5 is that of cross attention in the decoder, of the mlp elsewhere;
//   - a name without a parameter is a weight where most are: "cls_token", "experts.down_proj".

#include "match/meaning.h"

#include <algorithm>
#include <set>

#include "base/parallel.h"

namespace tensordiff {
namespace {

bool is_after_attention(const ReadName& name) {
  return name.meaning.role == "mlp_norm" && name.spelling.starts_with("post.");
}

bool is_gate_of_mlp(std::string_view spelling) {
  return spelling == "mlp.gate" || spelling == "feed.forward.gate";
}

// How one side spells, by all of its names.
class Dialect {
 public:
  explicit Dialect(const std::vector<std::optional<ReadName>>& names) {
    std::size_t known = 0, parameters = 0;
    for (const std::optional<ReadName>& name : names) {
      if (!name) continue;
      ++known;
      parameters += !name->meaning.parameter.empty();
      experts_ |= name->meaning.expert != CanonicalName::kNone;
      fc_ |= name->spelling == "mlp.fc";
      gate_ |= is_gate_of_mlp(name->spelling);
      if (is_after_attention(*name))
        after_attention_ = true;
      else
        roles_.insert(name->meaning.role);
    }
    weights_ = 2 * parameters > known;
  }

  // The meaning beside the other names.
  CanonicalName settled(const ReadName& name, std::string_view full) const {
    CanonicalName meaning = name.meaning;
    std::string& role = meaning.role;
    if (is_after_attention(name) && roles_.contains("mlp_norm")) role = "post_attn_norm";
    if (role == "post_attn_norm" && !roles_.contains("attn_norm")) role = "attn_norm";
    if (role == "post_mlp_norm" && !roles_.contains("mlp_norm") && !after_attention_)
      role = "mlp_norm";
    if (name.spelling == "layer.1.layer.norm" && tower_of(full) == "decoder") role = "cross_norm";
    if (is_gate_of_mlp(name.spelling) && experts_ && meaning.expert == CanonicalName::kNone)
      role = "router";
    else if (fc_ && gate_ && name.spelling == "mlp.fc")
      role = kHalfFc;
    else if (fc_ && gate_ && is_gate_of_mlp(name.spelling))
      role = kHalfGate;
    if (weights_ && meaning.parameter.empty()) meaning.parameter = "weight";
    return meaning;
  }

  // Norms stand behind what they belong to, and there are none before.
  bool norms_behind() const { return has("post_attn_norm") && !has("attn_norm"); }
  bool after_attention() const { return after_attention_; }

 private:
  bool has(std::string_view role) const { return roles_.contains(role); }

  bool weights_ = false, experts_ = false, fc_ = false, gate_ = false, after_attention_ = false;
  std::set<std::string, std::less<>> roles_;
};

std::vector<std::optional<ReadName>> read_all(const std::vector<std::string>& names) {
  std::vector<std::optional<ReadName>> result(names.size());
  for_each_index(names.size(), [&](std::size_t i) { result[i] = read_name(names[i]); });
  return result;
}

}  // namespace

Meanings meanings_of(const std::vector<std::string>& names, const std::vector<std::size_t>& free) {
  Meanings result;
  if (free.empty()) return result;
  const std::vector<std::optional<ReadName>> read = read_all(names);
  const Dialect dialect(read);
  result.norms_behind = dialect.norms_behind();
  result.after_attention = dialect.after_attention();
  std::map<CanonicalName, std::vector<std::size_t>> by_meaning;
  for (const std::size_t tensor : free)
    if (read[tensor]) by_meaning[dialect.settled(*read[tensor], names[tensor])].push_back(tensor);

  for (const auto& [meaning, tensors] : by_meaning) {
    if (tensors.size() == 1) {
      result.tensors.emplace(meaning, tensors[0]);
      continue;
    }
    std::map<std::string_view, std::vector<std::size_t>> by_tower;
    for (const std::size_t tensor : tensors) by_tower[tower_of(names[tensor])].push_back(tensor);
    for (const auto& [tower, same] : by_tower) {
      CanonicalName full = meaning;
      full.tower = tower;
      if (same.size() == 1)
        result.tensors.emplace(std::move(full), same[0]);
      else
        result.ambiguous.emplace_back(same[0], same[1]);
    }
  }
  return result;
}

}  // namespace tensordiff
