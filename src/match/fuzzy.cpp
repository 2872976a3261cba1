// Pairs names whose words are alike, where the numbers in them are the same and neither name is
// nearly as much like any other: one clear best, or none.

#include <algorithm>
#include <map>
#include <optional>

#include "base/parallel.h"
#include "match/matcher.h"
#include "match/meaning.h"
#include "match/name_index.h"
#include "match/signature.h"

namespace tensordiff {
namespace {

// Names looked at in all, and for one name at least. Where more share its words, which of them is
// meant is not clear in any case.
constexpr std::size_t kLooksMax = 1 << 22;
constexpr std::size_t kLooksMin = 64;
constexpr uint64_t kReadMax = 1 << 24;  // Larger ones are not read just to confirm a name.
constexpr double kNear = 0.3;           // In standard errors, as for pairing by values.

struct Group {
  std::vector<std::size_t> tensors;
  std::vector<NameWords> names;
};
using ByNumbers = std::map<std::vector<std::string>, Group>;

ByNumbers by_numbers(const std::vector<std::string>& names, const std::vector<std::size_t>& free) {
  ByNumbers result;
  for (const std::size_t tensor : free) {
    NameWords name = name_words(names[tensor]);
    Group& group = result[name.numbers];
    group.tensors.push_back(tensor);
    group.names.push_back(std::move(name));
  }
  return result;
}

bool may_be_same(const Tensor& a, const Tensor& b) {
  if (!a.shards.empty() || !b.shards.empty() || !a.fault.empty() || !b.fault.empty()) return true;
  return a.elements() == b.elements();
}

class GroupPairing {
 public:
  GroupPairing(const MatchInput& input, const Group& a, const Group& b, std::size_t looks)
      : input_(input), a_(a), b_(b), looks_(looks), index_b_(b.names) {}

  void pair(Proposal& proposal) {
    for (std::size_t i = 0; i < a_.tensors.size(); ++i) {
      const Likeliest found = index_b_.find(
          a_.names[i], {kClearlyMost, looks_, [&](std::size_t j) { return may_pair(i, j); }});
      if (!clear(found)) continue;
      const std::size_t j = found.index;
      if (!index_a_) index_a_.emplace(a_.names);  // Most groups without a pair need none.
      const Likeliest back = index_a_->find(
          b_.names[j], {kClearlyMost, looks_, [&](std::size_t k) { return may_pair(k, j); }});
      if (!clear(back) || back.index != i || !is_confirmed(i, j)) continue;
      proposal.pairs.push_back(
          {.a = a_.tensors[i], .b = b_.tensors[j], .layer = {}, .stage = {}, .matched_by = {}});
    }
  }

 private:
  bool may_pair(std::size_t i, std::size_t j) const {
    const std::size_t a = a_.tensors[i], b = b_.tensors[j];
    return may_be_same(input_.a.tensors[a], input_.b.tensors[b]) &&
           may_mean_the_same(input_.side_a.places[a], input_.side_b.places[b]);
  }
  // A step that one name tells, and the other does not, is no more than like it in its words. The
  // values must agree then, where they may be read.
  bool is_confirmed(std::size_t i, std::size_t j) const {
    const std::size_t a = a_.tensors[i], b = b_.tensors[j];
    const Place& one = input_.side_a.places[a];
    const Place& other = input_.side_b.places[b];
    const bool results = one.parameter == Param::none && other.parameter == Param::none;
    if (!results || one.known == other.known || !input_.options.read_values) return true;
    const Tensor& of_a = input_.a.tensors[a];
    const Tensor& of_b = input_.b.tensors[b];
    const Signature signature = signature_of(of_a, kReadMax);
    if (signature.elements == 0) return true;
    if (of_a.elements() != of_b.elements()) return false;  // Parts on ranks: nothing confirms it.
    return distance(signature, signature_of(of_b, kReadMax)) <= kNear &&
           distance_in_detail(of_a, of_b, signature) <= kNear;
  }
  bool clear(const Likeliest& found) const {
    return found.complete && found.score >= input_.options.fuzzy_threshold && found.score > 0 &&
           found.score - found.next >= kClearlyMost;
  }

  const MatchInput& input_;
  const Group& a_;
  const Group& b_;
  std::size_t looks_;
  std::optional<NameIndex> index_a_;
  NameIndex index_b_;
};

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  if (input.free_a.empty() || input.free_b.empty()) return proposal;
  const std::size_t looks = std::max(kLooksMax / input.free_a.size(), kLooksMin);
  ByNumbers of_a, of_b;
  for_each_index(2, [&](std::size_t side) {
    if (side == 0)
      of_a = by_numbers(input.side_a.names, input.free_a);
    else
      of_b = by_numbers(input.side_b.names, input.free_b);
  });
  for (const auto& [numbers, group] : of_a)
    if (const auto found = of_b.find(numbers); found != of_b.end())
      GroupPairing(input, group, found->second, looks).pair(proposal);
  return proposal;
}

}  // namespace

constinit const Matcher matchers::fuzzy = {
    .name = "fuzzy",
    .summary = "the names are similar, and no other name is as similar",
    .propose = propose,
};

}  // namespace tensordiff
