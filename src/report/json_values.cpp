#include "report/json_values.h"

#include <algorithm>

namespace tensordiff {
namespace {

// What the numbers of a step are called. The last of fewer names than numbers stands for a list.
struct StepNames {
  std::string_view op;
  std::vector<std::string_view> names;
};

const StepNames& names_of(std::string_view op) {
  static const StepNames kNames[] = {
      {ops::kSqueeze, {"axis"}},
      {ops::kPermute, {"order..."}},
      {ops::kSplit, {"axis", "sizes..."}},
      {ops::kTruncate, {"axis", "size"}},
      {ops::kSelect, {"axis", "first", "size"}},
      {ops::kReplica, {"ranks"}},
      {ops::kSum, {"ranks"}},
      {ops::kConcat, {"axis", "ranks", "copies"}},
      {ops::kConcatParts, {"axis", "ranks", "parts..."}},
  };
  return *std::ranges::find(kNames, op, &StepNames::op);
}

}  // namespace

void write_step(JsonWriter& json, const Step& step) {
  json.member("op", step.op);
  std::size_t at = 0;
  for (const std::string_view name : names_of(step.op).names) {
    if (!name.ends_with("...")) {
      json.member(name, step.argument[at++]);
      continue;
    }
    const std::vector<uint64_t> rest(step.argument.begin() + static_cast<std::ptrdiff_t>(at),
                                     step.argument.end());
    json.member(name.substr(0, name.size() - 3), rest);
  }
}

void write_stats(JsonWriter& json, const Stats& stats) {
  json.begin_object().member("mean", stats.mean).member("std", stats.std);
  json.member("min", stats.min).member("max", stats.max).member("norm", stats.norm);
  json.member("zeros", stats.zeros).member("nan", stats.nan).member("inf", stats.inf);
  json.end_object();
}

void write_problems(JsonWriter& json, const std::vector<Problem>& problems) {
  json.begin_array();
  for (const Problem& problem : problems) {
    json.begin_object().member("where", problem.where);
    json.member("message", problem.message);
    json.member("severity", name_of(problem.severity)).end_object();
  }
  json.end_array();
}

void text_or_null(JsonWriter& json, std::string_view key, std::string_view text) {
  json.key(key);
  text.empty() ? json.null() : json.value(text);
}

}  // namespace tensordiff
