#include "analyze/answer.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace tensordiff {
namespace {

std::string text(std::monostate) { return "none"; }
std::string text(bool flag) { return flag ? "true" : "false"; }
std::string text(int64_t number) { return fmt::format("{}", number); }
std::string text(uint64_t number) { return fmt::format("{}", number); }
std::string text(double number) {
  if (std::isnan(number)) return "nan";
  const bool whole = number == std::trunc(number) && std::abs(number) < 1e15;
  return whole ? fmt::format("{:.0f}", number) : fmt::format("{:.4g}", number);
}
std::string text(const std::string& words) { return words; }

}  // namespace

std::string datum_text(const Datum& datum) {
  return std::visit([](const auto& value) { return text(value); }, datum.value);
}

void Listing::add(std::vector<Datum> row) {
  ++rows_in_all;
  if (rows.size() < kListingRowsMax) rows.push_back(std::move(row));
}

Answer& Answer::field(std::string key, Datum value) {
  fields.push_back({std::move(key), std::move(value)});
  return *this;
}

Answer& Answer::unknown(std::string key, std::string what) {
  if (std::ranges::find(missing, what) == missing.end()) missing.push_back(std::move(what));
  return field(std::move(key), "unknown");
}

Listing& Answer::list(std::string key, std::vector<std::string> columns) {
  Listing& added = lists.emplace_back();
  added.name = std::move(key);
  added.columns = std::move(columns);
  return added;
}

const Datum* Answer::find(std::string_view key) const {
  const auto found = std::ranges::find(fields, key, &Field::name);
  return found == fields.end() ? nullptr : &found->value;
}

}  // namespace tensordiff
