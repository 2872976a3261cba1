// Pairs the embedding of tokens with the matrix that gives the logits, where one side stores once
// what the other has twice: models that tie them save "embed_tokens" alone, "lm_head" alone, or
// both. What has a partner by its own name keeps it; this is a second row for the same tensor.
//
// A head that was lost is not a tied one. So the values must say that the two are the same: on the
// side that has both, or between the sides.

#include <algorithm>

#include "match/fingerprint.h"
#include "match/matcher.h"

namespace tensordiff {
namespace {

constexpr double kAgreementMax = 0.5;  // As for shapes: what explains less than half explains none.

struct Embedding {
  std::optional<std::size_t> tokens, head;
};

// Of weights only: what the two put out is not the same. Nothing where there are several.
Embedding embedding_of(const std::vector<Place>& places) {
  Embedding found;
  bool several = false;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    if (!place.known || place.layer != Place::kNone || place.parameter != Param::weight) continue;
    if (place.step != Role::embedding && place.step != Role::logits) continue;
    std::optional<std::size_t>& which = place.step == Role::logits ? found.head : found.tokens;
    several |= which.has_value();
    which = i;
  }
  return several ? Embedding{} : found;
}

bool agree(const Tensor& a, const Tensor& b) {
  if (a.shards.size() != b.shards.size()) return false;
  return disagreement(fingerprint_of(a), fingerprint_of(b)) <= kAgreementMax;
}

// The partner of `tensor`, which is free, in the other side: `stored` stands for both there.
bool is_tied(const Catalog& own, std::size_t tensor, std::optional<std::size_t> twin,
             const Tensor& stored) {
  return agree(own.tensors[tensor], stored) ||
         (twin && agree(own.tensors[tensor], own.tensors[*twin]));
}

bool contains(const std::vector<std::size_t>& list, std::size_t item) {
  return std::ranges::find(list, item) != list.end();
}

// An encoder and a decoder that share the table of tokens: one side may store it once for both.
std::optional<std::size_t> only_table(const std::vector<Place>& places) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const Place& place = places[i];
    const bool table = place.known && place.step == Role::embedding &&
                       place.layer == Place::kNone && place.parameter == Param::weight;
    if (table && found) return std::nullopt;
    if (table) found = i;
  }
  return found;
}

bool is_table_of(const Catalog& catalog, const std::vector<Place>& places, std::size_t tensor,
                 const Tensor& table) {
  const Place& place = places[tensor];
  const Shape &x = catalog.tensors[tensor].view.shape, &y = table.view.shape;
  // One of them may be padded.
  return place.known && place.step == Role::embedding && place.layer == Place::kNone &&
         x.size() == 2 && y.size() == 2 && x[1] == y[1];
}

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  if (!input.options.read_values || (input.free_a.empty() && input.free_b.empty())) return proposal;
  const Embedding a = embedding_of(input.side_a.places), b = embedding_of(input.side_b.places);
  const auto add = [&](std::size_t of_a, std::size_t of_b) {
    if (std::ranges::any_of(proposal.pairs,
                            [&](const Pair& each) { return each.a == of_a && each.b == of_b; }))
      return;
    Pair pair{.a = of_a, .b = of_b, .layer = {}, .stage = {}, .matched_by = {}};
    pair.tied = true;
    proposal.pairs.push_back(std::move(pair));
  };
  // What is free of a, against the one that b stores; and then the other way round.
  if (b.tokens.has_value() != b.head.has_value()) {
    const std::size_t stored = b.tokens ? *b.tokens : *b.head;
    for (const auto& [tensor, twin] : {std::pair(a.tokens, a.head), std::pair(a.head, a.tokens)})
      if (tensor && contains(input.free_a, *tensor) &&
          is_tied(input.a, *tensor, twin, input.b.tensors[stored]))
        add(*tensor, stored);
  } else if (a.tokens.has_value() != a.head.has_value()) {
    const std::size_t stored = a.tokens ? *a.tokens : *a.head;
    for (const auto& [tensor, twin] : {std::pair(b.tokens, b.head), std::pair(b.head, b.tokens)})
      if (tensor && contains(input.free_b, *tensor) &&
          is_tied(input.b, *tensor, twin, input.a.tensors[stored]))
        add(stored, *tensor);
  }
  if (const auto table = only_table(input.side_a.places))
    for (const std::size_t each : input.free_b)
      if (is_table_of(input.b, input.side_b.places, each, input.a.tensors[*table]))
        add(*table, each);
  if (const auto table = only_table(input.side_b.places))
    for (const std::size_t each : input.free_a)
      if (is_table_of(input.a, input.side_a.places, each, input.b.tensors[*table]))
        add(each, *table);
  return proposal;
}

}  // namespace

constinit const Matcher matchers::tied = {
    .name = "tied",
    .summary = "the embedding of tokens and the output head are one tensor",
    .propose = propose,
};

}  // namespace tensordiff
