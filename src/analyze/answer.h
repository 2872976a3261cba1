// What an analysis gives back: a plain ordered value that any renderer can show without knowing
// which analysis made it.
//
// The fields are the answer in one line; lists are the evidence; charts are the same as pictures.
// What the files do not hold is listed in `missing`, and the field that it would have filled says
// "unknown". Text may contain names out of files: renderers escape it.

#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace tensordiff {

// One cell: nothing (null), a flag, a number or text.
class Datum {
 public:
  using Value = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string>;

  Datum() = default;
  // A row of a list is written as plain values: {name, 3, 0.5}.
  // NOLINTBEGIN(google-explicit-constructor)
  Datum(bool flag) : value(flag) {}
  Datum(double number) : value(number) {}
  Datum(std::string text) : value(std::move(text)) {}
  Datum(std::string_view text) : value(std::string(text)) {}
  Datum(const char* text) : value(std::string(text)) {}
  template <std::unsigned_integral T>
  Datum(T number) : value(uint64_t{number}) {}
  template <std::signed_integral T>
  Datum(T number) : value(int64_t{number}) {}
  template <class T>
  Datum(const std::optional<T>& maybe) {
    if (maybe) *this = Datum(*maybe);
  }
  // NOLINTEND(google-explicit-constructor)

  bool operator==(const Datum&) const = default;

  Value value;
};

// As one line of text shows it: four digits of a fraction, "none" for nothing.
std::string datum_text(const Datum& datum);

struct Field {
  std::string name;
  Datum value;
};

struct Listing {
  std::string name;  // A JSON key: "layers".
  std::vector<std::string> columns;
  std::vector<std::vector<Datum>> rows;
  uint64_t rows_in_all = 0;  // More than there are where only the first are kept; set by add().

  // Keeps the first kListingRowsMax and counts the rest.
  void add(std::vector<Datum> row);
};
inline constexpr std::size_t kListingRowsMax = 64;

struct Chart {
  enum class Kind { bars, line, heat_map };
  Kind kind = Kind::bars;
  std::string name;  // A JSON key: "cosine".
  std::string title;
  std::vector<std::string> x;  // Names of the columns.
  std::vector<std::string> y;  // Names of the rows; one for bars and lines.
  std::vector<double> values;  // y.size() rows of x.size(); NaN: not known.
};

struct Answer {
  std::string_view name;  // Of the analysis that made it.
  std::vector<Field> fields;
  std::vector<Listing> lists;
  std::vector<Chart> charts;
  std::vector<std::string> missing;  // What would have to be in the files for a full answer.
  std::vector<std::string> notes;    // What was assumed or sampled.
  std::optional<std::string> alarm;  // Why the exit status has to be 1; nothing: no gate failed.

  Answer& field(std::string key, Datum value);
  // The field is "unknown", because `what` is not there.
  Answer& unknown(std::string key, std::string what);
  Listing& list(std::string key, std::vector<std::string> columns);
  // Nothing where there is no such field.
  const Datum* find(std::string_view key) const;
};

}  // namespace tensordiff
