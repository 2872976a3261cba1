#include "report/csv_row.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "base/text.h"

namespace tensordiff {
namespace {

// Whether a spreadsheet would compute it: by its first character, also behind spaces, and also in
// the wide form that some take for the same.
bool is_formula(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  for (const std::string_view start : {"=", "+", "-", "@", "＝", "＋", "－", "＠"})
    if (text.starts_with(start)) return true;
  return false;
}

}  // namespace

CsvRow& CsvRow::field(std::string_view word) {
  if (started_) text_ += ',';
  started_ = true;
  if (word.find_first_of("\",;\n\r") == std::string_view::npos) {
    text_ += word;
    return *this;
  }
  text_ += '"';
  for (const char c : word) text_ += c == '"' ? std::string("\"\"") : std::string(1, c);
  text_ += '"';
  return *this;
}

CsvRow& CsvRow::field(uint64_t number) { return field(fmt::format("{}", number)); }
CsvRow& CsvRow::field(int64_t number) { return field(fmt::format("{}", number)); }
CsvRow& CsvRow::field(double number) { return field(number_text(number)); }

CsvRow& CsvRow::text(std::string_view text) {
  const std::string clean = printable(text, std::string::npos);
  return field(is_formula(clean) ? "'" + clean : clean);
}

CsvRow& CsvRow::skip(int count) {
  while (count-- > 0) field(std::string_view());
  return *this;
}

}  // namespace tensordiff
