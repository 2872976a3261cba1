#include "report/csv_row.h"

#include <fmt/format.h>

#include "base/json.h"
#include "base/text.h"

namespace tensordiff {

CsvRow& CsvRow::field(std::string_view word) {
  if (started_) text_ += ',';
  started_ = true;
  if (word.find_first_of("\",\n\r") == std::string_view::npos) {
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
  const bool formula = clean.find_first_of("=+-@") == 0;
  return field(formula ? "'" + clean : clean);
}

CsvRow& CsvRow::skip(int count) {
  while (count-- > 0) field(std::string_view());
  return *this;
}

}  // namespace tensordiff
