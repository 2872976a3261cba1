#include "match/name_map.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <unordered_map>

#include "base/text.h"
#include "match/exchanged.h"
#include "match/name_votes.h"
#include "match/signature.h"
#include "match/word_map.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

// What the names of others must say more clearly than the values do: one kind of evidence in full.
constexpr double kClearlyMore = 1;
constexpr std::size_t kDoubtsMax = 2'000;   // Of one group: each is held against each.
constexpr uint64_t kElementsMax = 1 << 24;  // As in the value strategy.
constexpr uint64_t kFew = 8;     // Elements: the value strategy takes those from there on.
constexpr double kRound = 1024;  // What is a whole number of these parts may be a setting.
constexpr double kSame = 0.05;   // In standard errors, as where parts are sought.

bool is_plain(const Pair& pair) { return !pair.section_a && !pair.section_b && !pair.tied; }
bool is_by_value(const Pair& pair) { return is_plain(pair) && pair.matched_by == &matchers::value; }
bool is_by_name(const Pair& pair) {
  return is_plain(pair) &&
         (pair.matched_by == &matchers::exact || pair.matched_by == &matchers::prefix);
}
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
  Mending(MatchInput& input, Matching& matching, std::size_t changed)
      : input_(input), matching_(matching), pairs_(matching.pairs), map_(input), changed_(changed) {
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
          "{} pairs made by value contradict the names: exchanges were looked for among tensors of "
          "one size only, and in one block only where a size has more than {}",
          human_count(doubtful.size()), human_count(kDoubtsMax)));
    if (changed_ > 0)
      matching_.notes.push_back(
          fmt::format("{} {} the values of another tensor than {}: paired by name, not by value",
                      human_count(changed_), changed_ == 1 ? "tensor holds" : "tensors hold",
                      changed_ == 1 ? "its name says" : "their names say"));
    if (input_.options.read_values && !input_.free_a.empty() && !input_.free_b.empty()) {
      take_up();
      take_up_modules();
      pair_left();
      pair_equal();
    }
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

  // The tensor without a partner that holds the same as this one, which is of the other side.
  std::optional<std::size_t> twin(const Catalog& side, const std::vector<std::size_t>& free,
                                  const Tensor& tensor,
                                  const std::function<bool(std::size_t)>& same) {
    for (const std::size_t each : free)
      if (side.tensors[each].elements() == tensor.elements() && tries_-- > 0 && same(each))
        return each;
    return std::nullopt;
  }

  // Modules of the same name that hold other values: "head.layers.0" of A is "head.proj_in" of B,
  // and its "head.layers.1" is called "head.layers.0" there. All parameters must say so.
  void take_up_modules() {
    struct Move {
      std::size_t pair, a, b;
    };
    for (const auto& [key, members] : by_module_) {
      std::vector<Move> moves;
      std::set<uint32_t> of_a, of_b;
      for (const std::size_t index : members) {
        const Pair& pair = pairs_[index];
        if (!is_by_name(pair)) break;
        const Tensor &one = input_.a.tensors[pair.a], &other = input_.b.tensors[pair.b];
        const auto a = twin(input_.a, input_.free_a, other,
                            [&](std::size_t each) { return hold_the_same(each, pair.b); });
        const auto b = a ? twin(input_.b, input_.free_b, one,
                                [&](std::size_t each) { return hold_the_same(pair.a, each); })
                         : std::nullopt;
        if (!b || hold_the_same(pair.a, pair.b)) break;
        moves.push_back({index, *a, *b});
        of_a.insert(map_.module_of_a(*a));
        of_b.insert(map_.module_of_b(*b));
      }
      if (moves.size() != members.size() || of_a.size() != 1 || of_b.size() != 1) continue;
      const auto& [first, first_a, first_b] = moves[0];
      matching_.notes.push_back(fmt::format(
          "by their values '{}' is '{}', and '{}' is '{}'{}: another has the same name",
          printable(input_.side_a.names[pairs_[first].a]), printable(input_.side_b.names[first_b]),
          printable(input_.side_a.names[first_a]), printable(input_.side_b.names[pairs_[first].b]),
          moves.size() > 1 ? ", and so are their other parameters" : ""));
      for (const auto& [index, a, b] : moves) {
        part(index, a, b);
        pairs_[index].matched_by = pairs_.back().matched_by = &matchers::value;
      }
    }
  }

  // Of two blocks that are one: the only tensors that are left of a name and a size. Values cannot
  // tell those of a few elements, such as one scale for each head.
  void pair_left() {
    using Key = std::tuple<uint32_t, std::string, uint64_t>;
    std::unordered_map<uint32_t, uint32_t> block_of;
    for (const Pair& pair : pairs_)
      if (const auto [a, b] = map_.blocks(pair); map_.is_one_block(pair)) block_of[a] = b;
    std::map<Key, std::vector<std::size_t>> of_a, of_b;
    const auto leaf = [](const std::string& name) {
      return name.substr(last_mark(name, name.size()));
    };
    for (const std::size_t a : input_.free_a)
      if (const auto found = block_of.find(map_.block_of_a(a)); found != block_of.end())
        of_a[{found->second, leaf(input_.side_a.names[a]), input_.a.tensors[a].elements()}]
            .push_back(a);
    for (const std::size_t b : input_.free_b)
      of_b[{map_.block_of_b(b), leaf(input_.side_b.names[b]), input_.b.tensors[b].elements()}]
          .push_back(b);
    for (const auto& [key, left] : of_a) {
      const auto found = of_b.find(key);
      if (left.size() != 1 || found == of_b.end() || found->second.size() != 1) continue;
      Pair pair{.a = left[0], .b = found->second[0], .layer = {}, .stage = {}, .matched_by = {}};
      pair.matched_by = &matchers::module;
      std::erase(input_.free_a, pair.a);
      std::erase(input_.free_b, pair.b);
      pairs_.push_back(std::move(pair));
    }
  }

  // The values of a tensor of a few elements, as text; empty where it has more, or where others may
  // well hold the same: nothing but round numbers.
  static std::string few_values(const Tensor& tensor) {
    const Result<Reader> reader = Reader::open(tensor.view);
    if (tensor.elements() > kFew || !tensor.fault.empty() || !tensor.shards.empty() || !reader.ok())
      return "";
    std::vector<double> values(tensor.elements());
    reader.value().values(0, values.size(), values.data());
    const auto is_round = [](double value) { return value * kRound == std::trunc(value * kRound); };
    if (std::ranges::all_of(values, is_round)) return "";
    return fmt::format("{}", fmt::join(values, " "));
  }

  // What is left in the end and too small for statistics, such as the scale of logits: the only two
  // that hold the same numbers.
  void pair_equal() {
    std::map<std::string, std::vector<std::size_t>> of_a, of_b;
    for (const std::size_t a : input_.free_a) of_a[few_values(input_.a.tensors[a])].push_back(a);
    for (const std::size_t b : input_.free_b) of_b[few_values(input_.b.tensors[b])].push_back(b);
    for (const auto& [values, left] : of_a) {
      const auto found = of_b.find(values);
      if (values.empty() || found == of_b.end() || left.size() != 1 || found->second.size() != 1)
        continue;
      Pair pair{.a = left[0], .b = found->second[0], .layer = {}, .stage = {}, .matched_by = {}};
      pair.matched_by = &matchers::value;
      std::erase(input_.free_a, pair.a);
      std::erase(input_.free_b, pair.b);
      pairs_.push_back(std::move(pair));
    }
  }

  MatchInput& input_;
  Matching& matching_;
  std::vector<Pair>& pairs_;
  NameMap map_;
  std::unordered_map<uint64_t, std::vector<std::size_t>> by_module_;
  std::size_t changed_;
  int64_t tries_ = kDoubtsMax;  // Tensors that are read to find twins of those paired by name.
};

}  // namespace

void pair_by_name_map(MatchInput& input, Matching& matching) {
  const bool may_take_up =
      input.options.read_values && !input.free_a.empty() && !input.free_b.empty();
  // Names are only read again where values made a pair, or could make one.
  if (!may_take_up && std::ranges::none_of(matching.pairs, is_found_by_value)) return;
  const std::size_t changed = exchange_by_words(input, matching.pairs);
  Mending(input, matching, changed).run();
}

}  // namespace tensordiff
