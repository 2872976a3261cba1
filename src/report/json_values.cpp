#include "report/json_values.h"

#include "report/wire.h"
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
  wire::write_object(json, stats, wire::stats_fields());
}

void write_parameters(JsonWriter& json, const std::vector<Parameter>& parameters) {
  json.begin_object();
  for (const Parameter& parameter : parameters)
    std::visit([&](const auto& value) { json.member(parameter.name, value); }, parameter.value);
  json.end_object();
}

void write_problems(JsonWriter& json, const std::vector<Problem>& problems) {
  json.begin_array();
  for (const Problem& problem : problems) wire::write_object(json, problem, wire::problem_fields());
  json.end_array();
}

void text_or_null(JsonWriter& json, std::string_view key, std::string_view text) {
  json.key(key);
  text.empty() ? json.null() : json.value(text);
}

}  // namespace tensordiff
