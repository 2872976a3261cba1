#include "match/predicted.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/text.h"
#include "match/counting.h"
#include "match/exchanged.h"
#include "match/meaning.h"

namespace tensordiff {
namespace {

constexpr std::size_t kShownMin = 2;  // Pairs of a kind that show how its numbers run.

bool is_plain(const Pair& pair) { return !pair.section_a && !pair.section_b && !pair.tied; }

class Prediction {
 public:
  Prediction(MatchInput& input, Matching& matching)
      : input_(input),
        matching_(matching),
        free_a_(input.free_a.begin(), input.free_a.end()),
        free_b_(input.free_b.begin(), input.free_b.end()) {
    for (const std::string& name : with_first_numbers(names_of(input.a).names))
      a_.push_back(parse(name));
    for (const std::string& name : with_first_numbers(names_of(input.b).names))
      b_.push_back(parse(name));
    for (std::size_t i = 0; i < a_.size(); ++i) all_a_[a_[i].pattern].emplace(a_[i].numbers, i);
    for (std::size_t i = 0; i < b_.size(); ++i) all_b_[b_[i].pattern].emplace(b_[i].numbers, i);
    for (std::size_t i = 0; i < matching.pairs.size(); ++i) {
      const Pair& pair = matching.pairs[i];
      if (!is_plain(pair)) continue;
      const Parsed &a = a_[pair.a], &b = b_[pair.b];
      counting_.add(a.pattern, b.pattern, {i, a.numbers, b.numbers});
      kinds_[a.pattern][b.pattern].push_back({i, a.numbers, b.numbers});
    }
  }

  void run() {
    for (const std::size_t a : input_.free_a)
      if (const auto b = partner_of(a)) expected_[*b] = a;
    part_copies();
    for (const auto& [b, a] : expected_)
      if (free_a_.contains(a) && free_b_.contains(b)) add(a, b);
    std::erase_if(input_.free_a, [&](std::size_t a) { return !free_a_.contains(a); });
    std::erase_if(input_.free_b, [&](std::size_t b) { return !free_b_.contains(b); });
    if (copies_ > 0)
      matching_.notes.push_back(fmt::format(
          "{} {} the values that another layer has, too: paired by number, not by value",
          human_count(copies_), copies_ == 1 ? "tensor of B has" : "tensors of B have"));
  }

 private:
  using Members = std::vector<Member>;
  using ByNumbers = std::map<Numbers, std::size_t>;

  // A pair of values that belong elsewhere by their numbers, where both places are free: B holds
  // the same twice.
  void part_copies() {
    for (std::size_t i = 0; i < matching_.pairs.size(); ++i) {
      Pair& pair = matching_.pairs[i];
      if (!is_plain(pair) || pair.matched_by != &matchers::value) continue;
      const auto found = expected_.find(pair.b);
      if (found == expected_.end() || !free_a_.contains(found->second)) continue;
      const std::optional<std::size_t> own = partner_of(pair.a);
      if (!own || *own == pair.b || !free_b_.contains(*own)) continue;
      const std::size_t b = pair.b;
      pair.b = *own;
      free_b_.erase(*own);
      free_b_.insert(b);
      add(found->second, b);
      ++copies_;
    }
  }

  void add(std::size_t a, std::size_t b) {
    free_a_.erase(a);
    free_b_.erase(b);
    matching_.pairs.push_back(
        {.a = a, .b = b, .layer = {}, .stage = {}, .matched_by = &matchers::value});
  }

  // Of one size, and no number means anything else.
  std::optional<std::size_t> partner_of(std::size_t a) {
    const auto found = kinds_.find(a_[a].pattern);
    if (found == kinds_.end()) return std::nullopt;
    std::optional<std::size_t> best;
    std::size_t most = 0;
    for (const auto& [pattern, members] : found->second) {
      if (members.size() < kShownMin || members.size() <= most) continue;
      const std::optional<std::size_t> b = partner_in(a_[a], pattern, members);
      if (!b || input_.b.tensors[*b].elements() != input_.a.tensors[a].elements()) continue;
      best = b;
      most = members.size();
    }
    return best;
  }

  std::optional<std::size_t> partner_in(const Parsed& a, const std::string& pattern,
                                        const Members& members) {
    if (const std::optional<std::size_t> b = by_rank(a, pattern, members)) return b;
    const ByNumbers& there = all_b_.at(pattern);
    Numbers numbers(members[0].b.size());
    std::set<std::size_t> used;  // Numbers of A.
    for (std::size_t slot = 0; slot < numbers.size(); ++slot) {
      const std::optional<uint64_t> number = number_in(a, pattern, members, slot, used);
      if (!number) return std::nullopt;
      numbers[slot] = *number;
    }
    // What no number of B depends on is part of the kind: "w1" and "w2".
    for (std::size_t slot = 0; slot < a.numbers.size(); ++slot)
      if (!used.contains(slot) && std::ranges::none_of(members, [&](const Member& member) {
            return member.a[slot] == a.numbers[slot];
          }))
        return std::nullopt;
    const auto found = there.find(numbers);
    return found == there.end() ? std::nullopt : std::optional(found->second);
  }

  // By the map from the number of A that most pairs of this kind follow.
  std::optional<uint64_t> number_in(const Parsed& a, const std::string& pattern,
                                    const Members& members, std::size_t slot_b,
                                    std::set<std::size_t>& used) {
    std::optional<std::size_t> best;
    std::size_t most = 0;
    for (std::size_t slot = 0; slot < a.numbers.size(); ++slot) {
      const Counting::Paths paths{path_to(a.pattern, slot), path_to(pattern, slot_b)};
      const Counting::Map* map = counting_.of(paths);
      if (!map || map->size() < 2 || !map->contains(a.numbers[slot])) continue;
      const auto agreeing =
          static_cast<std::size_t>(std::ranges::count_if(members, [&](const Member& member) {
            const auto at = map->find(member.a[slot]);
            return at != map->end() && at->second == member.b[slot_b];
          }));
      const bool follows =
          2 * agreeing > members.size() || counting_.is_sure(paths, *map, members.size(), agreeing);
      if (agreeing <= most || !follows) continue;
      most = agreeing;
      best = slot;
    }
    if (best) {
      used.insert(*best);
      return counting_.of({path_to(a.pattern, *best), path_to(pattern, slot_b)})
          ->at(a.numbers[*best]);
    }
    const uint64_t first = members[0].b[slot_b];
    const bool constant = std::ranges::all_of(
        members, [&](const Member& member) { return member.b[slot_b] == first; });
    return constant ? std::optional(first) : std::nullopt;
  }

  // Blocks of blocks that are counted through: all of a kind in the order of their numbers.
  std::optional<std::size_t> by_rank(const Parsed& a, const std::string& pattern,
                                     const Members& members) const {
    const ByNumbers &here = all_a_.at(a.pattern), &there = all_b_.at(pattern);
    if (here.size() != there.size() || 2 * members.size() < here.size()) return std::nullopt;
    const auto rank = [](const ByNumbers& all, const Numbers& numbers) {
      return std::distance(all.begin(), all.find(numbers));
    };
    const auto in_rank = std::ranges::count_if(members, [&](const Member& member) {
      return rank(here, member.a) == rank(there, member.b);
    });
    const auto follow = static_cast<std::size_t>(in_rank);
    if (2 * follow <= members.size() || follow + 1 < members.size()) return std::nullopt;
    return std::next(there.begin(), rank(here, a.numbers))->second;
  }

  MatchInput& input_;
  Matching& matching_;
  std::set<std::size_t> free_a_, free_b_;
  std::vector<Parsed> a_, b_;
  std::map<std::string, ByNumbers> all_a_, all_b_;
  std::map<std::string, std::map<std::string, Members>> kinds_;
  Counting counting_;
  std::map<std::size_t, std::size_t> expected_;  // A free tensor of A, by its partner.
  std::size_t copies_ = 0;
};

// The only tensor of a shape without a partner on either side, in models of which nearly all others
// have one.
constexpr std::size_t kPairedForEachLeft = 2;
constexpr uint64_t kElementsMin = 8;

std::map<Shape, std::vector<std::size_t>> by_shape(const Catalog& catalog,
                                                   const std::vector<std::size_t>& free) {
  std::map<Shape, std::vector<std::size_t>> result;
  for (const std::size_t each : free) {
    const Tensor& tensor = catalog.tensors[each];
    if (tensor.elements() < kElementsMin || !tensor.shards.empty()) continue;
    Shape shape = tensor.view.shape;
    std::erase(shape, 1);
    std::ranges::sort(shape);
    result[shape].push_back(each);
  }
  return result;
}

// A table of tokens is padded by some programs: the only matrices that are left, with one axis
// alike.
void pair_last_tables(MatchInput& input, Matching& matching) {
  const auto tables = [](const Catalog& catalog, const std::vector<std::size_t>& free) {
    std::vector<std::size_t> found;
    std::ranges::copy_if(free, std::back_inserter(found), [&](std::size_t each) {
      return catalog.tensors[each].view.shape.size() == 2 && catalog.tensors[each].shards.empty();
    });
    return found;
  };
  const std::vector<std::size_t> a = tables(input.a, input.free_a),
                                 b = tables(input.b, input.free_b);
  if (a.size() != 1 || b.size() != 1) return;
  const Shape &x = input.a.tensors[a[0]].view.shape, &y = input.b.tensors[b[0]].view.shape;
  const bool alike =
      std::ranges::any_of(x, [&](uint64_t size) { return std::ranges::find(y, size) != y.end(); });
  if (!alike || !may_mean_the_same(input.side_a.places[a[0]], input.side_b.places[b[0]])) return;
  matching.pairs.push_back(
      {.a = a[0], .b = b[0], .layer = {}, .stage = {}, .matched_by = &matchers::shape});
  std::erase(input.free_a, a[0]);
  std::erase(input.free_b, b[0]);
}

}  // namespace

void pair_by_prediction(MatchInput& input, Matching& matching) {
  const bool by_value = std::ranges::any_of(
      matching.pairs, [](const Pair& pair) { return pair.matched_by == &matchers::value; });
  if (by_value && !input.free_a.empty() && !input.free_b.empty()) Prediction(input, matching).run();
}

void pair_last(MatchInput& input, Matching& matching) {
  const std::size_t left = input.free_a.size() + input.free_b.size();
  if (kPairedForEachLeft * left > matching.pairs.size()) return;
  const auto b = by_shape(input.b, input.free_b);
  for (const auto& [shape, of_a] : by_shape(input.a, input.free_a)) {
    const auto found = b.find(shape);
    if (found == b.end() || of_a.size() != 1 || found->second.size() != 1) continue;
    const std::size_t i = of_a[0], j = found->second[0];
    if (!may_mean_the_same(input.side_a.places[i], input.side_b.places[j])) continue;
    matching.pairs.push_back(
        {.a = i, .b = j, .layer = {}, .stage = {}, .matched_by = &matchers::shape});
    std::erase(input.free_a, i);
    std::erase(input.free_b, j);
  }
  pair_last_tables(input, matching);
}

}  // namespace tensordiff
