// hyperparameter_impact: which settings differ, and how large was the change that came with them?
//
// Settings stand beside the size of the change; that they caused it is not claimed.

#include <algorithm>
#include <map>

#include "analyze/analysis.h"
#include "analyze/hyperparameters.h"
#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::size_t kDepthMax = 4;  // Of config.json: deeper than this it is no setting.

// Counters, measures and numbers of parameters: they differ without anybody having set them.
bool is_setting(const Fact& fact) {
  const std::string name = lower(fact.name);
  const std::string last = lower(last_word(fact.name));
  if (name.find(".params.") != std::string::npos || name.find(".state.") != std::string::npos)
    return false;
  for (const std::string_view word :
       {"step", "epoch", "loss", "iter", "acc", "best", "rng", "seen"})
    if (last.find(word) != std::string::npos) return false;
  for (const std::string_view place :
       {"param_groups", "args", "hparams", "hyper", "config", "scheduler", "optimizer", "cfg"})
    if (name.find(place) != std::string::npos) return true;
  for (const std::string_view word : {"lr", "learning_rate", "batch_size", "weight_decay",
                                      "momentum", "dropout", "seed", "warmup"})
    if (last == word) return true;
  return false;
}

using Settings = std::map<std::string, Datum>;

void flatten(const Json& json, const std::string& name, std::size_t depth, Settings& out) {
  if (json.is_object() && depth < kDepthMax) {
    for (const Json::Member& member : json.object())
      flatten(member.value, name + "." + member.key, depth + 1, out);
  } else if (json.is_array() && depth < kDepthMax) {
    for (std::size_t i = 0; i < std::min<std::size_t>(json.array().size(), 32); ++i)
      flatten(json.array()[i], name + "." + std::to_string(i), depth + 1, out);
  } else if (json.is_string()) {
    out[name] = Datum(json.string());
  } else if (const std::optional<bool> flag = json.boolean()) {
    out[name] = Datum(*flag);
  } else if (const std::optional<double> number = json.number()) {
    out[name] = Datum(*number);
  }
}

Settings side_settings(const Facts& facts) {
  Settings settings;
  for (const Fact& fact : facts.all())
    if (is_setting(fact)) settings[fact.name] = Datum(fact.value);
  flatten(facts.config(), "config", 0, settings);
  return settings;
}

Datum ratio_of(const Datum& a, const Datum& b) {
  const auto* x = std::get_if<double>(&a.value);
  const auto* y = std::get_if<double>(&b.value);
  return x && y && *x != 0 ? Datum(*y / *x) : Datum();
}

// What only one side stores may have been the same on the other.
bool on_both_sides(const Setting& setting) { return setting.a != Datum() && setting.b != Datum(); }
bool differs(const Setting& setting) { return on_both_sides(setting) && setting.a != setting.b; }

void examine(const Study& study, Answer& answer) {
  const std::vector<Setting> settings = settings_of(study);
  const std::vector<const Row*>& weights = study.weights();
  if (settings.empty()) {
    answer.unknown("changed", "optimizer groups, args, hyperparameters or config.json");
  } else {
    const auto known = std::ranges::count_if(settings, on_both_sides);
    if (known > 0)
      answer.field("changed", static_cast<uint64_t>(std::ranges::count_if(settings, differs)));
    else
      answer.unknown("changed", "settings that both checkpoints store");
    answer.field("compared", static_cast<uint64_t>(known));
    answer.field("on_one_side", settings.size() - static_cast<std::size_t>(known));
  }
  answer.field("magnitude", relative_change(weights));
  Listing& list = answer.list("settings", {"name", "a", "b", "ratio"});
  for (const Setting& each : settings)
    if (differs(each)) list.add({each.name, each.a, each.b, ratio_of(each.a, each.b)});
  Listing& alone = answer.list("known_on_one_side", {"name", "a", "b"});
  for (const Setting& each : settings)
    if (!on_both_sides(each)) alone.add({each.name, each.a, each.b});
  Listing& layers = answer.list("layers", {"layer", "update"});
  for (const auto& [depth, pairs] : by_depth(weights)) layers.add({depth, relative_change(pairs)});
}

}  // namespace

std::vector<Setting> settings_of(const Study& study) {
  const Settings a = side_settings(study.facts_a());
  const Settings b = side_settings(study.facts_b());
  std::map<std::string, Setting> all;
  for (const auto& [name, value] : a) all[name] = {name, value, {}};
  for (const auto& [name, value] : b) {
    all[name].name = name;
    all[name].b = value;
  }
  std::vector<Setting> settings;
  for (auto& [name, setting] : all) settings.push_back(std::move(setting));
  return settings;
}

constinit const Analysis analyses::hyperparameter_impact = {
    .name = "hyperparameter_impact",
    .flag = "--hyperparameter-impact",
    .question = "Which settings differ, and how large was the change that came with them?",
    .definition = "differences of optimizer groups, args and config beside the size of the change",
    .examine = examine,
};

}  // namespace tensordiff
