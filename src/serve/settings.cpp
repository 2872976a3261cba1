#include "serve/settings.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace tensordiff::serve {
namespace {

constexpr std::size_t kSourcesMax = 1000;
constexpr std::size_t kNameMax = 300;
constexpr std::size_t kRegexMax = 1000;
constexpr std::size_t kDimsMax = 1000;

Result<std::vector<std::string>> texts(const Json& list, std::string_view key) {
  std::vector<std::string> result;
  if (!list.is_array() || list.array().size() > kSourcesMax)
    return Error("{}: not a list of at most {} texts", key, kSourcesMax);
  for (const Json& item : list.array()) {
    if (!item.is_string()) return Error("{}: not a list of texts", key);
    result.emplace_back(item.string());
  }
  return result;
}

// null: as if nobody had chosen.
Result<std::optional<double>> tolerance(const Json& value, std::string_view key) {
  if (value.is_null()) return std::optional<double>();
  const std::optional<double> number = value.number();
  if (!number || !(*number >= 0) || !std::isfinite(*number))
    return Error("{}: not a number of 0 or more", key);
  return number;
}

Result<bool> flag(const Json& value, std::string_view key) {
  const std::optional<bool> found = value.boolean();
  if (!found) return Error("{}: neither true nor false", key);
  return *found;
}

Result<void> apply_policy(const Json& policy, Settings& settings) {
  for (const Json::Member& member : policy.object()) {
    if (member.key == "atol") settings.atol = TRY(tolerance(member.value, "policy.atol"));
    if (member.key == "rtol") settings.rtol = TRY(tolerance(member.value, "policy.rtol"));
    if (member.key == "equalNan") settings.equal_nan = TRY(flag(member.value, "policy.equalNan"));
  }
  return {};
}

// null or empty: none. Tried here, so that a wrong one is refused at once.
Result<std::string> name_regex(const Json& value) {
  if (value.is_null() || (value.is_string() && value.string().empty())) return std::string();
  if (!value.is_string() || value.string().size() > kRegexMax)
    return Error("match.regex: not a text of at most {} bytes", kRegexMax);
  const std::string text(value.string());
  TRY(NamePattern::make(text).in("match.regex"));
  return text;
}

// The program of `exec` is named on the command line only.
Result<void> check_strategy(const std::string& name) {
  const bool known =
      std::ranges::find(matchers::kAll, name, &Matcher::name) != std::end(matchers::kAll);
  if (known && name != matchers::exec.name) return {};
  return Error("match.strategies: there is none called '{}'", printable(name));
}

Result<void> apply_match(const Json& match, Settings& settings) {
  for (const Json::Member& member : match.object()) {
    if (member.key == "align") settings.align = TRY(flag(member.value, "match.align"));
    if (member.key == "regex") settings.regex = TRY(name_regex(member.value));
    if (member.key == "fuzzyThreshold") {
      const std::optional<double> number = member.value.number();
      if (!number || !(*number >= 0 && *number <= 1))
        return Error("match.fuzzyThreshold: not a number from 0 to 1");
      settings.fuzzy_threshold = *number;
    }
    if (member.key != "strategies") continue;
    settings.strategies = TRY(texts(member.value, "match.strategies"));
    for (const std::string& name : settings.strategies) TRY(check_strategy(name));
  }
  return {};
}

Result<void> apply_pairings(const Json& list, std::string_view key, std::vector<NamePair>& pairs) {
  pairs.clear();
  for (const Json& pair : list.array()) {
    if (!pair["a"].is_string() || !pair["b"].is_string())
      return Error("{}: each needs the names a and b", key);
    pairs.push_back({std::string(pair["a"].string()), std::string(pair["b"].string())});
  }
  return {};
}

Result<void> apply_layouts(const Json& list, Settings& settings) {
  settings.layouts.clear();
  for (const Json& layout : list.array()) {
    if (!layout["a"].is_string() || !layout["dims"].is_string())
      return Error("layouts: each needs a name a and dims");
    TRY(settings.set_layout(std::string(layout["a"].string()),
                            std::string(layout["dims"].string())));
  }
  return {};
}

constexpr std::string_view kModes[] = {"compare", "explore", "mixed"};

// `said` is null or what the user chose.
Result<void> apply_mode(const Json& said, Settings& settings) {
  if (settings.a.empty()) return Error("a: no source");
  settings.mode = settings.usual_mode();
  if (said.is_null()) return {};
  const auto found = std::ranges::find(kModes, said.string());
  if (found == std::end(kModes))
    return Error("mode: '{}' is not compare, explore or mixed", printable(said.string()));
  settings.mode = static_cast<Mode>(found - kModes);
  if ((settings.mode == Mode::explore) != settings.b.empty())
    return Error("mode: explore takes sources for a alone, the others for both");
  return {};
}

}  // namespace

std::string_view name_of(Mode mode) { return kModes[static_cast<std::size_t>(mode)]; }

Mode Settings::usual_mode() const {
  if (b.empty()) return Mode::explore;
  return a.size() > 1 || b.size() > 1 ? Mode::mixed : Mode::compare;
}

const Layout* Settings::layout_of(std::string_view a_name) const {
  const auto found = std::ranges::find(layouts, a_name, &Layout::a);
  return found == layouts.end() ? nullptr : &*found;
}

Result<void> Settings::set_layout(const std::string& a_name, const std::string& dims) {
  if (dims.size() > kDimsMax) return Error("dims: more than {} bytes", kDimsMax);
  if (!dims.empty()) TRY(parse_dims(dims).in("dims"));
  std::erase_if(layouts, [&](const Layout& layout) { return layout.a == a_name; });
  if (!dims.empty()) layouts.push_back({a_name, dims});
  return {};
}

Result<void> apply(const Json& changes, Settings& settings) {
  if (!changes.is_object()) return Error("not a JSON object");
  for (const Json::Member& member : changes.object()) {
    const Json& value = member.value;
    if (member.key == "name")
      settings.name = printable(value.string(), kNameMax);
    else if (member.key == "a")
      settings.a = TRY(texts(value, "a"));
    else if (member.key == "b")
      settings.b = TRY(texts(value, "b"));
    else if (member.key == "policy")
      TRY(apply_policy(value, settings));
    else if (member.key == "match")
      TRY(apply_match(value, settings));
    else if (member.key == "pairs")
      TRY(apply_pairings(value, "pairs", settings.pairings));
    else if (member.key == "apart")
      TRY(apply_pairings(value, "apart", settings.apart));
    else if (member.key == "layouts")
      TRY(apply_layouts(value, settings));
    else if (member.key == "only")
      settings.only = value.boolean().value_or(false);
  }
  return apply_mode(changes["mode"], settings);
}

void write_policy(JsonWriter& json, const Settings& settings) {
  json.begin_object().member("atol", settings.atol).member("rtol", settings.rtol);
  json.member("equalNan", settings.equal_nan).end_object();
}

void write_match(JsonWriter& json, const Settings& settings) {
  json.begin_object().member("strategies", settings.strategies).key("regex");
  settings.regex.empty() ? json.null() : json.value(settings.regex);
  json.member("fuzzyThreshold", settings.fuzzy_threshold).member("align", settings.align);
  json.end_object();
}

std::string text_of(const Settings& settings) {
  JsonWriter json;
  json.begin_object().member("name", settings.name).member("mode", name_of(settings.mode));
  json.member("a", settings.a).member("b", settings.b).key("policy");
  write_policy(json, settings);
  json.key("match");
  write_match(json, settings);
  json.key("pairs").begin_array();
  for (const NamePair& pair : settings.pairings)
    json.begin_object().member("a", pair.a).member("b", pair.b).end_object();
  json.end_array().member("only", settings.only).key("apart").begin_array();
  for (const NamePair& pair : settings.apart)
    json.begin_object().member("a", pair.a).member("b", pair.b).end_object();
  json.end_array().key("layouts").begin_array();
  for (const Layout& layout : settings.layouts)
    json.begin_object().member("a", layout.a).member("dims", layout.dims).end_object();
  return json.end_array().end_object().take();
}

Result<tensordiff::Request> request_for(const Settings& settings) {
  tensordiff::Request request;
  if (!settings.regex.empty()) request.match.pattern = TRY(NamePattern::make(settings.regex));
  request.compare.atol = settings.atol;
  request.compare.rtol = settings.rtol;
  request.compare.equal_nan = settings.equal_nan;
  for (const Layout& layout : settings.layouts) {
    DimsOf dims;
    dims.names = layout.a;
    dims.dims = TRY(parse_dims(layout.dims));
    dims.whole = true;
    request.dims.push_back(std::move(dims));
  }
  request.match.strategies = settings.strategies;
  request.match.fuzzy_threshold = settings.fuzzy_threshold;
  request.match.pairs = settings.pairings;
  request.apart = settings.apart;
  request.align.enabled = settings.align;
  // What was paired by hand stands whatever strategies are wanted beside it.
  if (settings.only) request.match.strategies.assign(1, std::string(matchers::manual.name));
  if (!request.match.strategies.empty())
    request.match.strategies.emplace_back(matchers::manual.name);
  return request;
}

}  // namespace tensordiff::serve
