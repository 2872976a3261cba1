// Pairs what is left by the values alone, where names say nothing: tensors whose signatures are
// near each other and far from all others of both sides, and which stand up to a second look.
//
// Values that a mistake has changed have no near signature. So what was found is read as a rule:
// where "h.0.foo" is "layers.0.bar", "h.1.foo" is "layers.1.bar", whatever is in it.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/parallel.h"
#include "base/text.h"
#include "match/checkpoint.h"
#include "match/fingerprint.h"
#include "match/matcher.h"
#include "match/meaning.h"
#include "match/one_to_one.h"
#include "match/signature.h"
#include "naming/numbered_name.h"

namespace tensordiff {
namespace {

constexpr uint64_t kElementsMin = 8;         // A few numbers agree by chance.
constexpr uint64_t kReadMax = 1 << 24;       // Larger ones are not read just to find a partner.
constexpr std::size_t kTensorsMax = 20'000;  // On one side; more would take too long to read.
// In standard errors: rounding to bf16 in every layer stays below a tenth of one.
constexpr double kNear = 0.3;
constexpr double kClearlyNearer = 4;
constexpr double kAgreementMax = 0.5;  // As for shapes: what explains less than half explains none.

using Signatures = std::vector<Signature>;  // In the order of the free tensors.

// Of copies of one weight only the first has one, so that it has no rival: the copy strategy takes
// the others. Activations that are the same are not one tensor.
Signatures signatures_of(const Catalog& catalog, const std::vector<std::size_t>& free,
                         bool weights) {
  Signatures result(free.size());
  for_each_index(free.size(), [&](std::size_t i) {
    const Tensor& tensor = catalog.tensors[free[i]];
    if (tensor.elements() >= kElementsMin) result[i] = signature_of(tensor, kReadMax);
  });
  std::set<std::pair<uint64_t, std::array<double, 5>>> seen;
  for (Signature& each : result)
    if (weights && each.varied && !seen.emplace(each.elements, each.means).second) each = {};
  return result;
}

// The nearest of the others, and how far the one after it is.
struct Nearest {
  std::size_t index = 0;
  double distance = std::numeric_limits<double>::infinity();
  double next = std::numeric_limits<double>::infinity();
};

std::vector<Nearest> nearest_of(const Signatures& from, const Signatures& to) {
  std::multimap<uint64_t, std::size_t> by_size;
  for (std::size_t i = 0; i < to.size(); ++i)
    if (to[i].elements > 0) by_size.emplace(to[i].elements, i);
  std::vector<Nearest> result(from.size());
  for_each_index(from.size(), [&](std::size_t i) {
    const auto [first, last] = by_size.equal_range(from[i].elements);
    for (auto at = first; at != last; ++at) {
      const double here = distance(from[i], to[at->second]);
      if (here < result[i].distance) {
        result[i] = {at->second, here, result[i].distance};
      } else {
        result[i].next = std::min(result[i].next, here);
      }
    }
  });
  return result;
}

bool clear(const Nearest& nearest) {
  return nearest.distance <= kNear && nearest.distance * kClearlyNearer < nearest.next;
}

// Whether two tensors with near signatures hold the same: element by element in a sample, or else
// in another order.
bool hold_the_same(const Tensor& a, const Tensor& b, const Signature& of_a) {
  if (a.view.shape == b.view.shape && a.shards.empty() && b.shards.empty() &&
      disagreement(fingerprint_of(a), fingerprint_of(b)) <= kAgreementMax)
    return true;
  return distance_in_detail(a, b, of_a) <= kNear;
}

// Weights that a converter adds a number to have other moments, but the same values in the same
// order up to that: norms that store their weight less one.
constexpr std::size_t kShiftedPairsMax = 1
                                         << 20;  // Of one shape; each costs a few hundred numbers.
constexpr double kInLine = 0.01;                 // Rounding to 8 bits leaves less.
constexpr double kChance = 1e-9;                 // That so few numbers are in line by accident.

// The share of n numbers that a line leaves unexplained is below x by chance with x^(n/2 - 1).
double in_line_max(uint64_t elements) {
  return std::min(kInLine, std::pow(kChance, 2 / (static_cast<double>(elements) - 2)));
}

std::vector<std::size_t> without(const std::vector<std::size_t>& free, const Proposal& proposal,
                                 std::size_t Pair::*side) {
  std::set<std::size_t> taken;
  for (const Pair& pair : proposal.pairs) taken.insert(pair.*side);
  std::vector<std::size_t> left;
  std::ranges::copy_if(free, std::back_inserter(left),
                       [&](std::size_t each) { return !taken.contains(each); });
  return left;
}

// The fingerprints of what is left, by shape.
using ByShape = std::map<Shape, std::vector<std::pair<std::size_t, Fingerprint>>>;

ByShape fingerprints_of(const Catalog& catalog, const std::vector<std::size_t>& left) {
  std::vector<Fingerprint> prints(left.size());
  const auto may_be = [&](std::size_t i) {
    const Tensor& tensor = catalog.tensors[left[i]];
    return tensor.shards.empty() && tensor.view.shape.size() == 1 &&
           tensor.elements() >= kElementsMin && tensor.elements() <= kReadMax;
  };
  for_each_index(left.size(), [&](std::size_t i) {
    if (may_be(i)) prints[i] = fingerprint_of(catalog.tensors[left[i]]);
  });
  ByShape result;
  for (std::size_t i = 0; i < left.size(); ++i)
    if (prints[i].elements > 0) result[prints[i].shape].emplace_back(left[i], std::move(prints[i]));
  return result;
}

void pair_shifted(const MatchInput& input, Proposal& proposal) {
  const ByShape a = fingerprints_of(input.a, without(input.free_a, proposal, &Pair::a));
  const ByShape b = fingerprints_of(input.b, without(input.free_b, proposal, &Pair::b));
  for (const auto& [shape, of_a] : a) {
    const auto found = b.find(shape);
    if (found == b.end() || of_a.size() * found->second.size() > kShiftedPairsMax) continue;
    std::map<std::size_t, std::vector<std::size_t>> in_line;  // Those of A, by tensor of B.
    for (const auto& [tensor, print] : of_a)
      for (const auto& [other, of_other] : found->second)
        if (disagreement(print, of_other) <= in_line_max(print.elements))
          in_line[other].push_back(tensor);
    std::map<std::size_t, std::size_t> claims;
    for (const auto& [other, tensors] : in_line)
      for (const std::size_t tensor : tensors) ++claims[tensor];
    for (const auto& [other, tensors] : in_line)
      if (tensors.size() == 1 && claims[tensors[0]] == 1)
        proposal.pairs.push_back(
            {.a = tensors[0], .b = other, .layer = {}, .stage = {}, .matched_by = {}});
  }
}

// Pairs what has no near signature by the patterns of the names that were paired.
void extend(const MatchInput& input, Proposal& proposal) {
  OneToOne patterns;
  std::set<std::size_t> taken_a, taken_b;
  for (const Pair& pair : proposal.pairs) {
    const NumberedName a = numbered_name(input.side_a.names[pair.a]);
    const NumberedName b = numbered_name(input.side_b.names[pair.b]);
    if (a.numbers == b.numbers && !a.numbers.empty()) patterns.learn(a.pattern, b.pattern);
    taken_a.insert(pair.a);
    taken_b.insert(pair.b);
  }
  std::map<NumberedName, std::size_t> free_b;
  for (const std::size_t b : input.free_b)
    if (!taken_b.contains(b)) free_b.emplace(numbered_name(input.side_b.names[b]), b);
  for (const std::size_t a : input.free_a) {
    if (taken_a.contains(a)) continue;
    const NumberedName name = numbered_name(input.side_a.names[a]);
    const std::string* partner = patterns.partner(name.pattern);
    const auto found = partner ? free_b.find({*partner, name.numbers}) : free_b.end();
    if (found == free_b.end()) continue;
    proposal.pairs.push_back(
        {.a = a, .b = found->second, .layer = {}, .stage = {}, .matched_by = {}});
  }
}

Result<Proposal> propose(const MatchInput& input) {
  Proposal proposal;
  if (!input.options.read_values || input.free_a.empty() || input.free_b.empty()) return proposal;
  if (input.free_a.size() > kTensorsMax || input.free_b.size() > kTensorsMax) {
    proposal.notes.push_back(
        fmt::format("more than {} tensors have no partner by name: their "
                    "values were not searched",
                    human_count(kTensorsMax)));
    return proposal;
  }
  const bool weights = are_checkpoints(input.a, input.b);
  const Signatures a = signatures_of(input.a, input.free_a, weights);
  const Signatures b = signatures_of(input.b, input.free_b, weights);
  const std::vector<Nearest> of_a = nearest_of(a, b);
  const std::vector<Nearest> of_b = nearest_of(b, a);
  std::vector<char> same(of_a.size());
  for_each_index(of_a.size(), [&](std::size_t i) {
    const std::size_t j = of_a[i].index;
    // What names say wins: a residual sum that was left out makes two other steps the same.
    const bool may_be = may_mean_the_same(input.side_a.places[input.free_a[i]],
                                          input.side_b.places[input.free_b[j]]);
    same[i] =
        may_be && clear(of_a[i]) && clear(of_b[j]) && of_b[j].index == i &&
        hold_the_same(input.a.tensors[input.free_a[i]], input.b.tensors[input.free_b[j]], a[i]);
  });
  for (std::size_t i = 0; i < of_a.size(); ++i)
    if (same[i])
      proposal.pairs.push_back({.a = input.free_a[i],
                                .b = input.free_b[of_a[i].index],
                                .layer = {},
                                .stage = {},
                                .matched_by = {}});
  if (weights) pair_shifted(input, proposal);
  extend(input, proposal);
  return proposal;
}

}  // namespace

constinit const Matcher matchers::value = {
    .name = "value",
    .summary = "the values are the same, up to rounding and the order of the axes",
    .propose = propose,
};

}  // namespace tensordiff
