// The rows of a session as a table, in columns or as JSON, and what one row says in full.

#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "serve/session.h"

namespace tensordiff::serve {

// "2,3", as columns have it.
std::string comma_text(const Shape& shape);

std::string_view status_word(const Row& row);
bool was_compared(const Row& row);

// How many times the tolerance: above 1 exactly where some finite element exceeds it.
std::optional<double> tolerance_ratio(const Diff& diff);

// Names of all columns, in their order.
std::vector<std::string_view> row_columns();

struct RowsWanted {
  // Those that changed after this; all of them where it is nothing, or older than the run.
  std::optional<uint64_t> since;
  std::vector<std::string_view> columns = row_columns();
};
std::string rows_as_columns(const SessionState& state, const RowsWanted& wanted);
std::string rows_as_json(const SessionState& state, const RowsWanted& wanted);

void write_metrics(JsonWriter& json, const Row& row);
void write_finding(JsonWriter& json, const Finding& finding);

}  // namespace tensordiff::serve
