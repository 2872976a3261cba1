// A name is read as what it counts and a number. For layers that is the number that the name calls
// a layer, else the first that stands alone; what is left is what the name means by convention, or
// its text. For calls it is the number after a word for one ("step_3"), else a last one that stands
// alone ("0_query_1"). Names of the form "3_query" are left to the layer-stage strategy, which
// knows their folders.

#include "match/renumber.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "match/checkpoint.h"
#include "match/layer_pairing.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

using Digits = Place::Digits;

constexpr std::string_view kSeparators = "./_-:#";
constexpr std::size_t kDigitsMax = 9;

std::string_view text_of(std::string_view name, const Digits& digits) {
  return name.substr(digits.first, digits.size);
}

// The number that starts at a word's border and ends at `end`; nothing where there is none.
std::optional<Digits> number_before(std::string_view name, std::size_t end) {
  std::size_t first = end;
  while (first > 0 && name[first - 1] >= '0' && name[first - 1] <= '9') --first;
  const bool alone = first == 0 || kSeparators.find(name[first - 1]) != std::string_view::npos;
  if (first == end || end - first > kDigitsMax || !alone) return std::nullopt;
  return Digits{static_cast<uint32_t>(first), static_cast<uint32_t>(end - first)};
}

// The first number that stands alone with more behind it.
std::optional<Digits> first_alone(std::string_view name) {
  const std::size_t last = name.find_last_not_of(kSeparators);
  if (last == std::string_view::npos) return std::nullopt;
  for (std::size_t end = name.find_first_of(kSeparators); end <= last;
       end = name.find_first_of(kSeparators, end + 1))
    if (const std::optional<Digits> found = number_before(name, end)) return found;
  return std::nullopt;
}

// A name as what it counts and a number of it.
struct Counted {
  std::string what;
  int64_t number = 0;
  Digits place;  // Of the number in the name.
};

Counted counted(std::string_view name, const Digits& place, std::string what) {
  Counted result{std::move(what), 0, place};
  const std::string_view digits = text_of(name, place);
  std::from_chars(digits.data(), digits.data() + digits.size(), result.number);
  return result;
}

std::string with_number(std::string_view name, const Digits& place, std::string_view number) {
  std::string text(name);
  return text.replace(place.first, place.size, number);
}

std::optional<Counted> layer_in(std::string_view name, const Place& place) {
  if (place.staged) return std::nullopt;
  const std::optional<Digits> digits =
      place.layer_named && place.layer >= 0 ? place.layer_at : first_alone(name);
  if (!digits) return std::nullopt;
  return counted(name, *digits,
                 place.known ? fmt::format("{}|{}|{}", static_cast<int>(place.step),
                                           static_cast<int>(place.parameter), place.expert)
                             : with_number(name, *digits, "#"));
}

// What stands before a number at the end of a name: the name of what was called.
std::string_view before_last(std::string_view name, const Digits& number) {
  return name.substr(0, number.first - 1);
}

std::optional<Counted> call_in(std::string_view name, const Place& place) {
  if (place.count_at.size > 0)
    return counted(name, place.count_at, with_number(name, place.count_at, "#"));
  const std::optional<Digits> last = number_before(name, name.size());
  const bool is_layer = place.layer_named && !place.staged && last == place.layer_at;
  if (!last || is_layer || name.find_first_not_of(kSeparators) >= last->first) return std::nullopt;
  return counted(name, *last, std::string(before_last(name, *last)));
}

using Find = std::optional<Counted> (*)(std::string_view name, const Place& place);

// The tensors of one side by what they are and by their number.
using ByNumber = std::map<int64_t, std::size_t>;
using Counts = std::unordered_map<std::string, ByNumber>;

struct Side {
  const Catalog& catalog;
  std::vector<std::string> names;
  std::vector<Place> places;
  std::unordered_map<std::size_t, Digits> found = {};  // The numbers found last.

  // A name of the other numbers means what it meant before.
  void rename(std::size_t tensor, std::string name) {
    Place place = read_place(name);
    place.step = places[tensor].step;
    place.parameter = places[tensor].parameter;
    names[tensor] = std::move(name);
    places[tensor] = place;
  }

  // Those of `which` in which a number is found. What has a number twice is left out.
  Counts counts(Find find, const std::vector<std::size_t>& which) {
    Counts result;
    found.clear();
    std::unordered_set<std::string> ambiguous;
    for (const std::size_t i : which) {
      const std::optional<Counted> here = find(names[i], places[i]);
      if (!here) continue;
      found.emplace(i, here->place);
      if (!result[here->what].emplace(here->number, i).second) ambiguous.insert(here->what);
    }
    for (const std::string& what : ambiguous) result.erase(what);
    return result;
  }
};

bool overlap(const ByNumber& a, const ByNumber& b) {
  return std::ranges::any_of(a, [&](const auto& each) { return b.contains(each.first); });
}

void place(const std::string& what, const ByNumber& tensors, std::vector<Placed>& placed) {
  for (const auto& [number, tensor] : tensors) placed.push_back({tensor, number, what});
}

class Renumber {
 public:
  Renumber(const Catalog& a, const Catalog& b, const MatchOptions& options)
      : a_(side_of(a)), b_(side_of(b)), options_(options) {}

  Renumbering run() {
    if (options_.read_values && are_checkpoints(a_.catalog, b_.catalog)) shift_counted_on();
    const std::unordered_set<std::string_view> names_a(a_.names.begin(), a_.names.end());
    const std::unordered_set<std::string_view> names_b(b_.names.begin(), b_.names.end());
    const std::vector<std::size_t> own_a = missing(a_.names, names_b);
    const std::vector<std::size_t> own_b = missing(b_.names, names_a);
    if (!own_a.empty() && !own_b.empty()) {
      // Where a name is on both sides, its layer is the same on both, and so are all others.
      if (!shares_a_layer(a_, names_b)) shift_layers(own_a, own_b);
      shift_calls(own_a, own_b);
      one_call(own_a, own_b);
    }
    return {{std::move(b_.names), std::move(b_.places)}, std::move(notes_)};
  }

 private:
  static Side side_of(const Catalog& catalog) {
    NamesOf names = names_of(catalog);
    return {catalog, std::move(names.names), std::move(names.places)};
  }

  static std::vector<std::size_t> missing(const std::vector<std::string>& names,
                                          const std::unordered_set<std::string_view>& other) {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!other.contains(names[i])) result.push_back(i);
    return result;
  }

  static bool shares_a_layer(const Side& side, const std::unordered_set<std::string_view>& other) {
    for (std::size_t i = 0; i < side.names.size(); ++i)
      if (other.contains(side.names[i]) && layer_in(side.names[i], side.places[i])) return true;
    return false;
  }

  // Checkpoints of which one counts its layers from another number on, so that some numbers are on
  // both sides and mean two layers: where all values say so, by one distance.
  void shift_counted_on() {
    const Counts counts_a = all_counts(a_), counts_b = all_counts(b_);
    std::vector<Placed> placed_a, placed_b;
    for (const auto& [what, tensors] : counts_a) {
      const auto found = counts_b.find(what);
      if (found == counts_b.end()) continue;
      place(what, tensors, placed_a);
      place(what, found->second, placed_b);
    }
    const std::set<int64_t> layers_a = layers_of(placed_a), layers_b = layers_of(placed_b);
    const auto is_shared = [&](int64_t layer) { return layers_b.contains(layer); };
    if (layers_a == layers_b || std::ranges::none_of(layers_a, is_shared)) return;
    LayerPairing pairing = pair_layers({a_.catalog, placed_a}, {b_.catalog, placed_b},
                                       {.noun = "layer", .values_only = true});
    // One layer alone may hold what another one should.
    if (pairing.a_of_b.size() < 2 || 2 * pairing.a_of_b.size() < layers_b.size()) return;
    const auto distance = [](const auto& pair) { return pair.first - pair.second; };
    const int64_t first = distance(*pairing.a_of_b.begin());
    if (first == 0 || std::ranges::any_of(pairing.a_of_b, [&](const auto& pair) {
          return distance(pair) != first;
        }))
      return;
    rename_layers(pairing, counts_b);
    add_notes(pairing);
  }

  // Of all tensors; none where a name is not enough to tell what is counted.
  static Counts all_counts(Side& side) {
    std::vector<std::size_t> all(side.names.size());
    std::iota(all.begin(), all.end(), 0);
    Counts counts = side.counts(layer_in, all);
    std::size_t placed = 0;
    for (const auto& [what, tensors] : counts) placed += tensors.size();
    return placed == side.found.size() ? counts : Counts();
  }

  static std::set<int64_t> layers_of(const std::vector<Placed>& placed) {
    std::set<int64_t> layers;
    for (const Placed& each : placed) layers.insert(each.layer);
    return layers;
  }

  void shift_layers(const std::vector<std::size_t>& own_a, const std::vector<std::size_t>& own_b) {
    const Counts counts_a = a_.counts(layer_in, own_a);
    const Counts counts_b = b_.counts(layer_in, own_b);
    std::vector<Placed> placed_a, placed_b;
    for (const auto& [what, tensors] : counts_a) {
      const auto found = counts_b.find(what);
      if (found == counts_b.end()) continue;
      if (overlap(tensors, found->second)) return;  // Then the numbers mean the same.
      place(what, tensors, placed_a);
      place(what, found->second, placed_b);
    }
    if (placed_a.empty()) return;
    // All tensors of a layer follow, also those that have no counterpart of the same kind.
    shift("layer", placed_a, placed_b, counts_b);
  }

  void shift_calls(const std::vector<std::size_t>& own_a, const std::vector<std::size_t>& own_b) {
    const Counts counts_a = a_.counts(call_in, own_a);
    const Counts counts_b = b_.counts(call_in, own_b);
    std::vector<Placed> placed_a, placed_b;
    Counts both;
    for (const auto& [what, tensors] : counts_a) {
      const auto found = counts_b.find(what);
      if (found == counts_b.end() || overlap(tensors, found->second)) continue;
      place(what, tensors, placed_a);
      place(what, found->second, placed_b);
      both.insert(*found);
    }
    if (!placed_a.empty()) shift("call", placed_a, placed_b, both);
  }

  void shift(std::string_view noun, const std::vector<Placed>& placed_a,
             const std::vector<Placed>& placed_b, const Counts& moved) {
    LayerPairing pairing =
        pair_layers({a_.catalog, placed_a}, {b_.catalog, placed_b}, {noun, options_.read_values});
    rename_layers(pairing, moved);
    add_notes(pairing);
  }

  void rename_layers(const LayerPairing& pairing, const Counts& moved) {
    for (const auto& [what, tensors] : moved)
      for (const auto& [number, tensor] : tensors)
        if (const auto to = pairing.a_of_b.find(number); to != pairing.a_of_b.end())
          b_.rename(tensor,
                    with_number(b_.names[tensor], b_.found.at(tensor), std::to_string(to->second)));
  }

  // One side has "0_query", the other "0_query_0", "0_query_1" and so on.
  void one_call(const std::vector<std::size_t>& own_a, const std::vector<std::size_t>& own_b) {
    const Counts counts_a = a_.counts(call_in, own_a);
    const Counts counts_b = b_.counts(call_in, own_b);
    const LayerPairing of_b = pair_single(a_, own_a, counts_b, true);
    const LayerPairing of_a = pair_single(b_, own_b, counts_a, false);
    for (const std::size_t single : own_a)
      if (const auto found = counts_b.find(a_.names[single]); found != counts_b.end())
        for (const auto& [number, tensor] : found->second)
          if (of_b.a_of_b.contains(number)) b_.rename(tensor, a_.names[single]);
    for (const std::size_t single : own_b)
      if (const auto found = counts_a.find(b_.names[single]); found != counts_a.end())
        for (const auto& [number, tensor] : found->second)
          if (of_a.a_of_b.contains(0) && of_a.a_of_b.at(0) == number)
            b_.rename(single, a_.names[tensor]);
  }

  // Which call of `many` the tensors of `one` are, which have no number: 0 stands for it.
  LayerPairing pair_single(const Side& one, const std::vector<std::size_t>& own, const Counts& many,
                           bool one_is_a) {
    std::vector<Placed> single, calls;
    for (const std::size_t tensor : own) {
      const auto found = many.find(one.names[tensor]);
      if (found == many.end() || !as_large(one, tensor, found->second, one_is_a ? b_ : a_))
        continue;
      single.push_back({tensor, 0, found->first});
      place(found->first, found->second, calls);
    }
    if (single.empty()) return {};
    const LayerSearch search{"call", options_.read_values};
    LayerPairing pairing = one_is_a
                               ? pair_layers({a_.catalog, single}, {b_.catalog, calls}, search)
                               : pair_layers({a_.catalog, calls}, {b_.catalog, single}, search);
    add_notes(pairing);
    return pairing;
  }

  // Calls of one thing give tensors of one size; "conv_1" need not be a call of "conv".
  static bool as_large(const Side& one, std::size_t tensor, const ByNumber& calls,
                       const Side& many) {
    const uint64_t elements = one.catalog.tensors[tensor].elements();
    return std::ranges::all_of(calls, [&](const auto& call) {
      return many.catalog.tensors[call.second].elements() == elements;
    });
  }

  void add_notes(LayerPairing& pairing) {
    for (std::string& note : pairing.notes) notes_.push_back(std::move(note));
  }

  Side a_, b_;
  const MatchOptions& options_;
  std::vector<std::string> notes_;
};

}  // namespace

Renumbering renumber(const Catalog& a, const Catalog& b, const MatchOptions& options) {
  return Renumber(a, b, options).run();
}

}  // namespace tensordiff
