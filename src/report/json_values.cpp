#include "report/json_values.h"

namespace tensordiff {

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
    json.member("message", problem.message).end_object();
  }
  json.end_array();
}

void text_or_null(JsonWriter& json, std::string_view key, std::string_view text) {
  json.key(key);
  text.empty() ? json.null() : json.value(text);
}

}  // namespace tensordiff
