// Pairs the parts of a tensor in which one side has fused what the other keeps apart: query, key
// and value, gate and up, all the experts of a layer, all layers. One row for each part.

#include <numeric>
#include <optional>
#include <set>

#include "match/matcher.h"
#include "match/meaning.h"
#include "tensor/shards.h"

namespace tensordiff {
namespace {

struct Fusion {
  Role whole;
  std::vector<std::pair<Role, std::string_view>> parts;  // As they are stored, with labels.
};

const std::vector<Fusion>& fusions() {
  static const std::vector<Fusion> kFusions = {
      {Role::fused_qkv, {{Role::query, "q"}, {Role::key, "k"}, {Role::value, "v"}}},
      {Role::gate_up, {{Role::gate, "gate"}, {Role::up, "up"}}},
      // Megatron's linear_fc1 of a gated model.
      {Role::up, {{Role::gate, "gate"}, {Role::up, "up"}}},
  };
  return kFusions;
}

using ByMeaning = std::map<Meaning, std::size_t>;

// The tensors that one fused tensor could hold, with what to call each.
struct Parts {
  std::vector<std::size_t> tensors;
  std::vector<std::string> labels;
  std::set<std::size_t> sizes_only = {};  // Places of tensors that tell how large a part is.
};

// What has the size of a part where the part itself is not there: llama.cpp keeps query and key
// behind RoPE only, and value beside them.
std::optional<Role> of_same_size(Role role) {
  if (role < Role::query || role > Role::value) return std::nullopt;
  const auto behind = static_cast<std::size_t>(role) - static_cast<std::size_t>(Role::query);
  return static_cast<Role>(static_cast<std::size_t>(Role::query_final) + behind);
}

Parts parts_by_role(const ByMeaning& separate, const ByMeaning& all, const Meaning& whole,
                    const Fusion& fusion) {
  Parts parts;
  for (const auto& [role, label] : fusion.parts) {
    Meaning part = whole;
    part.role = role;
    auto found = separate.find(part);
    if (found == separate.end()) {
      const std::optional<Role> other = of_same_size(role);
      if (!other) return {};
      part.role = *other;
      found = all.find(part);
      if (found == all.end()) return {};
      parts.sizes_only.insert(parts.tensors.size());
    }
    parts.tensors.push_back(found->second);
    parts.labels.emplace_back(label);
  }
  return parts.sizes_only.size() < parts.tensors.size() ? parts : Parts();
}

// One part for each number that takes the place of "all": of experts or of layers.
Parts parts_by_number(const ByMeaning& separate, const Meaning& whole, int32_t Meaning::*number) {
  Parts parts;
  Meaning part = whole;
  for (part.*number = 0;; ++(part.*number)) {
    const auto found = separate.find(part);
    if (found == separate.end()) break;
    parts.tensors.push_back(found->second);
    parts.labels.push_back(std::to_string(part.*number));
  }
  return parts;
}

// All experts, each with its gate and up: "0.gate", "0.up", "1.gate" and so on.
Parts parts_of_experts(const ByMeaning& separate, const Meaning& whole, const Fusion& fusion) {
  Parts parts;
  Meaning expert = whole;
  for (expert.expert = 0;; ++expert.expert) {
    const Parts of_one = parts_by_role(separate, separate, expert, fusion);
    if (of_one.tensors.empty()) break;
    for (std::size_t i = 0; i < of_one.tensors.size(); ++i) {
      parts.tensors.push_back(of_one.tensors[i]);
      parts.labels.push_back(fmt::format("{}.{}", expert.expert, of_one.labels[i]));
    }
  }
  return parts;
}

// Of all ranks, copies once: few heads of keys may be on several.
uint64_t elements_of(const Tensor& tensor) {
  uint64_t sum = 0;
  for (const View& shard : distinct_shards(tensor)) sum += shard.elements();
  return sum;
}

class Fused {
 public:
  // `a_is_whole`: the fused tensors are of a.
  Fused(const Catalog& whole, const Catalog& separate, bool a_is_whole, Proposal& proposal)
      : whole_(whole), separate_(separate), a_is_whole_(a_is_whole), proposal_(proposal) {}

  void find(const ByMeaning& wholes, const ByMeaning& separate, const ByMeaning& all) {
    constexpr int32_t kAll = Place::kAll;
    for (const auto& [meaning, tensor] : wholes) {
      if (meaning.expert == kAll &&
          add(tensor, parts_by_number(separate, meaning, &Meaning::expert)))
        continue;
      if (meaning.layer == kAll && add(tensor, parts_by_number(separate, meaning, &Meaning::layer)))
        continue;
      for (const Fusion& fusion : fusions()) {
        if (meaning.role != fusion.whole) continue;
        if (add(tensor, parts_by_role(separate, all, meaning, fusion))) break;
        if (meaning.expert == kAll && add(tensor, parts_of_experts(separate, meaning, fusion)))
          break;
      }
    }
  }

 private:
  bool add(std::size_t whole, const Parts& parts) {
    if (parts.tensors.size() < 2) return false;
    Section section;
    uint64_t sum = 0;
    bool sharded = !whole_.tensors[whole].shards.empty();
    for (const std::size_t part : parts.tensors) {
      const Tensor& tensor = separate_.tensors[part];
      section.elements.push_back(elements_of(tensor));
      sum += section.elements.back();
      sharded |= !tensor.shards.empty();
    }
    if (!sharded && sum != whole_.tensors[whole].elements()) return false;
    for (std::size_t i = 0; i < parts.tensors.size(); ++i) {
      if (parts.sizes_only.contains(i)) continue;
      section.index = i;
      section.label = parts.labels[i];
      Pair pair;
      pair.a = a_is_whole_ ? whole : parts.tensors[i];
      pair.b = a_is_whole_ ? parts.tensors[i] : whole;
      (a_is_whole_ ? pair.section_a : pair.section_b) = section;
      proposal_.pairs.push_back(std::move(pair));
    }
    return true;
  }

  const Catalog& whole_;
  const Catalog& separate_;
  bool a_is_whole_;
  Proposal& proposal_;
};

ByMeaning all_of(std::span<const Place> places) {
  std::vector<std::size_t> all(places.size());
  std::iota(all.begin(), all.end(), std::size_t{0});
  return meanings_of(places, all).tensors;
}

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  const ByMeaning a = meanings_of(input.side_a.places, input.free_a).tensors;
  const ByMeaning b = meanings_of(input.side_b.places, input.free_b).tensors;
  Fused(input.a, input.b, true, proposal).find(a, b, all_of(input.side_b.places));
  Fused(input.b, input.a, false, proposal).find(b, a, all_of(input.side_a.places));
  return proposal;
}

}  // namespace

constinit const Matcher matchers::fused = {
    .name = "fused",
    .summary = "one side holds in one tensor what the other keeps apart",
    .propose = propose,
};

}  // namespace tensordiff
