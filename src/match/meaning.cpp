// naming/ settles what a name means beside the others of its side. Two questions are left to those
// who compare two sides:
//   - a norm after attention or MLP is the only one there where none stands before (BERT): then it
//     means the same as the one before of the other side;
//   - "mlp.gate" beside "mlp.fc" may be either half of a gated MLP: TensorRT-LLM has them the other
//     way round. Both halves have meanings of their own, for conventions.cpp to ask the values.

#include "match/meaning.h"

#include <bitset>
#include <set>

#include "naming/numbered_name.h"

namespace tensordiff {
namespace {

bool is_gate_of_mlp(const Place& place) {
  return place.step == Role::gate &&
         (place.spelling == "mlp.gate" || place.spelling == "feed.forward.gate");
}

// How one side spells, by all of its names.
class Dialect {
 public:
  explicit Dialect(std::span<const Place> places) {
    for (const Place& place : places) {
      if (!place.known) continue;
      fc_ |= place.spelling == "mlp.fc";
      gate_ |= is_gate_of_mlp(place);
      const bool after = place.spelling.starts_with("post.") &&
                         (place.step == Role::mlp_norm || place.step == Role::post_attention_norm);
      after_attention_ |= after;
      if (!after || place.step == Role::post_attention_norm)
        roles_.set(static_cast<std::size_t>(place.step));
    }
  }

  Meaning meaning_of(const Place& place) const {
    Meaning meaning{.layer = place.layer_named || place.layer < 0 ? place.layer : Place::kNone,
                    .expert = place.expert,
                    .role = place.step,
                    .parameter = place.parameter};
    if (norms_behind() && meaning.role == Role::post_attention_norm)
      meaning.role = Role::attention_norm;
    if (meaning.role == Role::post_mlp_norm && !has(Role::mlp_norm) && !has_norm_before_mlp())
      meaning.role = Role::mlp_norm;
    if (fc_ && gate_ && place.spelling == "mlp.fc") meaning.half = Meaning::Half::fc;
    if (fc_ && gate_ && is_gate_of_mlp(place)) meaning.half = Meaning::Half::gate;
    if (meaning.half != Meaning::Half::none) meaning.role = Role::other;
    return meaning;
  }

  // Norms stand behind what they belong to, and there are none before.
  bool norms_behind() const { return has(Role::post_attention_norm) && !has(Role::attention_norm); }
  bool after_attention() const { return after_attention_; }

 private:
  bool has(Role role) const { return roles_[static_cast<std::size_t>(role)]; }
  // One named for standing behind attention, that stands before the MLP.
  bool has_norm_before_mlp() const { return after_attention_ && !has(Role::post_attention_norm); }

  bool fc_ = false, gate_ = false, after_attention_ = false;
  std::bitset<kRoles> roles_;
};

// Of kinds whose numbers the meaning does not keep apart, also those that happen to be alone.
void drop_counted_twice(std::span<const std::string> names, Meanings& meanings) {
  std::set<std::string> patterns;
  for (const auto& [one, other] : meanings.ambiguous) {
    std::string pattern = numbered_name(names[one]).pattern;
    if (pattern == numbered_name(names[other]).pattern) patterns.insert(std::move(pattern));
  }
  if (patterns.empty()) return;
  std::erase_if(meanings.tensors, [&](const auto& each) {
    return patterns.contains(numbered_name(names[each.second]).pattern);
  });
}

}  // namespace

Role twin_of(Role role) {
  switch (role) {
    case Role::attention:
      return Role::attention_output;
    case Role::attention_output:
      return Role::attention;
    case Role::mlp:
      return Role::mlp_output;
    case Role::mlp_output:
      return Role::mlp;
    default:
      return role;
  }
}

bool is_other_activation(const Place& a, const Place& b) {
  return a.step != b.step && (a.step == Role::gated || b.step == Role::gated);
}

bool may_mean_the_same(const Place& a, const Place& b) {
  const bool results = a.parameter == Param::none && b.parameter == Param::none;
  if (!results || !a.known || !b.known || a.step == b.step) return true;
  // What the first layer reads is the embedding, unless positions or a scale come between.
  const auto starts = [](const Place& place) {
    return place.step == Role::embedding || (place.step == Role::layer_input && place.layer == 0);
  };
  if (starts(a) && starts(b)) return true;
  return twin_of(a.step) == b.step || (is_norm(a.step) && is_norm(b.step));
}

Meanings meanings_of(std::span<const Place> places, const std::vector<std::size_t>& free,
                     std::span<const std::string> names) {
  Meanings result;
  if (free.empty()) return result;
  const Dialect dialect(places);
  result.norms_behind = dialect.norms_behind();
  result.after_attention = dialect.after_attention();
  std::map<Meaning, std::vector<std::size_t>> by_meaning;
  for (const std::size_t tensor : free)
    if (places[tensor].known) by_meaning[dialect.meaning_of(places[tensor])].push_back(tensor);

  for (const auto& [meaning, tensors] : by_meaning) {
    if (tensors.size() == 1) {
      result.tensors.emplace(meaning, tensors[0]);
      continue;
    }
    std::map<Tower, std::vector<std::size_t>> by_tower;
    for (const std::size_t tensor : tensors) by_tower[places[tensor].tower].push_back(tensor);
    for (const auto& [tower, same] : by_tower) {
      Meaning full = meaning;
      full.tower = tower;
      if (same.size() == 1)
        result.tensors.emplace(full, same[0]);
      else
        result.ambiguous.emplace_back(same[0], same[1]);
    }
  }
  if (!names.empty()) drop_counted_twice(names, result);
  return result;
}

}  // namespace tensordiff
