// Pairs a weight that its own side holds twice with the partner of the other copy: checkpoints of
// models that share a weight may keep it under each of its names, or under one.

#include <algorithm>
#include <map>

#include "base/parallel.h"
#include "match/checkpoint.h"
#include "match/matcher.h"
#include "match/signature.h"

namespace tensordiff {
namespace {

// Smaller ones may be equal by their initialisation, but hardly so in one layer of a model that
// gave them several values.
constexpr uint64_t kElementsMin = 256;
constexpr uint64_t kInLayerMin = 16;
constexpr uint64_t kReadMax = 1 << 26;  // Larger ones are not read just to find a copy.

// A copy may be stored with its axes in another order, such as an output head. Then its sums are
// taken in another order, and differ by what a double leaves.
constexpr double kSums = 1e-6;

bool is_copy(const Tensor& one, const Tensor& other) {
  const Signature of_one = signature_of(one, kReadMax);
  const double most = one.view.shape == other.view.shape ? 0 : kSums;
  if (!of_one.varied || distance(of_one, signature_of(other, kReadMax)) > most) return false;
  return distance_in_detail(one, other, of_one) <= most;
}

bool is_large_enough(const Tensor& tensor) {
  const bool in_layer = tensor.place.layer != Place::kNone;
  return tensor.elements() >= (in_layer ? kInLayerMin : kElementsMin);
}

bool may_be_copies(const Tensor& one, const Tensor& other) {
  return one.elements() >= kElementsMin || one.place.layer == other.place.layer;
}

Shape sorted(Shape shape) {
  std::ranges::sort(shape);
  return shape;
}

// One side: its catalog, what is free of it, and which index of a pair is its own.
struct Side {
  const Catalog& catalog;
  const std::vector<std::size_t>& free;
  std::size_t Pair::*own;
  std::size_t Pair::*other;
};

void pair_copies(const Side& side, const std::vector<Pair>& pairs, Proposal& proposal) {
  std::multimap<Shape, const Pair*> by_shape;
  for (const Pair& pair : pairs) {
    const Tensor& tensor = side.catalog.tensors[pair.*side.own];
    if (!pair.section_a && !pair.section_b && is_large_enough(tensor))
      by_shape.emplace(sorted(tensor.view.shape), &pair);
  }
  for (const std::size_t free : side.free) {
    const Tensor& tensor = side.catalog.tensors[free];
    if (!is_large_enough(tensor) || !tensor.fault.empty()) continue;
    const auto [first, last] = by_shape.equal_range(sorted(tensor.view.shape));
    const auto found = std::find_if(first, last, [&](const auto& each) {
      const Tensor& other = side.catalog.tensors[each.second->*side.own];
      return may_be_copies(tensor, other) && is_copy(tensor, other);
    });
    if (found == last) continue;
    Pair pair{.a = 0, .b = 0, .layer = {}, .stage = {}, .matched_by = {}};
    pair.*side.own = free;
    pair.*side.other = found->second->*side.other;
    pair.tied = true;
    proposal.pairs.push_back(std::move(pair));
  }
}

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  if (!input.options.read_values || !are_checkpoints(input.a, input.b)) return proposal;
  pair_copies({input.a, input.free_a, &Pair::a, &Pair::b}, *input.pairs, proposal);
  pair_copies({input.b, input.free_b, &Pair::b, &Pair::a}, *input.pairs, proposal);
  return proposal;
}

}  // namespace

constinit const Matcher matchers::copy = {
    .name = "copy",
    .summary = "its side has the tensor twice, and the other copy is paired",
    .propose = propose,
};

}  // namespace tensordiff
