// Runs the chain of strategies, each on what the last left over, and puts the pairs in the order in
// which a model computes them.

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_set>

#include "base/text.h"
#include "match/matcher.h"
#include "match/words.h"

namespace tensordiff {
namespace {

// Names that are compared to say what is nearest to what is left; more would take seconds.
constexpr std::size_t kLikenessesMax = 1 << 20;

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

std::size_t rank_of_stage(std::string_view stage) {
  const auto stages = known_stages();
  return static_cast<std::size_t>(std::ranges::find(stages, stage) - stages.begin());
}

void sort_for_display(std::vector<Pair>& pairs) {
  const auto key = [](const Pair& pair) {
    // All stages beyond the known ones have one rank and go by name.
    return std::tuple(!pair.layer.has_value(), pair.layer.value_or(0), rank_of_stage(pair.stage),
                      std::string_view(pair.stage), pair.a);
  };
  std::ranges::sort(pairs, [&](const Pair& x, const Pair& y) {
    const auto section = [](const Pair& pair) {
      return pair.section_a ? pair.section_a->index : 0;
    };
    if (!x.layer && !y.layer) return std::pair(x.a, section(x)) < std::pair(y.a, section(y));
    return key(x) < key(y);
  });
}

std::optional<int64_t> layer_of(const Catalog& catalog, std::size_t tensor) {
  const auto place = parse_layer_stage(catalog.tensors[tensor].name);
  return place ? std::optional(place->layer) : std::nullopt;
}

// What is left of one side. `side` tells which tensor of a pair is of that side.
std::vector<Leftover> leftovers(const Catalog& catalog, const std::vector<std::size_t>& free,
                                const std::vector<Pair>& pairs, std::size_t Pair::*side) {
  std::unordered_set<int64_t> present;
  for (const Pair& pair : pairs)
    if (const auto layer = layer_of(catalog, pair.*side)) present.insert(*layer);
  std::vector<Leftover> left;
  for (const std::size_t tensor : free) {
    const auto layer = present.empty() ? std::nullopt : layer_of(catalog, tensor);
    left.push_back({tensor, layer && !present.contains(*layer)});
  }
  return left;
}

// So that whoever reads of an unpaired tensor sees what it may have been meant for.
void find_nearest(const Catalog& own, const Catalog& other, std::vector<Leftover>& leftovers) {
  if (leftovers.size() * other.tensors.size() > kLikenessesMax) return;
  std::vector<NameWords> words;
  for (const Tensor& tensor : other.tensors)
    words.push_back(leftovers.empty() ? NameWords{} : name_words(tensor.name));
  for (Leftover& left : leftovers) {
    const NameWords name = name_words(own.tensors[left.tensor].name);
    for (std::size_t i = 0; i < words.size(); ++i) {
      const double likeness = similarity(name, words[i]);
      if (likeness <= left.likeness) continue;
      left.nearest = i;
      left.likeness = likeness;
    }
  }
}

}  // namespace

Result<Matching> match(const Catalog& a, const Catalog& b, const MatchOptions& options) {
  const std::vector<const Matcher*> chain = TRY(chain_of(options));
  MatchInput input{a, b, all_of(a), all_of(b), options};
  Taken taken_a(a), taken_b(b);
  Matching matching;
  for (const Matcher* matcher : chain) {
    Proposal proposal = matcher->propose(input);
    for (Pair& pair : proposal.pairs) {
      // A strategy that claims a tensor twice is wrong about one of them; the first stands.
      // One that holds several, section by section, may have as many partners.
      const bool claimed_a = taken_a.has(pair.a) && !pair.section_a;
      const bool claimed_b = taken_b.has(pair.b) && !pair.section_b;
      assert(!claimed_a && !claimed_b);
      if (claimed_a || claimed_b) continue;
      taken_a.add(pair.a);
      taken_b.add(pair.b);
      pair.matched_by = matcher->name;
      matching.pairs.push_back(std::move(pair));
    }
    for (std::string& note : proposal.notes) matching.notes.push_back(std::move(note));
    taken_a.remove_from(input.free_a);
    taken_b.remove_from(input.free_b);
  }
  sort_for_display(matching.pairs);
  matching.only_a = leftovers(a, input.free_a, matching.pairs, &Pair::a);
  matching.only_b = leftovers(b, input.free_b, matching.pairs, &Pair::b);
  find_nearest(a, b, matching.only_a);
  find_nearest(b, a, matching.only_b);
  return matching;
}

Matching match_within(const Catalog& catalog) {
  Matching matching;
  const std::size_t count = catalog.tensors.size();
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count && matching.pairs.size() < kPairsWithinMax; ++b)
      matching.pairs.push_back(
          {.a = a, .b = b, .layer = {}, .stage = {}, .matched_by = "each-with-each"});
  if (count > 1 && count * (count - 1) / 2 > kPairsWithinMax)
    matching.notes.push_back(fmt::format(
        "{} tensors make {} pairs, of which the first {} are compared: --path takes fewer tensors, "
        "--sort similarity --top N shows the most alike",
        human_count(count), human_count(count * (count - 1) / 2), human_count(kPairsWithinMax)));
  return matching;
}

}  // namespace tensordiff
