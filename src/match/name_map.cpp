#include "match/name_map.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "match/exchanged.h"
#include "match/signature.h"
#include "naming/numbered_name.h"

namespace tensordiff {
namespace {

// What the names of others must say more clearly than the values do: one kind of evidence in full.
constexpr double kClearlyMore = 1;
constexpr double kEvidenceMax = 4;          // Of layer, module, kind and leaf together.
constexpr std::size_t kDoubtsMax = 2'000;   // Of one group: each is held against each.
constexpr uint64_t kElementsMax = 1 << 24;  // As in the value strategy.
constexpr double kSame = 0.05;              // In standard errors, as where parts are sought.

// What a name says of where its tensor belongs, from the outside in.
enum Feature : std::size_t {
  kContainer,  // "h.0" of "h.0.attn.proj.weight": up to the last number before the module.
  kModule,     // "h.0.attn.proj"
  kKind,       // "h.#.attn.proj.weight"
  kNear,       // "proj.weight"
  kLeaf,       // "weight"
  kFeatures,
};
using Features = std::array<std::string, kFeatures>;

std::size_t last_mark(std::string_view name, std::size_t before) {
  const std::size_t at = name.substr(0, before).find_last_of("./");
  return at == std::string_view::npos ? 0 : at;
}

// All paths that modules lie in.
using Paths = std::unordered_set<std::string>;

Paths containers_of(const std::vector<std::string>& names) {
  Paths paths;
  for (const std::string& name : names)
    for (std::size_t end = last_mark(name, last_mark(name, name.size())); end > 0;
         end = last_mark(name, end))
      if (!paths.insert(name.substr(0, end)).second) break;
  return paths;
}

Features features_of(const std::string& name, const Paths& containers) {
  Features features;
  const std::size_t leaf = last_mark(name, name.size());
  const std::size_t near = last_mark(name, leaf);
  features[kModule] = name.substr(0, leaf);
  features[kLeaf] = name.substr(leaf);
  features[kNear] = name.substr(near);
  // A number alone counts layers; one behind a word is part of it: "fc_1" is not "fc_2".
  const std::string_view last = std::string_view(name).substr(near, leaf - near);
  const bool counts = last.find_first_not_of("./0123456789") == std::string_view::npos;
  features[kKind] = numbered_name(counts ? features[kModule] : name.substr(0, near)).pattern +
                    (counts ? features[kLeaf] : features[kNear]);
  // A parameter of a block itself, beside its modules: "h.0.scale".
  const std::size_t end = containers.contains(features[kModule]) ? leaf : near;
  const std::size_t digit = name.substr(0, end).find_last_of("0123456789");
  if (digit != std::string::npos)
    features[kContainer] = name.substr(0, name.find_first_of("./", digit));
  return features;
}

// How often a word of A stands for a word of B. Words are numbers from here on.
class Tally {
 public:
  void add(uint32_t a, uint32_t b, int count) {
    both_[key(a, b)] += count;
    of_a_[a] += count;
    of_b_[b] += count;
  }
  // From 0, where they never do or nothing is known, to 1, where they always do.
  double affinity(uint32_t a, uint32_t b) const {
    const auto found = both_.find(key(a, b));
    if (found == both_.end() || found->second <= 0) return 0;
    return found->second / static_cast<double>(std::max(of_a_.at(a), of_b_.at(b)));
  }

 private:
  static uint64_t key(uint32_t a, uint32_t b) { return uint64_t{a} << 32 | b; }

  std::unordered_map<uint64_t, int> both_;
  std::unordered_map<uint32_t, int> of_a_, of_b_;
};

// Names as numbers of their features; 0 for none.
using Words = std::array<uint32_t, kFeatures>;

std::vector<Words> words_of(const std::vector<std::string>& names) {
  std::unordered_map<std::string, uint32_t> numbers = {{"", 0}};
  const Paths containers = containers_of(names);
  std::vector<Words> result(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    const Features features = features_of(names[i], containers);
    for (std::size_t k = 0; k < kFeatures; ++k)
      result[i][k] =
          numbers.emplace(features[k], static_cast<uint32_t>(numbers.size())).first->second;
  }
  return result;
}

// Whether both names say which parameter they are, and not the same: "weight" and "beta".
bool contradict(const Place& a, const Place& b) {
  return a.parameter != Param::none && b.parameter != Param::none && a.parameter != b.parameter;
}

// The map of names that the pairs show.
class NameMap {
 public:
  explicit NameMap(const MatchInput& input)
      : a_(words_of(with_first_numbers(names_of(input.a).names))),
        b_(words_of(with_first_numbers(names_of(input.b).names))),
        places_a_(input.side_a.places),
        places_b_(input.side_b.places) {}

  void add(const Pair& pair, int count) {
    const Words &a = a_[pair.a], &b = b_[pair.b];
    for (std::size_t i = 0; i < kFeatures; ++i) {
      // Of what is fused or cut only the layer is kept.
      const bool whole = !pair.section_a && !pair.section_b;
      if (pair.tied || a[i] == 0 || b[i] == 0 || (!whole && i != kContainer)) continue;
      tallies_[i].add(a[i], b[i], count);
    }
  }
  double score(std::size_t a, std::size_t b) const {
    if (contradict(places_a_[a], places_b_[b])) return kContradiction;
    const auto of = [&](Feature feature) {
      return tallies_[feature].affinity(a_[a][feature], b_[b][feature]);
    };
    return of(kContainer) + of(kModule) + std::max(of(kKind), of(kNear)) + of(kLeaf);
  }
  uint64_t modules(const Pair& pair) const {
    return uint64_t{a_[pair.a][kModule]} << 32 | b_[pair.b][kModule];
  }
  uint64_t containers(const Pair& pair) const {
    return uint64_t{a_[pair.a][kContainer]} << 32 | b_[pair.b][kContainer];
  }
  bool same_leaves(const Pair& x, const Pair& y) const {
    return a_[x.a][kLeaf] == a_[y.a][kLeaf] && b_[x.b][kLeaf] == b_[y.b][kLeaf];
  }

 private:
  // What both names say outright outweighs all that others show.
  static constexpr double kContradiction = -kEvidenceMax;

  std::vector<Words> a_, b_;
  const std::vector<Place>&places_a_, &places_b_;
  std::array<Tally, kFeatures> tallies_;
};

bool is_plain(const Pair& pair) { return !pair.section_a && !pair.section_b && !pair.tied; }
bool is_by_value(const Pair& pair) { return is_plain(pair) && pair.matched_by == &matchers::value; }
bool is_by_meaning(const Pair& pair) {
  return is_plain(pair) &&
         (pair.matched_by == &matchers::conventions || pair.matched_by == &matchers::fuzzy);
}

// Two tensors that may change places.
struct Two {
  std::size_t one, other;  // Pairs.
};

class Mending {
 public:
  Mending(MatchInput& input, Matching& matching)
      : input_(input), matching_(matching), pairs_(matching.pairs), map_(input) {
    for (const Pair& pair : pairs_) map_.add(pair, 1);
    for (std::size_t i = 0; i < pairs_.size(); ++i)
      by_module_[map_.modules(pairs_[i])].push_back(i);
  }

  void run() {
    const std::vector<std::size_t> doubtful = doubts(is_by_value);
    for (const std::vector<std::size_t>& group : groups_of(doubtful)) exchange(group);
    if (doubtful.size() <= kDoubtsMax) give_up(doubtful);
    if (doubtful.size() > kDoubtsMax)
      matching_.notes.push_back(fmt::format(
          "{} pairs by value stand against names: only those of one size, and of one block where "
          "there are more than {} of a size, were held against each other",
          human_count(doubtful.size()), human_count(kDoubtsMax)));
    if (changed_ > 0)
      matching_.notes.push_back(
          fmt::format("{} {} the values of another tensor than {}: paired by name, not by value",
                      human_count(changed_), changed_ == 1 ? "tensor holds" : "tensors hold",
                      changed_ == 1 ? "its name says" : "their names say"));
    if (input_.options.read_values && !input_.free_a.empty() && !input_.free_b.empty()) take_up();
  }

 private:
  uint64_t elements(std::size_t pair) const { return input_.a.tensors[pairs_[pair].a].elements(); }

  // Pairs that stand against some others: less than all of the evidence there could be.
  std::vector<std::size_t> doubts(bool (*wanted)(const Pair&)) {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < pairs_.size(); ++i) {
      if (!wanted(pairs_[i])) continue;
      map_.add(pairs_[i], -1);
      if (map_.score(pairs_[i].a, pairs_[i].b) < kEvidenceMax) result.push_back(i);
      map_.add(pairs_[i], 1);
    }
    return result;
  }

  // How much more the names of all other pairs speak for the exchange of these; nothing where one
  // of them is better off as it is.
  double gain(std::span<const Two> twos) {
    for (const Two& two : twos) map_.add(pairs_[two.one], -1), map_.add(pairs_[two.other], -1);
    double sum = 0;
    bool all = true;
    for (const auto& [one, other] : twos) {
      const Pair &x = pairs_[one], &y = pairs_[other];
      const double of_x = map_.score(x.a, y.b) - map_.score(x.a, x.b);
      const double of_y = map_.score(y.a, x.b) - map_.score(y.a, y.b);
      all &= of_x > 0 && of_y > 0;
      sum += of_x + of_y;
    }
    for (const Two& two : twos) map_.add(pairs_[two.one], 1), map_.add(pairs_[two.other], 1);
    return all ? sum : 0;
  }

  void carry_out(std::span<const Two> twos) {
    for (const Two& two : twos) {
      Pair &x = pairs_[two.one], &y = pairs_[two.other];
      map_.add(x, -1), map_.add(y, -1);
      std::swap(x.b, y.b);
      map_.add(x, 1), map_.add(y, 1);
      changed_ += 2;
    }
  }

  // All parameters of two modules; none where not all of them could change places.
  std::vector<Two> modules(std::size_t one, std::size_t other) const {
    const auto of_one = by_module_.find(map_.modules(pairs_[one]));
    const auto of_other = by_module_.find(map_.modules(pairs_[other]));
    if (of_one == by_module_.end() || of_other == by_module_.end() || of_one == of_other) return {};
    std::vector<Two> twos;
    for (const std::size_t i : of_one->second)
      for (const std::size_t j : of_other->second)
        if (is_by_value(pairs_[i]) && is_by_value(pairs_[j]) && elements(i) == elements(j) &&
            map_.same_leaves(pairs_[i], pairs_[j]))
          twos.push_back({i, j});
    const bool all = twos.size() == of_one->second.size() && twos.size() == of_other->second.size();
    return all && twos.size() > 1 ? twos : std::vector<Two>();
  }

  // Those that may change places: all of one size; where these are too many, those of one block.
  std::vector<std::vector<std::size_t>> groups_of(const std::vector<std::size_t>& doubtful) const {
    std::map<uint64_t, std::vector<std::size_t>> by_size;
    for (const std::size_t each : doubtful) by_size[elements(each)].push_back(each);
    std::vector<std::vector<std::size_t>> groups;
    for (auto& [size, members] : by_size) {
      if (members.size() <= kDoubtsMax) {
        groups.push_back(std::move(members));
        continue;
      }
      std::map<uint64_t, std::vector<std::size_t>> by_block;
      for (const std::size_t each : members)
        by_block[map_.containers(pairs_[each])].push_back(each);
      for (auto& [block, some] : by_block)
        if (some.size() <= kDoubtsMax) groups.push_back(std::move(some));
    }
    return groups;
  }

  void exchange(const std::vector<std::size_t>& doubtful) {
    for (std::size_t i = 0; i < doubtful.size(); ++i)
      for (std::size_t j = i + 1; j < doubtful.size(); ++j) {
        const std::size_t one = doubtful[i], other = doubtful[j];
        const std::vector<Two> whole = modules(one, other);
        const Two alone[] = {{one, other}};
        if (gain(alone) >= 2 * kClearlyMore)
          carry_out(alone);
        else if (!whole.empty() && gain(whole) >= 2 * kClearlyMore)
          carry_out(whole);
      }
  }

  // A tensor of B that holds what its neighbour should, and leaves two tensors without a partner.
  void give_up(const std::vector<std::size_t>& doubtful) {
    for (const std::size_t index : doubtful) {
      const Pair pair = pairs_[index];
      map_.add(pair, -1);
      const double as_is = map_.score(pair.a, pair.b);
      const auto best = [&](const Catalog& side, const std::vector<std::size_t>& free,
                            const auto& score) {
        std::pair<double, std::size_t> found{as_is, side.tensors.size()};
        for (const std::size_t each : free)
          if (side.tensors[each].elements() == elements(index) && score(each) > found.first)
            found = {score(each), each};
        return found;
      };
      const auto [of_b, a] =
          best(input_.a, input_.free_a, [&](std::size_t each) { return map_.score(each, pair.b); });
      const auto [of_a, b] =
          best(input_.b, input_.free_b, [&](std::size_t each) { return map_.score(pair.a, each); });
      const bool found = a < input_.a.tensors.size() && b < input_.b.tensors.size();
      if (found && of_a + of_b >= 2 * (as_is + kClearlyMore)) {
        part(index, a, b);
        ++changed_;
      }
      map_.add(pairs_[index], 1);
    }
  }

  // A pair becomes two, with a tensor of each side that had none.
  void part(std::size_t index, std::size_t a, std::size_t b) {
    Pair other = pairs_[index];
    other.a = a;
    pairs_[index].b = b;
    std::erase(input_.free_a, a);
    std::erase(input_.free_b, b);
    map_.add(other, 1);
    pairs_.push_back(std::move(other));
  }

  bool hold_the_same(std::size_t a, std::size_t b) const {
    const Tensor &of_a = input_.a.tensors[a], &of_b = input_.b.tensors[b];
    if (of_a.elements() != of_b.elements()) return false;
    const Signature signature = signature_of(of_a, kElementsMax);
    return signature.varied && distance(signature, signature_of(of_b, kElementsMax)) <= kSame;
  }

  // Pairs that names made against all other names, where values know better.
  void take_up() {
    for (const std::size_t index : doubts(is_by_meaning)) {
      const Pair pair = pairs_[index];
      if (hold_the_same(pair.a, pair.b)) continue;
      const auto a = std::ranges::find_if(
          input_.free_a, [&](std::size_t each) { return hold_the_same(each, pair.b); });
      const auto b = std::ranges::find_if(
          input_.free_b, [&](std::size_t each) { return hold_the_same(pair.a, each); });
      if (a == input_.free_a.end() || b == input_.free_b.end()) continue;
      map_.add(pair, -1);
      const double as_is = map_.score(pair.a, pair.b);
      const bool better = map_.score(*a, pair.b) > as_is && map_.score(pair.a, *b) > as_is;
      if (better) {
        part(index, *a, *b);
        pairs_[index].matched_by = pairs_.back().matched_by = &matchers::value;
      }
      map_.add(pairs_[index], 1);
    }
  }

  MatchInput& input_;
  Matching& matching_;
  std::vector<Pair>& pairs_;
  NameMap map_;
  std::unordered_map<uint64_t, std::vector<std::size_t>> by_module_;
  std::size_t changed_ = 0;
};

}  // namespace

void pair_by_name_map(MatchInput& input, Matching& matching) {
  const bool may_take_up =
      input.options.read_values && !input.free_a.empty() && !input.free_b.empty();
  // Names are only read again where values made a pair, or could make one.
  if (may_take_up || std::ranges::any_of(matching.pairs, is_by_value))
    Mending(input, matching).run();
}

}  // namespace tensordiff
