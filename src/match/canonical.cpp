// Names are split into words at dots, slashes, dashes and underscores. The number after a word for
// a layer is the layer, the number after "experts" the expert, the last word may be a parameter;
// what is left is looked up in the table of roles.cpp, as it is, without the wrappers at its start,
// and then in the forms that some frameworks give it.

#include "match/canonical.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/text.h"
#include "match/roles.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 10> kLayerWords = {
    "layers", "layer",     "h", "blocks",       "block",
    "blk",    "resblocks", "l", "encoderblock", "decoderblock"};
// After which all layers may lie in one tensor: "layers.attention.query".
constexpr std::array<std::string_view, 3> kAllLayersWords = {"layers", "blocks", "h"};
constexpr std::array<std::string_view, 4> kExpertWords = {"experts", "expert", "exps", "shexp"};
// "model.", "_orig_mod.", "text_model.": what a whole model is wrapped in.
constexpr std::array<std::string_view, 27> kWrappers = {
    "model",   "module", "transformer", "orig",     "mod",    "base",  "decoder",
    "encoder", "gpt",    "neox",        "backbone", "net",    "bert",  "vit",
    "roberta", "text",   "opt",         "language", "llama",  "enc",   "network",
    "dec",     "vision", "visual",      "v",        "params", "target"};
// What is wrapped around a module anywhere in a name: "layers.0._fsdp_wrapped_module.attn".
constexpr std::array<std::array<std::string_view, 3>, 2> kWrappedModules = {
    {{"fsdp", "wrapped", "module"}, {"checkpoint", "wrapped", "module"}}};
// What the part that has the weights is called inside a module: "q_proj.base_layer.weight".
constexpr std::array<std::string_view, 7> kInnerWords = {"linear", "dense",  "layer",     "base",
                                                         "inner",  "einsum", "normalized"};

struct ParameterWord {
  std::string_view word, parameter;
};
constexpr ParameterWord kParameters[] = {{"weight", "weight"}, {"bias", "bias"},
                                         {"gamma", "weight"},  {"beta", "bias"},
                                         {"scale", "weight"},  {"kernel", "weight"}};
// These are words of other meanings, too.
constexpr ParameterWord kShortParameters[] = {{"w", "weight"},
                                              {"b", "bias"},
                                              {"g", "weight"},
                                              {"embedding", "weight"},
                                              {"embeddings", "weight"}};

using Words = std::vector<std::string>;

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::ranges::end(list);
}

void drop_wrapped_modules(Words& words) {
  for (const auto& wrapper : kWrappedModules)
    for (auto found = std::ranges::search(words, wrapper); !found.empty();
         found = std::ranges::search(words, wrapper))
      words.erase(found.begin(), found.end());
  std::erase(words, "hook");  // "blocks.0.attn.hook_q"
}

Words words_of(std::string_view name) {
  Words words;
  std::string word;
  for (const char c : lower(name)) {
    if (c != '.' && c != '/' && c != '_' && c != '-') {
      word += c;
    } else if (!word.empty()) {
      words.push_back(std::move(word));
      word.clear();
    }
  }
  if (!word.empty()) words.push_back(std::move(word));
  drop_wrapped_modules(words);
  return words;
}

std::optional<int64_t> number_of(std::string_view word) {
  int64_t value = 0;
  const char* const end = word.data() + word.size();
  const auto [after, error] = std::from_chars(word.data(), end, value);
  if (error != std::errc() || after != end || word.empty() || word[0] == '-') return std::nullopt;
  return value;
}

// "attn_norm-12": llama.cpp's way to number what it computes.
bool take_last_number(std::string_view name, Words& words, int64_t& layer) {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos || words.size() < 2) return false;
  const auto number = number_of(name.substr(dash + 1));
  if (!number) return false;
  layer = *number;
  words.pop_back();
  return true;
}

// Takes the first of `markers` that a number follows out of the words, with all that stands before
// it; "layer3" counts as both.
bool take_layer(Words& words, int64_t& layer) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view marker : kLayerWords) {
      std::size_t used = 0;
      if (words[i] == marker && i + 1 < words.size() && number_of(words[i + 1])) {
        layer = *number_of(words[i + 1]);
        used = 2;
      } else if (words[i].starts_with(marker) && number_of(words[i].substr(marker.size()))) {
        layer = *number_of(words[i].substr(marker.size()));
        used = 1;
      }
      if (used == 0) continue;
      words.erase(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(i + used));
      return true;
    }
  }
  return false;
}

// "experts.weight3": the number stands at the parameter.
std::optional<int64_t> take_number_of_parameter(Words& words) {
  for (const std::string_view parameter : {"weight", "bias"}) {
    if (words.empty() || !words.back().starts_with(parameter)) continue;
    const auto number = number_of(words.back().substr(parameter.size()));
    if (number) words.back() = parameter;
    return number;
  }
  return std::nullopt;
}

int64_t take_expert(Words& words) {
  int64_t expert = CanonicalName::kNone;
  for (auto at = words.begin(); at != words.end();) {
    if (!contains(kExpertWords, *at)) {
      ++at;
      continue;
    }
    bool shared = *at == "shexp";
    at = words.erase(at);
    if (at != words.begin() && *std::prev(at) == "shared") {
      at = words.erase(std::prev(at));
      shared = true;
    }
    if (at != words.begin() && *std::prev(at) == "local") at = words.erase(std::prev(at));
    if (shared) return CanonicalName::kShared;
    const auto number = at == words.end() ? std::nullopt : number_of(*at);
    if (number) at = words.erase(at);
    expert = number.value_or(CanonicalName::kAll);
  }
  if (expert == CanonicalName::kAll) return take_number_of_parameter(words).value_or(expert);
  return expert;
}

// The parameter that a word stands for, "" for none.
std::string_view parameter_of(std::string_view word, std::span<const ParameterWord> known) {
  const auto found = std::ranges::find(known, word, &ParameterWord::word);
  return found == known.end() ? std::string_view() : found->parameter;
}

std::string take_parameter(Words& words) {
  if (words.empty()) return "";
  const std::string_view parameter = parameter_of(words.back(), kParameters);
  if (!parameter.empty()) words.pop_back();
  return std::string(parameter);
}

std::string joined(const Words& words, std::size_t from) {
  std::string text;
  for (std::size_t i = from; i < words.size(); ++i) {
    if (i > from) text += '.';
    text += words[i];
  }
  return text;
}

Spelling find_outside(const Words& words) {
  for (std::size_t from = 0; from < words.size(); ++from) {
    const Spelling found = role_outside(joined(words, from));
    if (!found.role.empty() || !contains(kWrappers, words[from])) return found;
  }
  return {};
}

Spelling find_in_layer(const Words& words) { return role_in_layer(joined(words, 0)); }

using Find = Spelling (*)(const Words& words);

// As it is; with a short word for the parameter at the end ("ln_1.g") or before the last word
// ("attn.W_Q"); without words for what is inside of a module ("o_proj.linear").
Spelling find_in_any_form(Words words, std::string& parameter, Find find) {
  Spelling found = find(words);
  if (!found.role.empty()) return found;
  for (const std::size_t back : {1, 2}) {
    if (!parameter.empty() || words.size() <= back) break;
    const auto at = words.end() - static_cast<std::ptrdiff_t>(back);
    const std::string_view known = parameter_of(*at, kShortParameters);
    if (known.empty()) continue;
    Words without = words;
    without.erase(without.end() - static_cast<std::ptrdiff_t>(back));
    if (found = find_in_any_form(without, parameter = known, find); !found.role.empty())
      return found;
    parameter.clear();
  }
  while (words.size() > 1 && contains(kInnerWords, words.back())) {
    words.pop_back();
    if (found = find(words); !found.role.empty()) return found;
  }
  return {};
}

// "decoder.layers.attention.query": all layers in one tensor.
Spelling find_in_all_layers(const Words& words, ReadName& name) {
  const auto marker = std::ranges::find_if(
      words, [](const std::string& word) { return contains(kAllLayersWords, word); });
  if (marker == words.end() || std::next(marker) == words.end()) return {};
  Words inside(std::next(marker), words.end());
  name.meaning.layer = CanonicalName::kAll;
  name.meaning.expert = take_expert(inside);
  if (inside.empty()) return {};
  return find_in_any_form(std::move(inside), name.meaning.parameter, find_in_layer);
}

}  // namespace

std::string_view tower_of(std::string_view name) {
  for (const std::string& word : words_of(name)) {
    if (word == "encoder" || word == "enc") return "encoder";
    if (word == "decoder" || word == "dec") return "decoder";
    if (word == "vision" || word == "visual" || word == "v") return "vision";
  }
  return "";
}

std::span<const std::string_view> layer_words() { return kLayerWords; }

std::optional<ReadName> read_name(std::string_view name) {
  ReadName found;
  Words words = words_of(name);
  const bool in_layer =
      take_layer(words, found.meaning.layer) || take_last_number(name, words, found.meaning.layer);
  if (in_layer) found.meaning.expert = take_expert(words);
  found.meaning.parameter = take_parameter(words);
  Spelling spelling =
      find_in_any_form(words, found.meaning.parameter, in_layer ? find_in_layer : find_outside);
  if (spelling.role.empty() && !in_layer) spelling = find_in_all_layers(words, found);
  if (spelling.role.empty()) return std::nullopt;
  found.meaning.role = spelling.role;
  found.spelling = spelling.text;
  return found;
}

std::optional<CanonicalName> canonical_name(std::string_view name) {
  std::optional<ReadName> read = read_name(name);
  if (!read || read->meaning.layer == CanonicalName::kAll) return std::nullopt;
  return std::move(read->meaning);
}

}  // namespace tensordiff
