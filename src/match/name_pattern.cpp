// More than one group may have a name, as in (?<stage>q)|(?<stage>k), which the engine would
// refuse. Named groups are made plain ones, and their numbers kept.

#include "match/name_pattern.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/pattern.h"
#include "base/text.h"
#include "match/matcher.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 3> kGroups = {"layer", "stage", "key"};
enum Group { kLayer, kStage, kKey };

struct Translated {
  std::string regex;
  std::array<std::vector<std::size_t>, 3> groups;  // Numbers of those with each name.
};

// Reads "?<layer>" or "?P<layer>" after an opening bracket. Nothing for any other group.
Result<std::optional<Group>> take_name(std::string_view& rest) {
  std::string_view text = rest;
  if (text.starts_with("?P<"))
    text.remove_prefix(3);
  else if (text.starts_with("?<") && !text.starts_with("?<=") && !text.starts_with("?<!"))
    text.remove_prefix(2);
  else
    return std::optional<Group>();
  const std::string_view name = text.substr(0, text.find('>'));
  const auto found = std::ranges::find(kGroups, name);
  if (name.size() == text.size() || found == kGroups.end())
    return Error("a group is called '{}'; there are layer, stage and key", printable(name));
  rest = text.substr(name.size() + 1);
  return std::optional(static_cast<Group>(found - kGroups.begin()));
}

Result<Translated> translate(std::string_view regex) {
  Translated result;
  std::size_t groups = 0;
  bool in_class = false;
  while (!regex.empty()) {
    const std::size_t length = regex[0] == '\\' && regex.size() > 1 ? 2 : 1;
    const std::string_view item = regex.substr(0, length);
    result.regex += item;
    regex.remove_prefix(length);
    if (item == "[") in_class = true;
    if (item == "]") in_class = false;
    if (item != "(" || in_class) continue;
    const std::optional<Group> name = TRY(take_name(regex));
    if (name || !regex.starts_with('?')) ++groups;
    if (name) result.groups[*name].push_back(groups);
  }
  return result;
}

}  // namespace

struct NamePattern::Compiled {
  Pattern regex;
  std::array<std::vector<std::size_t>, 3> groups;
};

Result<NamePattern> NamePattern::make(const std::string& regex) {
  Translated translated = TRY(translate(regex));
  if (translated.groups[kStage].empty() && translated.groups[kKey].empty())
    return Error("'{}' has no group called stage or key: (?<layer>[0-9]+)_(?<stage>.+)",
                 printable(regex));
  NamePattern pattern;
  pattern.compiled_ = std::make_shared<const Compiled>(
      Compiled{TRY(Pattern::make(translated.regex, regex)), std::move(translated.groups)});
  return pattern;
}

std::optional<LayerStage> NamePattern::place(std::string_view name) const {
  const std::optional<Pattern::Groups> found = compiled_->regex.search(name);
  if (!found) return std::nullopt;
  const auto text_of = [&](Group group) -> std::optional<std::string> {
    for (const std::size_t number : compiled_->groups[group])
      if (const auto& text = (*found)[number]) return std::string(*text);
    return std::nullopt;
  };
  LayerStage place;
  const std::optional<std::string> stage = text_of(kStage), key = text_of(kKey);
  if (!stage && !key) return std::nullopt;
  place.stage = stage && key ? *key + "/" + *stage : stage.value_or(key.value_or(""));
  if (const std::optional<std::string> layer = text_of(kLayer)) {
    int64_t number = 0;
    const char* const end = layer->data() + layer->size();
    const auto [after, error] = std::from_chars(layer->data(), end, number);
    if (error != std::errc() || after != end || number < 0) return std::nullopt;
    place.layer = number;
  }
  return place;
}

}  // namespace tensordiff
