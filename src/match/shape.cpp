// Pairs what is left where just one tensor of each side has a shape and dtype, if the names have
// nothing to say (numbers only, as in "arr_0") or the values agree: an added and a removed tensor
// that happen to have one shape are not a pair.

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "match/fingerprint.h"
#include "match/matcher.h"
#include "match/meaning.h"

namespace tensordiff {
namespace {

constexpr double kAgreementMax =
    0.5;  // As for layouts: what explains less than half explains none.
constexpr std::array<std::string_view, 5> kEmptyWords = {"arr", "tensor", "array", "output", "x"};

bool says_nothing(std::string_view name) {
  std::string word;
  for (const char c : lower(name))
    if (c >= 'a' && c <= 'z') word += c;
  return word.empty() || std::ranges::find(kEmptyWords, word) != kEmptyWords.end();
}

using Key = std::pair<Shape, DType>;
// Nothing where several have the same.
using ByShape = std::map<Key, std::optional<std::size_t>>;

ByShape by_shape(const Catalog& catalog, const std::vector<std::size_t>& free) {
  ByShape result;
  for (const std::size_t tensor : free) {
    const View& view = catalog.tensors[tensor].view;
    if (!catalog.tensors[tensor].shards.empty()) continue;
    const auto [at, first] = result.emplace(Key(view.shape, view.dtype), tensor);
    if (!first) at->second.reset();
  }
  return result;
}

Result<Proposal> propose(const MatchInput& input) {
  const ByShape of_b = by_shape(input.b, input.free_b);
  Proposal proposal;
  for (const auto& [key, a] : by_shape(input.a, input.free_a)) {
    const auto found = of_b.find(key);
    if (!a || found == of_b.end() || !found->second) continue;
    if (!may_mean_the_same(input.side_a.places[*a], input.side_b.places[*found->second])) continue;
    const Tensor& tensor_a = input.a.tensors[*a];
    const Tensor& tensor_b = input.b.tensors[*found->second];
    const bool nameless =
        says_nothing(tensor_a.pairing_name()) && says_nothing(tensor_b.pairing_name());
    if (!nameless && !input.options.read_values) continue;
    if (!nameless &&
        disagreement(fingerprint_of(tensor_a), fingerprint_of(tensor_b)) > kAgreementMax)
      continue;
    proposal.pairs.push_back(
        {.a = *a, .b = *found->second, .layer = {}, .stage = {}, .matched_by = {}});
  }
  return proposal;
}

}  // namespace

constinit const Matcher matchers::shape = {
    .name = "shape",
    .summary = "no other tensor has this shape and dtype, and nothing contradicts it",
    .propose = propose,
};

}  // namespace tensordiff
