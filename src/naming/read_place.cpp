// A name is split into words at dots, slashes, dashes and underscores. The number after a word for
// a layer is the layer, the number after "experts" the expert, the last words may be a parameter;
// what is left is looked up in the tables of the conventions: as it is, without the wrappers at its
// start, in the forms that some frameworks give it, and at last by its ending alone.

#include <algorithm>
#include <array>

#include "base/text.h"
#include "naming/affixes.h"
#include "naming/lexicon.h"
#include "naming/naming.h"
#include "naming/rank_name.h"
#include "naming/words.h"

namespace tensordiff {
namespace {

// After which all layers may lie in one tensor: "layers.attention.query".
constexpr std::array<std::string_view, 3> kAllLayersWords = {"layers", "blocks", "h"};
constexpr std::array<std::string_view, 2> kHeadWords = {"head", "heads"};
constexpr std::array<std::string_view, 2> kCallWords = {"call", "forward"};
constexpr std::array<std::string_view, 8> kPassWords = {"step",   "iter", "iteration", "it",
                                                        "decode", "pass", "token",     "mb"};
// What the part that has the weights is called inside a module: "q_proj.base_layer.weight".
constexpr std::array<std::string_view, 7> kInnerWords = {"linear", "dense",  "layer",     "base",
                                                         "inner",  "einsum", "normalized"};

// Endings of file names, where one came along with the name of the tensor in it.
constexpr std::array<std::string_view, 7> kExtensions = {
    ".safetensors", ".pth", ".pt", ".bin", ".npy", ".npz", ".pkl",
};

constexpr std::array<std::string_view, 13> kStages = {
    "post_ln_pre_attn", "query",     "query_final", "key",     "key_final",           "value",
    "value_final",      "post_attn", "scaling",     "sliding", "post_attn_pre_resid", "pre_mlp",
    "post_mlp",
};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::ranges::end(list);
}

std::string_view without_extension(std::string_view name) {
  for (const std::string_view extension : kExtensions)
    if (name.ends_with(extension)) return name.substr(0, name.size() - extension.size());
  return name;
}

class NameReader {
 public:
  explicit NameReader(std::string_view name)
      : name_(name), text_(lower(name)), words_(text_), lexicon_(Lexicon::all()) {}

  Place read() {
    place_.read = true;
    place_.tower = tower_in(words_);
    if (const std::optional<RankName> rank = parse_rank(name_))
      place_.rank = static_cast<int32_t>(rank->rank);  // Of six digits at most.
    take_marks_at_the_end();
    read_counts();
    if (!read_stage()) read_path();
    return place_;
  }

 private:
  using Find = Spelling (NameReader::*)(const Words& words) const;

  Place::Digits place_of(std::string_view digits) const {
    return {static_cast<uint32_t>(digits.data() - text_.data()),
            static_cast<uint32_t>(digits.size())};
  }

  // "kernel:0" is TensorFlow's first output; "q_proj@2" is the third call of a module.
  void take_marks_at_the_end() {
    if (words_.size() < 2) return;
    const std::string_view last = words_.back();
    const std::size_t at = place_of(last).first;
    const std::optional<int32_t> number = number_of(last);
    if (!number || at == 0 || at + last.size() != text_.size()) return;
    const char mark = text_[at - 1];
    if (mark != ':' && mark != '@') return;
    if (mark == '@') {
      place_.call = *number;
      place_.count_at = place_of(last);
    }
    words_.pop_back();
  }

  void read_counts() {
    const auto counted = find_counted(words_, 0, [](std::string_view word) {
      return contains(kPassWords, word) || contains(kCallWords, word);
    });
    if (counted && place_.count_at.size == 0) {
      (contains(kCallWords, counted->marker) ? place_.call : place_.pass) = counted->number;
      place_.count_at = place_of(counted->digits);
    }
    const auto head =
        find_counted(words_, 0, [](std::string_view word) { return contains(kHeadWords, word); });
    if (head) place_.head = head->number;
  }

  // "12_query", in the last component of the path: at its start, or after a dot in it.
  bool read_stage() {
    const std::string_view name = without_extension(name_);
    const std::size_t slash = name.rfind('/');
    for (std::size_t start = slash == std::string_view::npos ? 0 : slash + 1;;) {
      const std::size_t end = name.find('_', start);
      if (end == std::string_view::npos) return false;
      const std::optional<int32_t> number = number_of(name.substr(start, end - start));
      if (number && end + 1 < name.size()) {
        place_.layer = *number;
        place_.layer_at = {static_cast<uint32_t>(start), static_cast<uint32_t>(end - start)};
        place_.layer_named = place_.staged = true;
        find_stage(Words(std::string_view(text_).substr(end + 1, name.size() - end - 1)));
        return true;
      }
      const std::size_t dot = name.find('.', start);
      if (dot == std::string_view::npos) return false;
      start = dot + 1;
    }
  }

  // Which call of it was recorded may stand behind a stage: "query_2".
  void find_stage(Words words) {
    const bool numbered = words.size() > 1 && number_of(words.back());
    if (numbered) words.pop_back();
    Spelling found = lexicon_.stage(words.joined());
    if (!found.found) {
      place_.parameter = take_parameter(words);
      found = find_in_any_form(words, &NameReader::in_layer);
    }
    settle(found, found.found && !numbered);
    if (!found.found) find_ending(words);
  }

  void read_path() {
    Words words = words_;
    drop_wrapped_modules(words);
    const bool in_layer = take_layer(words) || take_last_number(words);
    if (in_layer) place_.expert = take_expert(words);
    place_.parameter = take_parameter(words);
    Spelling found =
        find_in_any_form(words, in_layer ? &NameReader::in_layer : &NameReader::outside);
    if (!found.found && !in_layer) found = find_in_all_layers(words);
    settle(found, found.found);
    // "l1" is a layer only in a name that makes sense so.
    if (in_layer && weak_layer_ && !found.found) place_.layer = Place::kNone, place_.layer_at = {};
    if (place_.layer == Place::kNone) find_first_number();
    if (!found.found && !find_in_inner_layer(words)) find_ending(words);
  }

  void settle(const Spelling& found, bool known) {
    place_.step = found.role;
    place_.spelling = found.text;
    place_.known = known;
    if (known && place_.layer != Place::kNone) place_.layer_named = true;
  }

  // Takes the first word for a layer that a number follows out of the words, with all before it.
  bool take_layer(Words& words) {
    const auto counted =
        find_counted(words, 0, [&](std::string_view word) { return lexicon_.is_layer_word(word); });
    if (!counted) return false;
    place_.layer = counted->number;
    place_.layer_at = place_of(counted->digits);
    weak_layer_ = counted->words == 1 && counted->marker.size() == 1;
    place_.layer_named = !weak_layer_;
    words.erase(0, counted->word + counted->words);
    return true;
  }

  // "attn_norm-12": llama.cpp's way to number what it computes.
  bool take_last_number(Words& words) {
    if (words.size() < 2) return false;
    const std::size_t at = place_of(words.back()).first;
    const std::optional<int32_t> number = number_of(words.back());
    if (!number || text_[at - 1] != '-' || at + words.back().size() != text_.size()) return false;
    place_.layer = *number;
    place_.layer_at = place_of(words.back());
    place_.layer_named = true;
    words.pop_back();
    return true;
  }

  // Of names that have no word for a layer: "features.3.weight", "3_run/conv".
  void find_first_number() {
    const std::string_view text = text_;
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = std::min(text.find_first_of("./", start), text.size());
      const std::string_view part = text.substr(start, end - start);
      const std::string_view digits = part.substr(0, part.find('_'));
      if (const std::optional<int32_t> number = number_of(digits)) {
        place_.layer = *number;
        place_.layer_at = place_of(digits);
        return;
      }
      start = end + 1;
    }
  }

  Spelling in_layer(const Words& words) const { return lexicon_.in_layer(words.joined()); }

  Spelling outside(const Words& words) const {
    for (std::size_t from = 0; from < words.size(); ++from) {
      const Spelling found = lexicon_.outside(words.joined(from));
      if (found.found || !lexicon_.is_wrapper(words[from])) return found;
    }
    return {};
  }

  // As it is; with a short word for the parameter at the end ("ln_1.g") or before the last word
  // ("attn.W_Q"); without words for what is inside of a module ("o_proj.linear").
  Spelling find_in_any_form(Words words, Find find) {
    Spelling found = (this->*find)(words);
    if (found.found) return found;
    for (const std::size_t back : {1, 2}) {
      if (place_.parameter != Param::none || words.size() <= back) break;
      const std::size_t at = words.size() - back;
      const Param known = short_parameter(words[at]);
      if (known == Param::none) continue;
      Words without = words;
      without.erase(at, 1);
      place_.parameter = known;
      if (found = find_in_any_form(without, find); found.found) return found;
      place_.parameter = Param::none;
    }
    // "input_layernorm_output": what a module gives.
    const auto says_no_more = [&](std::string_view word) {
      return contains(kInnerWords, word) || (word == "output" && place_.parameter == Param::none);
    };
    while (words.size() > 1 && says_no_more(words.back())) {
      words.pop_back();
      if (found = (this->*find)(words); found.found) return found;
    }
    return {};
  }

  // "decoder.layers.attention.query": all layers in one tensor.
  Spelling find_in_all_layers(const Words& words) {
    std::size_t marker = 0;
    while (marker < words.size() && !contains(kAllLayersWords, words[marker])) ++marker;
    if (marker + 1 >= words.size()) return {};
    Words inside = words;
    inside.erase(0, marker + 1);
    const int32_t expert = take_expert(inside);
    const Spelling found =
        inside.empty() ? Spelling() : find_in_any_form(inside, &NameReader::in_layer);
    if (!found.found) return {};
    place_.layer = Place::kAll;
    place_.expert = expert;
    return found;
  }

  // Layers that have layers of their own: "layers.2.blocks.5.attn.qkv".
  bool find_in_inner_layer(Words words) {
    bool any = false;
    const auto is_layer = [&](std::string_view word) { return lexicon_.is_layer_word(word); };
    while (const auto counted = find_counted(words, 0, is_layer)) {
      words.erase(0, counted->word + counted->words);
      any = true;
    }
    if (!any || words.empty()) return false;
    const Spelling found = find_in_any_form(words, &NameReader::in_layer);
    if (found.found) settle(found, false);
    return found.found;
  }

  // By its last words alone, the most that are known; a number that stands last is the layer's own
  // name ("features.3").
  void find_ending(const Words& words) {
    const std::size_t most = std::min(words.size(), lexicon_.ending_words_max());
    for (std::size_t count = most; count > 0; --count) {
      const Spelling found = lexicon_.ending(words.joined(words.size() - count));
      if (!found.found) continue;
      settle(found, false);
      return;
    }
    const Place::Digits& layer = place_.layer_at;
    if (layer.first > 0 && text_[layer.first - 1] == '.' &&
        layer.first + layer.size == text_.size())
      place_.step = Role::layer_output;
  }

  std::string_view name_;
  std::string text_;
  Words words_;
  const Lexicon& lexicon_;
  Place place_;
  bool weak_layer_ = false;  // A letter with a number: "h3".
};

}  // namespace

Place read_place(std::string_view name) { return NameReader(name).read(); }

std::string_view stage_in(std::string_view name, const Place& place) {
  if (place.layer_at.size == 0) return {};
  const std::string_view stem = place.staged ? without_extension(name) : name;
  const std::size_t first = place.layer_at.first + std::size_t{place.layer_at.size} + 1;
  return first < stem.size() ? stem.substr(first) : std::string_view();
}

std::string_view folder_in(std::string_view name, const Place& place) {
  return name.substr(0, place.layer_at.first == 0 ? 0 : place.layer_at.first - 1);
}

std::span<const std::string_view> known_stages() { return kStages; }

}  // namespace tensordiff
