// Pairs names that mean the same in the conventions of naming/.
//
// A meaning that two tensors of one side have pairs neither of them, and says so. Of names that
// mean the same in one convention and something else in another, the values choose.

#include <algorithm>

#include "base/side.h"
#include "base/text.h"
#include "match/fingerprint.h"
#include "match/matcher.h"
#include "match/meaning.h"

namespace tensordiff {
namespace {

constexpr double kAgreementMax = 0.5;  // As for shapes: what explains less than half explains none.
constexpr double kClearlyBetter = 4;

using ByMeaning = std::map<Meaning, std::size_t>;

Meanings meanings_in(const NamesOf& side, const std::vector<std::size_t>& free, char letter,
                     std::vector<std::string>& notes) {
  Meanings meanings = meanings_of(side.places, free, side.names);
  if (!meanings.ambiguous.empty()) {
    const auto [one, other] = meanings.ambiguous[0];
    notes.push_back(
        fmt::format("'{}' and '{}' of {} mean the same by convention{}: not paired by convention",
                    printable(side.names[one]), printable(side.names[other]), capital(letter),
                    meanings.ambiguous.size() > 1 ? ", and others too" : ""));
  }
  return meanings;
}

// Of all ranks.
uint64_t elements_held(const Tensor& tensor) {
  uint64_t sum = 0;
  for (const View& shard : tensor.shards) sum += shard.elements();
  return tensor.shards.empty() ? tensor.elements() : sum;
}

// The up projection of a gated model may hold the gate as well; that is for the fused strategy.
bool is_fused(const ByMeaning& other, const Meaning& meaning, const Tensor& tensor,
              const Tensor& partner) {
  Meaning gate = meaning;
  gate.role = Role::gate;
  return meaning.role == Role::up && other.contains(gate) &&
         elements_held(tensor) == 2 * elements_held(partner);
}

// A vector and a matrix are no one weight, nor are the biases beside them: the projection of an
// adaptive norm is called after the norm.
bool may_be_one(const MatchInput& input, const ByMeaning& of_a, const ByMeaning& of_b,
                Meaning meaning) {
  meaning.parameter = Param::weight;
  const auto a = of_a.find(meaning), b = of_b.find(meaning);
  if (a == of_a.end() || b == of_b.end()) return true;
  const Tensor &of_one = input.a.tensors[a->second], &of_other = input.b.tensors[b->second];
  const auto is_vector = [](const Tensor& tensor) {
    return std::ranges::count_if(tensor.view.shape, [](uint64_t size) { return size > 1; }) < 2;
  };
  return is_vector(of_one) == is_vector(of_other) ||
         elements_held(of_one) == elements_held(of_other);
}

bool agree(const Tensor& a, const Tensor& b) {
  return disagreement(fingerprint_of(a), fingerprint_of(b)) <= kAgreementMax;
}

// One side has the halves of a gated mlp as "gate" and "up", the other as "gate" and "fc", of which
// either may be the gate. What most layers say goes for all: a mistake in one is still a mistake.
class Halves {
 public:
  Halves(const MatchInput& input, bool open_is_a) : input_(input), open_is_a_(open_is_a) {}

  void pair(const ByMeaning& open, const ByMeaning& clear, Proposal& proposal) const {
    std::vector<Four> found;
    for (const auto& [meaning, fc] : open) {
      if (meaning.half != Meaning::Half::fc) continue;
      const auto with = [&, &known = meaning](const ByMeaning& side, Role role,
                                              Meaning::Half half = Meaning::Half::none) {
        Meaning name = known;
        name.role = role;
        name.half = half;
        const auto at = side.find(name);
        return at == side.end() ? std::nullopt : std::optional(at->second);
      };
      const auto gate = with(open, Role::other, Meaning::Half::gate),
                 clear_gate = with(clear, Role::gate), clear_up = with(clear, Role::up);
      if (gate && clear_gate && clear_up) found.push_back({fc, *gate, *clear_gate, *clear_up});
    }
    // Where the values say nothing, as TensorRT-LLM has it.
    const bool crossed = votes(found, true) >= votes(found, false);
    for (const Four& four : found) {
      add(four.fc, crossed ? four.clear_gate : four.clear_up, proposal);
      add(four.gate, crossed ? four.clear_up : four.clear_gate, proposal);
    }
  }

 private:
  struct Four {
    std::size_t fc, gate, clear_gate, clear_up;
  };

  std::ptrdiff_t votes(const std::vector<Four>& found, bool crossed) const {
    if (!input_.options.read_values) return 0;
    const Catalog& open = open_is_a_ ? input_.a : input_.b;
    const Catalog& clear = open_is_a_ ? input_.b : input_.a;
    return std::ranges::count_if(found, [&](const Four& four) {
      return agree(open.tensors[four.fc], clear.tensors[crossed ? four.clear_gate : four.clear_up]);
    });
  }

  void add(std::size_t open, std::size_t clear, Proposal& proposal) const {
    proposal.pairs.push_back({.a = open_is_a_ ? open : clear,
                              .b = open_is_a_ ? clear : open,
                              .layer = {},
                              .stage = {},
                              .matched_by = {}});
  }

  const MatchInput& input_;
  bool open_is_a_;
};

// Two norms of a layer that one side may call by each other's name. What most layers say goes for
// all, and a tie leaves them as the names have it.
class Norms {
 public:
  Norms(const MatchInput& input, const ByMeaning& a, const ByMeaning& b)
      : input_(input), a_(a), b_(b) {}

  void settle(Role one, Role other, Proposal& proposal) const {
    std::vector<Four> found;
    for (const auto& [meaning, a] : a_) {
      if (meaning.role != one) continue;
      Meaning twin = meaning;
      twin.role = other;
      const auto a_twin = a_.find(twin), b = b_.find(meaning), b_twin = b_.find(twin);
      if (a_twin != a_.end() && b != b_.end() && b_twin != b_.end())
        found.push_back({a, a_twin->second, b->second, b_twin->second});
    }
    const auto votes = [&](bool crossed) {
      return std::ranges::count_if(found, [&](const Four& four) { return fit(four, crossed); });
    };
    if (found.empty() || votes(true) <= votes(false)) return;
    std::map<std::size_t, std::size_t> partner;
    for (const Four& four : found) partner[four.a] = four.b_twin, partner[four.a_twin] = four.b;
    for (Pair& pair : proposal.pairs)
      if (const auto at = partner.find(pair.a); at != partner.end()) pair.b = at->second;
    proposal.notes.push_back(fmt::format(
        "'{}' is compared with '{}', and the other norms like that: the values of most layers "
        "agree "
        "only so",
        printable(input_.side_a.names[found[0].a]),
        printable(input_.side_b.names[found[0].b_twin])));
  }

 private:
  struct Four {
    std::size_t a, a_twin, b, b_twin;
  };

  // Both are much of the same stream, and more or less alike: one way must be clearly better.
  bool fit(const Four& four, bool crossed) const {
    const auto apart = [&](std::size_t a, std::size_t b) {
      return disagreement(fingerprint_of(input_.a.tensors[a]), fingerprint_of(input_.b.tensors[b]));
    };
    const auto [least, most] =
        std::minmax({apart(four.a, four.b), apart(four.a_twin, four.b_twin)});
    const auto [least_crossed, most_crossed] =
        std::minmax({apart(four.a, four.b_twin), apart(four.a_twin, four.b)});
    const double worst = crossed ? most_crossed : most, other = crossed ? least : least_crossed;
    return worst <= kAgreementMax && worst * kClearlyBetter < other;
  }

  const MatchInput& input_;
  const ByMeaning& a_;
  const ByMeaning& b_;
};

// What a module gives and what its last projection gives are the same: of two dumps one may have
// the one, the other the other. The input of a layer is the output of the one before.
std::vector<Meaning> twins_of(Meaning meaning) {
  if (meaning.parameter != Param::none || meaning.expert != Place::kNone) return {};
  const Role role = meaning.role;
  meaning.role = twin_of(role);
  if (meaning.role != role) return {meaning};
  if (role == Role::layer_input && meaning.layer > 0) {
    meaning.role = Role::layer_output;
    --meaning.layer;
    return {meaning};
  }
  if (role == Role::layer_output && meaning.layer >= 0) {
    meaning.role = Role::layer_input;
    ++meaning.layer;
    return {meaning};
  }
  return {};
}

void add_twins(const ByMeaning& of_a, const ByMeaning& of_b, Proposal& proposal) {
  for (const auto& [meaning, a] : of_a) {
    if (of_b.contains(meaning)) continue;
    for (const Meaning& twin : twins_of(meaning))
      if (const auto found = of_b.find(twin); found != of_b.end() && !of_a.contains(twin))
        proposal.pairs.push_back(
            {.a = a, .b = found->second, .layer = {}, .stage = {}, .matched_by = {}});
  }
}

// Megatron calls gate and up in one "linear_fc1", as it calls the up projection of a plain MLP: it
// is as large as what the other side calls both, and there is no gate beside it.
void add_both_halves(const MatchInput& input, const ByMeaning& of_a, const ByMeaning& of_b,
                     Proposal& proposal) {
  const auto with = [](const ByMeaning& side, Meaning meaning,
                       Role role) -> std::optional<std::size_t> {
    meaning.role = role;
    const auto at = side.find(meaning);
    return at == side.end() ? std::nullopt : std::optional(at->second);
  };
  for (const auto& [meaning, a] : of_a) {
    const bool both = meaning.role == Role::gate_up;
    if (!both && meaning.role != Role::up) continue;
    const auto b = with(of_b, meaning, both ? Role::up : Role::gate_up);
    if (!b || of_b.contains(meaning) || with(both ? of_b : of_a, meaning, Role::gate)) continue;
    if (elements_held(input.a.tensors[a]) == elements_held(input.b.tensors[*b]))
      proposal.pairs.push_back({.a = a, .b = *b, .layer = {}, .stage = {}, .matched_by = {}});
  }
}

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  const Meanings side_a = meanings_in(input.side_a, input.free_a, 'a', proposal.notes);
  const Meanings side_b = meanings_in(input.side_b, input.free_b, 'b', proposal.notes);
  const ByMeaning &of_a = side_a.tensors, &of_b = side_b.tensors;
  for (const auto& [meaning, a] : of_a) {
    const auto found = of_b.find(meaning);
    if (found == of_b.end()) continue;
    const Tensor& tensor_a = input.a.tensors[a];
    const Tensor& tensor_b = input.b.tensors[found->second];
    // Two dumps of stages have one scheme, and what it leaves unpaired lies in other folders.
    if (tensor_a.place.staged && tensor_b.place.staged) continue;
    if (is_fused(of_b, meaning, tensor_a, tensor_b) || is_fused(of_a, meaning, tensor_b, tensor_a))
      continue;
    if (!may_be_one(input, of_a, of_b, meaning)) continue;
    proposal.pairs.push_back(
        {.a = a, .b = found->second, .layer = {}, .stage = {}, .matched_by = {}});
  }
  add_twins(of_a, of_b, proposal);
  add_both_halves(input, of_a, of_b, proposal);
  const Norms norms(input, of_a, of_b);
  const bool ask = input.options.read_values;
  if (ask && side_a.norms_behind != side_b.norms_behind)
    norms.settle(Role::attention_norm, Role::mlp_norm, proposal);
  if (ask && (side_a.after_attention || side_b.after_attention))
    norms.settle(Role::mlp_norm, Role::post_attention_norm, proposal);
  Halves(input, true).pair(of_a, of_b, proposal);
  Halves(input, false).pair(of_b, of_a, proposal);
  if (proposal.pairs.empty()) proposal.notes.clear();  // Then these are no conventions in use.
  return proposal;
}

}  // namespace

constinit const Matcher matchers::conventions = {
    .name = "conventions",
    .summary = "the names mean the same in known naming schemes",
    .propose = propose,
};

}  // namespace tensordiff
