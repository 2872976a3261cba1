#include "match/by_name.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/side.h"
#include "base/text.h"

namespace tensordiff {
namespace {

// Wishes that cannot be met and are told one by one; the rest is counted.
constexpr std::size_t kToldMax = 8;

// One end of a pair: a tensor, or a part of one, as in "c_attn[q]".
struct End {
  std::size_t tensor = 0;
  std::string label = {};  // "" for all of it.
};

class Names {
 public:
  Names(const Catalog& catalog, const std::vector<std::size_t>& free) {
    for (const std::size_t tensor : free) by_name_.emplace(catalog.tensors[tensor].name, tensor);
  }

  std::optional<End> find(std::string_view name) const {
    if (const auto found = by_name_.find(name); found != by_name_.end()) return End{found->second};
    const std::size_t bracket = name.rfind('[');
    if (bracket == std::string_view::npos || !name.ends_with(']')) return std::nullopt;
    const auto found = by_name_.find(name.substr(0, bracket));
    if (found == by_name_.end()) return std::nullopt;
    return End{found->second, std::string(name.substr(bracket + 1, name.size() - bracket - 2))};
  }

 private:
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

// Where a part lies in its tensor by what it is called: q, k, v; gate, up; 0, 1, 2; 0.gate, 0.up.
std::pair<std::size_t, std::size_t> rank_of(std::string_view label) {
  constexpr std::array<std::string_view, 5> kOrder = {"q", "k", "v", "gate", "up"};
  std::size_t number = 0;
  const auto [after, error] = std::from_chars(label.data(), label.data() + label.size(), number);
  label.remove_prefix(static_cast<std::size_t>(after - label.data()));
  if (label.starts_with('.')) label.remove_prefix(1);
  return {number, static_cast<std::size_t>(std::ranges::find(kOrder, label) - kOrder.begin())};
}

// The parts of the tensors that are paired part by part.
class Sections {
 public:
  void add(const End& end, const Tensor& partner) {
    if (end.label.empty()) return;
    std::vector<Part>& parts = by_tensor_[end.tensor];
    parts.push_back({end.label, partner.elements()});
    std::ranges::stable_sort(parts, {}, [](const Part& part) { return rank_of(part.label); });
  }
  std::optional<Section> find(const End& end) const {
    if (end.label.empty()) return std::nullopt;
    Section section;
    section.label = end.label;
    for (const Part& part : by_tensor_.at(end.tensor)) {
      if (part.label == end.label) section.index = section.elements.size();
      section.elements.push_back(part.elements);
    }
    return section;
  }

 private:
  struct Part {
    std::string label;
    uint64_t elements;
  };
  std::map<std::size_t, std::vector<Part>> by_tensor_;
};

// Who is in a pair already. One of two may be, as a tied embedding is.
class Used {
 public:
  bool add(const End& end) { return end.label.empty() && !used_.insert(end.tensor).second; }

 private:
  std::unordered_set<std::size_t> used_;
};

struct Wish {
  End a, b;
  const NamePair* names = nullptr;
};

}  // namespace

Proposal pairs_by_name(const MatchInput& input, const std::vector<NamePair>& wanted) {
  Proposal proposal;
  if (wanted.empty()) return proposal;
  const Names of_a(input.a, input.free_a), of_b(input.b, input.free_b);
  Sections parts_a, parts_b;
  std::vector<Wish> wishes;
  std::size_t missing = 0;
  const auto miss = [&](const NamePair& names, char side) {
    if (missing++ < kToldMax)
      proposal.notes.push_back(
          fmt::format("the pair '{}' and '{}' was not made: {} has no such tensor, or it is in "
                      "another pair",
                      printable(names.a), printable(names.b), capital(side)));
  };
  for (const NamePair& names : wanted) {
    const std::optional<End> a = of_a.find(names.a), b = of_b.find(names.b);
    if (!a || !b) {
      miss(names, a ? 'b' : 'a');
      continue;
    }
    parts_a.add(*a, input.b.tensors[b->tensor]);
    parts_b.add(*b, input.a.tensors[a->tensor]);
    wishes.push_back({*a, *b, &names});
  }
  Used used_a, used_b;
  for (const Wish& wish : wishes) {
    Pair pair;
    pair.a = wish.a.tensor;
    pair.b = wish.b.tensor;
    pair.section_a = parts_a.find(wish.a);
    pair.section_b = parts_b.find(wish.b);
    const bool again_a = used_a.add(wish.a), again_b = used_b.add(wish.b);
    pair.tied = again_a != again_b;
    if (again_a && again_b) {
      miss(*wish.names, 'b');
      continue;
    }
    if (std::optional<LayerStage> place = input.layer_stage_a(wish.a.tensor)) {
      pair.layer = place->layer;
      pair.stage = std::move(place->stage);
    }
    proposal.pairs.push_back(std::move(pair));
  }
  if (missing > kToldMax)
    proposal.notes.push_back(fmt::format("{} more pairs were not made, for the same reason",
                                         human_count(missing - kToldMax)));
  return proposal;
}

}  // namespace tensordiff
