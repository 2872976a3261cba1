// One row of CSV, quoted as RFC 4180 has it. An undefined number is an empty field.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace tensordiff {

class CsvRow {
 public:
  // A word of ours.
  CsvRow& field(std::string_view word);
  CsvRow& field(const char* word) { return field(std::string_view(word)); }
  CsvRow& field(uint64_t number);
  CsvRow& field(int64_t number);
  CsvRow& field(double number);
  template <class T>
  CsvRow& field(const std::optional<T>& maybe) {
    return maybe ? field(*maybe) : field(std::string_view());
  }

  // Text out of a file: made harmless, also for a spreadsheet, which would take one that starts
  // with '=' for a formula and run it. That gets an apostrophe in front.
  CsvRow& text(std::string_view text);

  CsvRow& skip(int count);
  std::string take() { return std::move(text_) + "\n"; }

 private:
  std::string text_;
  bool started_ = false;
};

}  // namespace tensordiff
