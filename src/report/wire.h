// What programs see of a report: for each kind of object a table of its fields, which all outputs
// for programs are made from. A row of a table is all that a new field needs.
//
// The tables (wire_pair.cpp, wire_report.cpp) feed -o report, -o csv, the HTTP interface with its
// columns, the JSON Schema, docs/output.md and the types of the page (wire_schema.h).

#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "base/json.h"
#include "compare/status_words.h"
#include "report/report.h"

namespace tensordiff::wire {

inline constexpr std::string_view kSchema = "tensordiff.report/2";

// A value that is not an object. Texts and lists that stay where they are, are not copied.
using Cell =
    std::variant<std::monostate, bool, uint64_t, int64_t, double, std::string_view, std::string,
                 std::span<const uint64_t>, std::span<const double>, std::span<const std::string>>;

// A text that is null where it is empty.
struct MaybeText {
  std::string text;
};

enum class Kind : uint8_t { flag, count, integer, number, text, counts, numbers, texts, object };

struct Table;

struct Type {
  Kind kind = Kind::object;
  bool nullable = false;
  bool many = false;                          // A list of such objects.
  const Table* of = nullptr;                  // Of an object; nothing: its keys are not fixed.
  std::span<const std::string_view> words{};  // The only texts there are; empty: any.
};

// How keys are spelt: as in the tables, or as the HTTP interface has them: max_abs, maxAbs.
enum class Naming { snake, camel };
std::string camel(std::string_view name);

struct FieldInfo {
  std::string_view name;
  std::string_view about;  // A phrase for docs/output.md and the JSON Schema.
  Type type;
  bool in_csv = false;
  bool always = true;  // Else it is left out where there is nothing to tell.
};

template <class T>
struct Field : FieldInfo {
  Cell (*cell)(const T&) = nullptr;                         // Of what is not an object.
  void (*object)(JsonWriter&, const T&, Naming) = nullptr;  // And of one.
  bool (*present)(const T&) = nullptr;                      // Where it is not there always.

  constexpr Field among(std::span<const std::string_view> words) const {
    Field field = *this;
    field.type.words = words;
    return field;
  }
  constexpr Field with_csv() const {
    Field field = *this;
    field.in_csv = true;
    return field;
  }
  constexpr Field where(bool (*there)(const T&)) const {
    Field field = *this;
    field.always = false;
    field.present = there;
    return field;
  }
};

// The fields of a kind of object, whatever they are fields of.
struct Table {
  std::string_view name;
  std::string_view about;
  std::size_t size;
  const FieldInfo& (*at)(std::size_t);
};
template <const auto& Fields>
constexpr Table table(std::string_view name, std::string_view about) {
  return {name, about, std::size(Fields),
          [](std::size_t i) -> const FieldInfo& { return Fields[i]; }};
}

// --- from a C++ value to a Cell, and its type ---

inline Cell as_cell(bool value) { return value; }
inline Cell as_cell(const std::string& text) { return std::string_view(text); }
inline Cell as_cell(std::string&& text) { return std::move(text); }
inline Cell as_cell(std::string_view text) { return text; }
inline Cell as_cell(MaybeText maybe) {
  return maybe.text.empty() ? Cell() : Cell(std::move(maybe.text));
}
template <std::integral T>
requires(!std::same_as<T, bool>) Cell as_cell(T value) {
  if constexpr (std::is_signed_v<T>) return static_cast<int64_t>(value);
  return static_cast<uint64_t>(value);
}
inline Cell as_cell(double value) { return value; }
template <class T>
Cell as_cell(const std::vector<T>& list) {
  return std::span<const T>(list);
}
template <class T>
Cell as_cell(std::vector<T>&&) = delete;  // It would be gone before it is written.
template <class T>
Cell as_cell(std::span<const T> list) {
  return list;
}
template <class T>
Cell as_cell(const std::optional<T>& maybe) {
  return maybe ? as_cell(*maybe) : Cell();
}

template <class V>
struct TypeOf;
template <class V>
requires(std::same_as<V, bool>) struct TypeOf<V> {
  static constexpr Type kType{Kind::flag};
};
template <std::integral V>
requires(!std::same_as<V, bool>) struct TypeOf<V> {
  static constexpr Type kType{std::is_signed_v<V> ? Kind::integer : Kind::count};
};
template <>
struct TypeOf<double> {
  static constexpr Type kType{Kind::number};
};
template <class V>
requires std::convertible_to<V, std::string_view>
struct TypeOf<V> {
  static constexpr Type kType{Kind::text};
};
template <>
struct TypeOf<MaybeText> {
  static constexpr Type kType{Kind::text, true};
};
template <>
struct TypeOf<std::vector<uint64_t>> {
  static constexpr Type kType{Kind::counts};
};
template <>
struct TypeOf<std::span<const uint64_t>> : TypeOf<std::vector<uint64_t>> {};
template <>
struct TypeOf<std::vector<double>> {
  static constexpr Type kType{Kind::numbers};
};
template <>
struct TypeOf<std::span<const double>> : TypeOf<std::vector<double>> {};
template <>
struct TypeOf<std::vector<std::string>> {
  static constexpr Type kType{Kind::texts};
};
template <class V>
struct TypeOf<std::optional<V>> {
  static constexpr Type kType{TypeOf<V>::kType.kind, true};
};

// What a getter is of: a member of T, or a function of a const T&.
template <class Get>
struct Owner;
template <class V, class T>
struct Owner<V T::*> {
  using type = T;
};
template <class V, class T>
struct Owner<V (*)(const T&)> {
  using type = T;
};
template <auto Get>
using OwnerOf = typename Owner<decltype(Get)>::type;
template <auto Get>
using ValueOf = std::remove_cvref_t<std::invoke_result_t<decltype(Get), const OwnerOf<Get>&>>;

// --- the rows of a table ---

// T is named where the member is of a base of it.
template <auto Get, class T = OwnerOf<Get>>
constexpr Field<T> field(std::string_view name, std::string_view about) {
  Field<T> row{{name, about, TypeOf<ValueOf<Get>>::kType}};
  row.cell = [](const T& from) { return as_cell(std::invoke(Get, from)); };
  return row;
}

void write(JsonWriter& json, const Cell& cell);

// The members of an object that the caller has begun.
template <class T>
void write_members(JsonWriter& json, const T& from, std::span<const Field<T>> fields,
                   Naming naming = Naming::snake) {
  for (const Field<T>& field : fields) {
    if (field.present && !field.present(from)) continue;
    naming == Naming::snake ? json.key(field.name) : json.key(camel(field.name));
    if (field.object)
      field.object(json, from, naming);
    else
      write(json, field.cell(from));
  }
}
// Those of these names, for the HTTP interface: it tells the parts of a report one by one.
template <class T>
void write_some(JsonWriter& json, const T& from, std::span<const Field<T>> fields,
                std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    const auto field = std::ranges::find(fields, name, &Field<T>::name);
    write_members(json, from, fields.subspan(static_cast<std::size_t>(field - fields.begin()), 1),
                  Naming::camel);
  }
}
template <class T>
void write_object(JsonWriter& json, const T& from, std::span<const Field<T>> fields,
                  Naming naming = Naming::snake) {
  json.begin_object();
  write_members(json, from, fields, naming);
  json.end_object();
}

// A field that is an object of another table. A getter that returns an optional or a pointer may
// have none; one that returns a vector has many.
template <auto Get, const auto& Fields, class T = OwnerOf<Get>>
constexpr Field<T> object(std::string_view name, const Table& of, std::string_view about) {
  using V = ValueOf<Get>;
  constexpr bool kMany = requires(const V& value) { value.begin(); };
  constexpr bool kMaybe = requires(const V& value) { *value; };
  Field<T> row{{name, about, {Kind::object, kMaybe, kMany, &of}}};
  row.object = [](JsonWriter& json, const T& from, Naming naming) {
    decltype(auto) value = std::invoke(Get, from);
    const auto one = [&](const auto& each) {
      using Each = std::remove_cvref_t<decltype(each)>;
      write_object(json, each, std::span<const Field<Each>>(Fields), naming);
    };
    if constexpr (kMany) {
      json.begin_array();
      for (const auto& each : value) one(each);
      json.end_array();
    } else if constexpr (kMaybe) {
      value ? one(*value) : static_cast<void>(json.null());
    } else {
      one(value);
    }
  };
  return row;
}

// --- the tables ---

std::span<const Field<Diff>> diff_fields();
std::span<const Field<Stats>> stats_fields();
std::span<const Field<Finding>> finding_fields();
std::span<const Field<PairRow>> pair_fields();
std::span<const Field<Problem>> problem_fields();
std::span<const Field<ConversionRow>> conversion_fields();
std::span<const Field<Report>> report_fields();

extern const Table kReportTable;  // The root; all others hang on it.
extern const Table kPairTable;
extern const Table kDiffTable;
extern const Table kStatsTable;
extern const Table kFindingTable;

// --- words ---

// The statuses of a row, in the order of their codes in the columns of the HTTP interface: those of
// pairs, and what a row of the debugger may be instead. same_shape came last, and codes stay.
inline constexpr auto kRowStatuses = [] {
  std::array<std::string_view, kStatuses + 4> all = {"pending"};
  auto next = std::ranges::copy_if(kStatusWords, all.begin() + 1, [](std::string_view word) {
                return status_named(word) != Status::same_shape;
              }).out;
  for (const std::string_view word : {"only_a", "only_b", "single"}) *next++ = word;
  *next = kStatusWords[static_cast<std::size_t>(Status::same_shape)];
  return all;
}();
constexpr uint8_t row_code(std::string_view status) {
  return static_cast<uint8_t>(std::ranges::find(kRowStatuses, status) - kRowStatuses.begin());
}
// Of a column: 0 for none.
inline constexpr std::string_view kVerdicts[] = {"match", "precision", "bug"};
inline constexpr std::string_view kConclusionWords[] = {"same",  "close",     "shapes_match",
                                                        "known", "different", "trouble"};
inline constexpr std::string_view kNovelties[] = {"known", "grown", "new"};

}  // namespace tensordiff::wire
