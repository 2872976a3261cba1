#include "match/exchanged.h"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_set>

#include "base/text.h"
#include "match/counting.h"

namespace tensordiff {
namespace {

bool is_by_value(const Pair& pair) {
  return (pair.matched_by == &matchers::value || pair.matched_by == &matchers::fused_value) &&
         !pair.tied;
}

// Which number of A gives one number of B, and how.
struct SlotMap {
  bool constant = true;
  std::size_t slot = 0;
  std::map<uint64_t, uint64_t> map;
  std::size_t agreeing = 0;
  bool reversed = false;
};

std::map<uint64_t, uint64_t> bijection(const std::set<uint64_t>& from, const std::set<uint64_t>& to,
                                       bool reversed) {
  std::map<uint64_t, uint64_t> map;
  std::vector<uint64_t> targets(to.begin(), to.end());
  if (reversed) std::ranges::reverse(targets);
  std::size_t i = 0;
  for (const uint64_t number : from) map[number] = targets[i++];
  return map;
}

// Whether other kinds of tensors allow a map from a number of A to one of B.
using Allows = std::function<bool(std::size_t slot_a, std::size_t slot_b,
                                  const std::map<uint64_t, uint64_t>&)>;

// The map from one number of A to one of B that most members follow; an increasing one where one
// as good is decreasing.
SlotMap best_map(const std::vector<Member>& members, std::size_t slot_b, const Allows& allows) {
  std::set<uint64_t> to;
  for (const Member& member : members) to.insert(member.b[slot_b]);
  SlotMap best;
  if (to.size() < 2) return best;
  best.constant = false;
  bool first = true;
  for (std::size_t slot = 0; slot < members[0].a.size(); ++slot) {
    std::set<uint64_t> from;
    for (const Member& member : members) from.insert(member.a[slot]);
    if (from.size() != to.size()) continue;
    for (const bool reversed : {false, true}) {
      if (reversed && from.size() < kReversedMin) continue;
      SlotMap map{false, slot, bijection(from, to, reversed), 0, reversed};
      for (const Member& member : members)
        map.agreeing += map.map.at(member.a[slot]) == member.b[slot_b];
      // A reversal has to be without exception, here and elsewhere in the same blocks.
      if (reversed && (map.agreeing != members.size() || !allows(slot, slot_b, map.map))) continue;
      if (first || map.agreeing > best.agreeing) best = std::move(map);
      first = false;
    }
  }
  return best;
}

// Blocks of blocks that are counted through: the numbers of both sides in the order in which a
// reader would list them. Those of B as they are where most do not follow it.
std::vector<Numbers> in_order(const std::vector<Member>& members) {
  std::vector<Numbers> to;
  std::vector<std::size_t> from(members.size());
  for (std::size_t i = 0; i < members.size(); ++i) {
    to.push_back(members[i].b);
    from[i] = i;
  }
  std::ranges::sort(to);
  std::ranges::sort(from, {}, [&](std::size_t i) -> const Numbers& { return members[i].a; });
  std::vector<Numbers> expected(members.size());
  std::size_t agreeing = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    expected[from[i]] = to[i];
    agreeing += members[from[i]].b == to[i];
  }
  if (2 * agreeing <= members.size())
    for (std::size_t i = 0; i < members.size(); ++i) expected[i] = members[i].b;
  return expected;
}

// The numbers of B that the rule of these pairs gives for those of A.
std::vector<Numbers> expected_numbers(
    const std::vector<Member>& members,
    const std::function<std::optional<SlotMap>(std::size_t)>& known, const Allows& allows) {
  std::vector<SlotMap> maps;
  for (std::size_t slot = 0; slot < members[0].b.size(); ++slot) {
    std::optional<SlotMap> by_all = known(slot);
    maps.push_back(by_all ? std::move(*by_all) : best_map(members, slot, allows));
    if (!maps.back().constant && maps.back().map.empty()) return in_order(members);
  }
  std::vector<Numbers> expected;
  for (const Member& member : members) {
    expected.push_back(member.b);
    for (std::size_t slot = 0; slot < maps.size(); ++slot)
      if (!maps[slot].constant)
        expected.back()[slot] = maps[slot].map.at(member.a[maps[slot].slot]);
  }
  return expected;
}

class Exchange {
 public:
  Exchange(const MatchInput& input, Matching& matching)
      : matching_(matching), names_b_(with_first_numbers(names_of(input.b).names)) {
    const std::vector<std::string> names_a = with_first_numbers(names_of(input.a).names);
    for (std::size_t i = 0; i < matching.pairs.size(); ++i) {
      const Pair& pair = matching.pairs[i];
      if (pair.tied) continue;
      Parsed a = parse(names_a[pair.a]);
      Parsed b = parse(names_b_[pair.b]);
      if (!is_by_value(pair)) {
        counting_.add(a.pattern, b.pattern, {i, std::move(a.numbers), std::move(b.numbers)});
        continue;
      }
      std::string part;
      for (const auto* section : {&pair.section_a, &pair.section_b})
        if (*section) part += (*section)->label;
      groups_[{std::move(a.pattern), std::move(b.pattern), std::move(part)}].push_back(
          {i, std::move(a.numbers), std::move(b.numbers)});
    }
    for (const auto& [kind, members] : groups_)
      for (const Member& member : members) counting_.add(kind[0], kind[1], member);
    for (const Tensor& tensor : input.b.tensors) elements_b_.push_back(tensor.elements());
    for (std::size_t b = 0; b < names_b_.size(); ++b) by_name_.emplace(parse(names_b_[b]), b);
  }

  void run() {
    for (const auto& [kind, members] : groups_) repair(kind, members);
    if (changed_ > 0)
      matching_.notes.push_back(
          fmt::format("{} {} the values of another layer than {}: paired by number, not by value",
                      human_count(changed_), changed_ == 1 ? "tensor holds" : "tensors hold",
                      changed_ == 1 ? "its number says" : "their numbers say"));
  }

 private:
  using KindKey = std::array<std::string, 3>;

  void repair(const KindKey& kind, const std::vector<Member>& members) {
    const std::vector<Numbers> expected = expected_numbers(
        members, [&](std::size_t slot) { return known_map(kind, members, slot); },
        [&](std::size_t slot_a, std::size_t slot_b, const Counting::Map& map) {
          return counting_.all_follow({path_to(kind[0], slot_a), path_to(kind[1], slot_b)}, map);
        });
    std::map<std::size_t, std::size_t> moves;  // Pair to tensor of B.
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (expected[i] == members[i].b) continue;
      const auto found = by_name_.find({kind[1], expected[i]});
      if (found == by_name_.end()) continue;
      // Numbers of the parts of a block ("conv1") count no blocks where sizes differ.
      if (elements_b_[found->second] != elements_b_[matching_.pairs[members[i].pair].b]) return;
      moves[members[i].pair] = found->second;
    }
    if (!is_closed(moves)) return;
    for (const auto& [pair, b] : moves) matching_.pairs[pair].b = b;
    changed_ += moves.size();
  }

  // The way of counting that all kinds inside the same blocks share, where most of these follow it
  // or nearly all others do.
  std::optional<SlotMap> known_map(const KindKey& kind, const std::vector<Member>& members,
                                   std::size_t slot_b) {
    std::optional<SlotMap> best;
    for (std::size_t slot = 0; slot < members[0].a.size(); ++slot) {
      const Counting::Paths paths{path_to(kind[0], slot), path_to(kind[1], slot_b)};
      const Counting::Map* map = counting_.of(paths);
      if (!map || map->size() < 2) continue;
      SlotMap found{false, slot, *map, 0, false};
      for (const Member& member : members)
        found.agreeing += map->at(member.a[slot]) == member.b[slot_b];
      const bool follows = 2 * found.agreeing > members.size() ||
                           counting_.is_sure(paths, *map, members.size(), found.agreeing);
      if (follows && (!best || found.agreeing > best->agreeing)) best = std::move(found);
    }
    return best;
  }

  // Whether tensors only change places among these pairs.
  bool is_closed(const std::map<std::size_t, std::size_t>& moves) const {
    std::multiset<std::size_t> before, after;
    for (const auto& [pair, b] : moves) {
      before.insert(matching_.pairs[pair].b);
      after.insert(b);
    }
    return before == after;
  }

  Matching& matching_;
  std::vector<std::string> names_b_;
  std::vector<uint64_t> elements_b_;
  std::map<KindKey, std::vector<Member>> groups_;
  Counting counting_;
  std::map<Parsed, std::size_t> by_name_;
  std::size_t changed_ = 0;
};

}  // namespace

std::vector<std::string> with_first_numbers(const std::vector<std::string>& names) {
  // All paths to a part, so that "x/decoder_1" tells of "x/decoder".
  std::unordered_set<std::string_view> paths;
  for (const std::string& name : names)
    for (std::size_t end = 0; (end = name.find_first_of("./", end)) != std::string::npos; ++end)
      paths.insert(std::string_view(name).substr(0, end));
  std::vector<std::string> result;
  result.reserve(names.size());
  for (const std::string& name : names) {
    std::string numbered;
    std::size_t begin = 0;
    for (std::size_t end = 0; (end = name.find_first_of("./", begin)) != std::string::npos;
         begin = end) {
      numbered.append(name, begin, end - begin);
      if (paths.contains(name.substr(0, end) + "_1")) numbered += "_0";
      numbered += name[end++];
    }
    numbered.append(name, begin);
    result.push_back(std::move(numbered));
  }
  return result;
}

void pair_by_numbers(const MatchInput& input, Matching& matching) {
  // Names are only read again where values made a pair.
  if (std::ranges::any_of(matching.pairs, is_by_value)) Exchange(input, matching).run();
}

}  // namespace tensordiff
