#include "naming/affixes.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::array<std::string_view, 4> kExpertWords = {"experts", "expert", "exps", "shexp"};
// What is wrapped around a module anywhere in a name: "layers.0._fsdp_wrapped_module.attn", and
// what TransformerLens puts before each capture: "attn.hook_q".
constexpr std::array<std::string_view, 3> kWrappedModules = {"fsdp.wrapped.module",
                                                             "checkpoint.wrapped.module", "hook"};
struct ParameterWords {
  std::string_view words;
  Param parameter;
};
// The first that fits counts.
constexpr ParameterWords kParameters[] = {
    {"running.mean", Param::running_mean},
    {"moving.mean", Param::running_mean},
    {"running.var", Param::running_var},
    {"moving.variance", Param::running_var},
    {"num.batches.tracked", Param::batches},
    {"weight.scale.inv", Param::scale},
    {"weight.scale", Param::scale},
    {"weight.zero.point", Param::zero_point},
    {"qweight", Param::packed},
    {"weight.packed", Param::packed},
    {"scales", Param::scale},
    {"qzeros", Param::zero_point},
    {"weight", Param::weight},
    {"bias", Param::bias},
    {"gamma", Param::weight},
    {"beta", Param::bias},
    {"scale", Param::weight},
    {"kernel", Param::weight},
};
// These are words of other meanings, too.
constexpr ParameterWords kShortParameters[] = {{"w", Param::weight},
                                               {"b", Param::bias},
                                               {"g", Param::weight},
                                               {"embedding", Param::weight},
                                               {"embeddings", Param::weight}};

template <class List>
bool contains(const List& list, std::string_view word) {
  return std::ranges::find(list, word) != std::ranges::end(list);
}

std::size_t words_in(std::string_view dotted) {
  return static_cast<std::size_t>(1 + std::ranges::count(dotted, '.'));
}

// "experts.weight3": the number stands at the parameter.
std::optional<int32_t> take_number_of_parameter(Words& words) {
  for (const std::string_view parameter : {"weight", "bias"}) {
    if (words.empty() || !words.back().starts_with(parameter)) continue;
    const auto number = number_of(words.back().substr(parameter.size()));
    if (number) words.replace_back(parameter);
    return number;
  }
  return std::nullopt;
}

}  // namespace

Tower tower_in(const Words& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "encoder" || words[i] == "enc") return Tower::encoder;
    if (words[i] == "decoder" || words[i] == "dec") return Tower::decoder;
    if (words[i] == "vision" || words[i] == "visual" || (i == 0 && words[i] == "v"))
      return Tower::vision;
  }
  return Tower::none;
}

void drop_wrapped_modules(Words& words) {
  for (std::size_t i = 0; i < words.size();) {
    std::size_t count = 0;
    for (const std::string_view wrapper : kWrappedModules)
      if (words.has(i, wrapper)) count = words_in(wrapper);
    if (count > 0)
      words.erase(i, count);
    else
      ++i;
  }
}

int32_t take_expert(Words& words) {
  int32_t expert = Place::kNone;
  for (std::size_t at = 0; at < words.size();) {
    if (!contains(kExpertWords, words[at])) {
      ++at;
      continue;
    }
    bool shared = words[at] == "shexp";
    words.erase(at, 1);
    if (at > 0 && words[at - 1] == "shared") {
      words.erase(--at, 1);
      shared = true;
    }
    if (at > 0 && words[at - 1] == "local") words.erase(--at, 1);
    if (shared) return Place::kShared;
    const auto number = at == words.size() ? std::nullopt : number_of(words[at]);
    if (number) words.erase(at, 1);
    expert = number.value_or(Place::kAll);
  }
  if (expert == Place::kAll) return take_number_of_parameter(words).value_or(expert);
  return expert;
}

Param take_parameter(Words& words) {
  for (const ParameterWords& row : kParameters) {
    const std::size_t count = words_in(row.words);
    if (words.size() < count || !words.has(words.size() - count, row.words)) continue;
    words.erase(words.size() - count, count);
    return row.parameter;
  }
  return Param::none;
}

bool names_parameter(std::string_view name) {
  const std::string lowered = lower(name);
  Words words(lowered);
  return take_parameter(words) != Param::none;
}

Param short_parameter(std::string_view word) {
  const auto found = std::ranges::find(kShortParameters, word, &ParameterWords::words);
  return found == std::end(kShortParameters) ? Param::none : found->parameter;
}

}  // namespace tensordiff
