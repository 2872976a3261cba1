// A name is read as what it counts and a number. For layers that is the number after a word for one
// ("layers.3", "blk.3"), else the first that stands alone; what is left is what the name means by
// convention, or its text. For calls it is the number after a word for one ("step_3"), else a last
// one that stands alone ("0_query_1"). Names of the form "3_query" are left to the layer-stage
// strategy, which knows their folders.

#include "match/renumber.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "base/text.h"
#include "match/canonical.h"
#include "match/layer_pairing.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 10> kCallWords = {
    "step", "call", "iter", "iteration", "it", "decode", "pass", "forward", "token", "mb"};

using Token = NumberPlace;

std::vector<Token> tokens_of(std::string_view name) {
  std::vector<Token> tokens;
  std::size_t first = 0;
  for (std::size_t at = 0; at <= name.size(); ++at) {
    if (at < name.size() && std::string_view("./_-:#").find(name[at]) == std::string_view::npos)
      continue;
    if (at > first) tokens.push_back({first, at - first});
    first = at + 1;
  }
  return tokens;
}

std::string_view text_of(std::string_view name, const Token& token) {
  return name.substr(token.first, token.size);
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 9 && all_digits(text);
}

// The number after one of these words, "layers.3" or "layer3", and where it stands.
std::optional<Token> number_after(std::string_view name, const std::vector<Token>& tokens,
                                  std::span<const std::string_view> words) {
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::string text = lower(text_of(name, tokens[i]));
    for (const std::string_view word : words) {
      if (!text.starts_with(word)) continue;
      if (is_number(std::string_view(text).substr(word.size())))
        return Token{tokens[i].first + word.size(), text.size() - word.size()};
      if (text == word && i + 1 < tokens.size() && is_number(text_of(name, tokens[i + 1])))
        return tokens[i + 1];
    }
  }
  return std::nullopt;
}

// A name as what it counts and a number of it.
struct Counted {
  std::string what;
  int64_t number = 0;
  Token place;  // Of the number in the name.
};

Counted counted(std::string_view name, const Token& place, std::string what) {
  Counted result{std::move(what), 0, place};
  const std::string_view digits = text_of(name, place);
  std::from_chars(digits.data(), digits.data() + digits.size(), result.number);
  return result;
}

std::string with_number(std::string_view name, const Token& place, std::string_view number) {
  std::string text(name);
  return text.replace(place.first, place.size, number);
}

std::optional<Counted> layer_in(std::string_view name) {
  if (parse_layer_stage(name)) return std::nullopt;
  const std::vector<Token> tokens = tokens_of(name);
  std::optional<Token> place = number_after(name, tokens, layer_words());
  for (std::size_t i = 0; !place && i + 1 < tokens.size(); ++i)
    if (is_number(text_of(name, tokens[i]))) place = tokens[i];
  if (!place) return std::nullopt;
  const std::optional<CanonicalName> meaning = canonical_name(name);
  return counted(name, *place,
                 meaning
                     ? fmt::format("{}|{}|{}", meaning->role, meaning->parameter, meaning->expert)
                     : with_number(name, *place, "#"));
}

// What stands before a number at the end of a name: the name of what was called.
std::string_view before_last(std::string_view name, const Token& number) {
  return name.substr(0, number.first - 1);
}

std::optional<Counted> call_in(std::string_view name) {
  const std::vector<Token> tokens = tokens_of(name);
  if (const std::optional<Token> place = number_after(name, tokens, kCallWords))
    return counted(name, *place, with_number(name, *place, "#"));
  if (tokens.size() < 2 || !is_number(text_of(name, tokens.back()))) return std::nullopt;
  const Token& last = tokens.back();
  const std::optional<Token> layer = number_after(name, tokens, layer_words());
  if ((layer && layer->first == last.first) || last.first + last.size != name.size())
    return std::nullopt;
  return counted(name, last, std::string(before_last(name, last)));
}

using Find = std::optional<Counted> (*)(std::string_view name);

// The tensors of one side by what they are and by their number.
using ByNumber = std::map<int64_t, std::size_t>;
using Counts = std::unordered_map<std::string, ByNumber>;

struct Side {
  const Catalog& catalog;
  std::vector<std::string> names;
  std::unordered_map<std::size_t, Token> places = {};  // Of the numbers found last.

  // Those of `which` in which a number is found. What has a number twice is left out.
  Counts counts(Find find, const std::vector<std::size_t>& which) {
    Counts result;
    places.clear();
    std::unordered_set<std::string> ambiguous;
    for (const std::size_t i : which) {
      const std::optional<Counted> found = find(names[i]);
      if (!found) continue;
      places.emplace(i, found->place);
      if (!result[found->what].emplace(found->number, i).second) ambiguous.insert(found->what);
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
      : a_{a, names_of(a)}, b_{b, names_of(b)}, options_(options) {}

  Renumbering run() {
    const std::unordered_set<std::string_view> names_a(a_.names.begin(), a_.names.end());
    const std::unordered_set<std::string_view> names_b(b_.names.begin(), b_.names.end());
    const std::vector<std::size_t> own_a = missing(a_.names, names_b);
    const std::vector<std::size_t> own_b = missing(b_.names, names_a);
    if (!own_a.empty() && !own_b.empty()) {
      // Where a name is on both sides, its layer is the same on both, and so are all others.
      if (!shares_a_layer(a_.names, names_b)) shift_layers(own_a, own_b);
      shift_calls(own_a, own_b);
      one_call(own_a, own_b);
    }
    return {std::move(b_.names), std::move(notes_)};
  }

 private:
  static std::vector<std::string> names_of(const Catalog& catalog) {
    std::vector<std::string> names;
    names.reserve(catalog.tensors.size());
    for (const Tensor& tensor : catalog.tensors) names.push_back(tensor.name);
    return names;
  }

  static std::vector<std::size_t> missing(const std::vector<std::string>& names,
                                          const std::unordered_set<std::string_view>& other) {
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (!other.contains(names[i])) result.push_back(i);
    return result;
  }

  static bool shares_a_layer(const std::vector<std::string>& names,
                             const std::unordered_set<std::string_view>& other) {
    return std::ranges::any_of(
        names, [&](const std::string& name) { return other.contains(name) && layer_in(name); });
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
    for (const auto& [what, tensors] : moved)
      for (const auto& [number, tensor] : tensors)
        if (const auto to = pairing.a_of_b.find(number); to != pairing.a_of_b.end())
          b_.names[tensor] =
              with_number(b_.names[tensor], b_.places.at(tensor), std::to_string(to->second));
    add_notes(pairing);
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
          if (of_b.a_of_b.contains(number)) b_.names[tensor] = a_.names[single];
    for (const std::size_t single : own_b)
      if (const auto found = counts_a.find(b_.names[single]); found != counts_a.end())
        for (const auto& [number, tensor] : found->second)
          if (of_a.a_of_b.contains(0) && of_a.a_of_b.at(0) == number)
            b_.names[single] = a_.names[tensor];
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

std::optional<NumberPlace> layer_place(std::string_view name) {
  const std::optional<LayerStage> known = parse_layer_stage(name);
  if (!known) return number_after(name, tokens_of(name), layer_words());
  const std::size_t first = known->folder.empty() ? 0 : known->folder.size() + 1;
  const std::size_t size = name.find('_', first) - first;
  if (!is_number(name.substr(first, size))) return std::nullopt;
  return NumberPlace{first, size};
}

Renumbering renumber(const Catalog& a, const Catalog& b, const MatchOptions& options) {
  return Renumber(a, b, options).run();
}

}  // namespace tensordiff
