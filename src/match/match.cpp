// Runs the chain of strategies, each on what the last left over, and puts the pairs in the order in
// which a model computes them.

#include <algorithm>
#include <charconv>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "base/parallel.h"
#include "base/text.h"
#include "match/checkpoint.h"
#include "match/crosswise.h"
#include "match/exchanged.h"
#include "match/matcher.h"
#include "match/name_map.h"
#include "match/nearest.h"
#include "match/predicted.h"
#include "match/renumber.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

std::string known_names() {
  std::string names;
  for (const Matcher* matcher : matchers::kAll) {
    if (!names.empty()) names += ", ";
    names += matcher->name;
  }
  return names;
}

// The strategies asked for, in the order of the list whatever the order they were asked in.
Result<std::vector<const Matcher*>> chain_of(const MatchOptions& options) {
  std::vector<const Matcher*> chain(std::begin(matchers::kAll), std::end(matchers::kAll));
  if (options.strategies.empty()) return chain;
  for (const std::string& name : options.strategies)
    if (std::ranges::find(chain, name, &Matcher::name) == chain.end())
      return Error("no matching strategy is called '{}'; there are: {}", printable(name),
                   known_names());
  std::erase_if(chain, [&](const Matcher* matcher) {
    return std::ranges::find(options.strategies, matcher->name) == options.strategies.end();
  });
  return chain;
}

std::vector<std::size_t> all_of(const Catalog& catalog) {
  std::vector<std::size_t> indexes(catalog.tensors.size());
  std::iota(indexes.begin(), indexes.end(), 0);
  return indexes;
}

// Which tensors of one side have a partner.
class Taken {
 public:
  explicit Taken(const Catalog& catalog) : taken_(catalog.tensors.size()) {}
  bool has(std::size_t index) const { return taken_[index]; }
  void add(std::size_t index) { taken_[index] = true; }
  void remove_from(std::vector<std::size_t>& free) const {
    std::erase_if(free, [&](std::size_t index) { return taken_[index]; });
  }

 private:
  std::vector<bool> taken_;
};

// Where a stage stands in its layer, and which call of it was recorded: "query_2" is the third.
struct StagePlace {
  std::size_t rank = 0;  // All beyond the known stages have one, and go by name.
  uint64_t call = 0;
};

StagePlace place_of_stage(std::string_view stage) {
  const auto stages = known_stages();
  StagePlace place;
  const std::size_t end = stage.find_last_not_of("0123456789");
  if (end != std::string_view::npos && end > 0 && end + 1 < stage.size() && stage[end] == '_') {
    const std::string_view digits = stage.substr(end + 1);
    std::from_chars(digits.data(), digits.data() + digits.size(), place.call);
    stage = stage.substr(0, end);
  }
  place.rank = static_cast<std::size_t>(std::ranges::find(stages, stage) - stages.begin());
  return place;
}

void sort_for_display(std::vector<Pair>& pairs) {
  const auto key = [](const Pair& pair) {
    const StagePlace place = place_of_stage(pair.stage);
    const bool known = place.rank < known_stages().size();
    return std::tuple(!pair.layer.has_value(), pair.layer.value_or(0), place.rank,
                      known ? place.call : 0, std::string_view(pair.stage), pair.a);
  };
  std::ranges::sort(pairs, [&](const Pair& x, const Pair& y) {
    const auto section = [](const Pair& pair) {
      return pair.section_a ? pair.section_a->index : 0;
    };
    if (!x.layer && !y.layer) return std::pair(x.a, section(x)) < std::pair(y.a, section(y));
    return key(x) < key(y);
  });
}

// Whether names speak of what modules put out, and not of weights.
bool holds_activations(const Catalog& catalog) {
  return std::ranges::none_of(catalog.tensors, [](const Tensor& tensor) {
    return tensor.place.known && tensor.place.parameter != Param::none;
  });
}

// Which layer a tensor belongs to, as far as its name says so.
class Layers {
 public:
  Layers(const Catalog& catalog, const MatchOptions& options)
      : catalog_(catalog), options_(options), activations_(holds_activations(catalog)) {}

  std::optional<int64_t> of(std::size_t index) const {
    const Tensor& tensor = catalog_.tensors[index];
    const Place& place = tensor.place;
    if (const auto staged = layer_stage(tensor.name, place, options_)) return staged->layer;
    // A layer that a dump has not is no loss; a layer that a model has not is.
    if (!activations_ || !place.known || !place.layer_named) return std::nullopt;
    return place.layer_number();
  }

 private:
  const Catalog& catalog_;
  const MatchOptions& options_;
  bool activations_;
};

// What is left of one side. `side` tells which tensor of a pair is of that side.
std::vector<Leftover> leftovers(const Catalog& catalog, const std::vector<std::size_t>& free,
                                const std::vector<Pair>& pairs, std::size_t Pair::*side,
                                const MatchOptions& options) {
  if (free.empty()) return {};
  const Layers layers(catalog, options);
  std::unordered_set<int64_t> present;
  for (const Pair& pair : pairs)
    if (const auto layer = layers.of(pair.*side)) present.insert(*layer);
  std::vector<Leftover> left;
  for (const std::size_t tensor : free) {
    const auto layer = present.empty() ? std::nullopt : layers.of(tensor);
    left.push_back({tensor, layer && !present.contains(*layer)});
  }
  return left;
}

// Strategies that do what the user says, and those that go by the same name only.
bool is_by_hand(const Matcher* matcher) {
  return matcher == &matchers::manual || matcher == &matchers::exec;
}
// A copy stands for another tensor only where nothing else belongs to it: that one is asked last.
bool is_of_copies(const Matcher* matcher) { return matcher == &matchers::copy; }
bool is_by_name(const Matcher* matcher) {
  return matcher == &matchers::exact || matcher == &matchers::prefix;
}

// Takes out of a list what a predicate wants, in order.
template <class Wanted>
std::vector<std::size_t> take_if(std::vector<std::size_t>& list, const Wanted& wanted) {
  std::vector<std::size_t> taken;
  std::ranges::copy_if(list, std::back_inserter(taken), wanted);
  std::erase_if(list, wanted);
  return taken;
}

void add_sorted(std::vector<std::size_t>& list, const std::vector<std::size_t>& more) {
  list.insert(list.end(), more.begin(), more.end());
  std::ranges::sort(list);
}

// Adds what a strategy proposes, but for tensors that have a partner already.
class Chain {
 public:
  Chain(const MatchInput& input, Matching& matching)
      : taken_a_(input.a), taken_b_(input.b), matching_(matching) {}

  Result<void> run(const Matcher& matcher, MatchInput& input) {
    Proposal proposal = TRY(matcher.propose(input));
    for (Pair& pair : proposal.pairs) {
      // A strategy that claims a tensor twice is wrong about one of them; the first stands.
      // One that holds several, section by section, may have as many partners.
      const bool claimed_a = taken_a_.has(pair.a) && !pair.section_a && !pair.tied;
      const bool claimed_b = taken_b_.has(pair.b) && !pair.section_b && !pair.tied;
      assert(!claimed_a && !claimed_b);
      if (claimed_a || claimed_b) continue;
      taken_a_.add(pair.a);
      taken_b_.add(pair.b);
      pair.matched_by = &matcher;
      matching_.pairs.push_back(std::move(pair));
    }
    for (std::string& note : proposal.notes) matching_.notes.push_back(std::move(note));
    taken_a_.remove_from(input.free_a);
    taken_b_.remove_from(input.free_b);
    return {};
  }

 private:
  Taken taken_a_, taken_b_;
  Matching& matching_;
};

// What the pairs of two checkpoints together say of each of them, and of those without a partner.
void mend_weights(const std::vector<const Matcher*>& chain, MatchInput& input, Matching& matching) {
  pair_by_numbers(input, matching);
  pair_by_prediction(input, matching);
  pair_by_name_map(input, matching);
  if (std::ranges::find(chain, &matchers::shape) != chain.end()) pair_last(input, matching);
}

}  // namespace

constinit const Matcher kEachWithEach = {
    .name = "each-with-each",
    .summary = "one input alone: each tensor with each other",
    .propose = nullptr,
};

const Matcher* matcher_named(std::string_view name) {
  if (name == kEachWithEach.name) return &kEachWithEach;
  const auto found = std::ranges::find(matchers::kAll, name, &Matcher::name);
  return found == std::end(matchers::kAll) ? nullptr : *found;
}

NamesOf names_of(const Catalog& catalog) {
  NamesOf side;
  side.names.reserve(catalog.tensors.size());
  side.places.reserve(catalog.tensors.size());
  for (const Tensor& tensor : catalog.tensors) {
    side.names.push_back(tensor.pairing_name());
    side.places.push_back(tensor.place);
  }
  return side;
}

std::optional<LayerStage> layer_stage(std::string_view name, const Place& place,
                                      const MatchOptions& options) {
  if (options.pattern) return options.pattern->place(name);
  if (!place.staged) return std::nullopt;
  return LayerStage{place.layer, std::string(stage_in(name, place)),
                    std::string(folder_in(name, place))};
}

Result<Matching> match(const Catalog& a, const Catalog& b, const MatchOptions& options) {
  std::vector<const Matcher*> chain = TRY(chain_of(options));
  // Weights are unlike each other, so that equal values say more than similar names. In dumps
  // several tensors may hold the same, and a mistake changes all that come after it.
  const bool weights = are_checkpoints(a, b);
  if (weights)
    std::ranges::stable_partition(chain, [](const Matcher* matcher) {
      return matcher != &matchers::fuzzy && matcher != &matchers::shape;
    });
  Renumbering renumbering = renumber(a, b, options);
  Matching matching;
  MatchInput input{.a = a,
                   .b = b,
                   .free_a = all_of(a),
                   .free_b = all_of(b),
                   .options = options,
                   .side_a = names_of(a),
                   .side_b = std::move(renumbering.side_b),
                   .pairs = &matching.pairs};
  Chain pairing(input, matching);
  // What is no weight is paired by its name, and never taken for a weight.
  const auto aside = [](const Catalog& side, std::vector<std::size_t>& free) {
    return take_if(free, [&](std::size_t i) { return !side.tensors[i].auxiliary.empty(); });
  };
  const auto run = [&](bool (*wanted)(const Matcher*)) -> Result<void> {
    for (const Matcher* matcher : chain)
      if (wanted(matcher)) TRY(pairing.run(*matcher, input));
    return {};
  };
  TRY(run([](const Matcher* each) { return is_by_hand(each); }));
  std::vector<std::size_t> aside_a = aside(a, input.free_a), aside_b = aside(b, input.free_b);
  TRY(run([](const Matcher* each) { return !is_by_hand(each) && !is_of_copies(each); }));
  if (weights) {
    mend_weights(chain, input, matching);
    TRY(run(is_of_copies));
  } else if (std::ranges::find(chain, &matchers::value) != chain.end())
    uncross(input, matching);
  input.free_a.swap(aside_a);
  input.free_b.swap(aside_b);
  if (!input.free_a.empty() && !input.free_b.empty())
    TRY(run([](const Matcher* each) { return is_by_name(each); }));
  add_sorted(input.free_a, aside_a);
  add_sorted(input.free_b, aside_b);
  // What was renumbered matters where it made a pair.
  if (std::ranges::any_of(matching.pairs, [&](const Pair& pair) {
        return input.side_b.names[pair.b] != b.tensors[pair.b].pairing_name();
      }))
    matching.notes.insert(matching.notes.begin(), renumbering.notes.begin(),
                          renumbering.notes.end());
  sort_for_display(matching.pairs);
  matching.only_a = leftovers(a, input.free_a, matching.pairs, &Pair::a, options);
  matching.only_b = leftovers(b, input.free_b, matching.pairs, &Pair::b, options);
  for_each_index(2, [&](std::size_t side) {
    if (side == 0)
      find_nearest(a, {b, matching.only_b, options.fuzzy_threshold}, matching.only_a);
    else
      find_nearest(b, {a, matching.only_a, options.fuzzy_threshold}, matching.only_b);
  });
  return matching;
}

Matching match_within(const Catalog& catalog) {
  Matching matching;
  const std::size_t count = catalog.tensors.size();
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count && matching.pairs.size() < kPairsWithinMax; ++b)
      matching.pairs.push_back(
          {.a = a, .b = b, .layer = {}, .stage = {}, .matched_by = &kEachWithEach});
  if (count > 1 && count * (count - 1) / 2 > kPairsWithinMax)
    matching.notes.push_back(fmt::format(
        "{} tensors make {} pairs, of which the first {} are compared: --path selects fewer "
        "tensors, "
        "--sort similarity --top N shows the most alike",
        human_count(count), human_count(count * (count - 1) / 2), human_count(kPairsWithinMax)));
  return matching;
}

}  // namespace tensordiff
