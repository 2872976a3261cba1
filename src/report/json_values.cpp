#include "report/json_values.h"

#include "report/wording.h"

namespace tensordiff {
void write_step(JsonWriter& json, const Step& step) {
  const OpWords& words = words_of(step.op);
  json.member("op", words.name);
  std::size_t at = 0;
  for (const std::string_view name : words.arguments) {
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
