#include "report/wire_schema.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/wire.h"

namespace tensordiff::wire {
namespace {

// The table and all that hang on it, each once, as they come.
void collect(const Table& table, std::vector<const Table*>& found) {
  if (std::ranges::find(found, &table) != found.end()) return;
  found.push_back(&table);
  for (std::size_t i = 0; i < table.size; ++i)
    if (const Table* of = table.at(i).type.of) collect(*of, found);
}

std::vector<const Table*> all_tables() {
  std::vector<const Table*> found;
  collect(kReportTable, found);
  return found;
}

// --- JSON Schema ---

std::string reference(std::string_view name) { return fmt::format("#/$defs/{}", name); }

// The members that say what a value is, where it is not null.
void write_kind(JsonWriter& json, const Type& type) {
  switch (type.kind) {
    case Kind::flag:
      json.member("type", "boolean");
      break;
    case Kind::count:
      json.member("$ref", reference("count"));
      break;
    case Kind::integer:
      json.member("type", "integer");
      break;
    case Kind::number:
      json.member("$ref", reference("number"));
      break;
    case Kind::text:
      json.member("type", "string");
      break;
    case Kind::object:
      type.of ? json.member("$ref", reference(type.of->name)) : json.member("type", "object");
      break;
    case Kind::counts:
    case Kind::numbers:
    case Kind::texts:
      json.member("type", "array").key("items").begin_object();
      write_kind(json, {type.kind == Kind::counts    ? Kind::count
                        : type.kind == Kind::numbers ? Kind::number
                                                     : Kind::text});
      json.end_object();
      break;
  }
}

void write_words(JsonWriter& json, const Type& type) {
  json.key("enum").begin_array();
  for (const std::string_view word : type.words) json.value(word);
  if (type.nullable) json.null();
  json.end_array();
}

void write_type(JsonWriter& json, const Type& type) {
  if (!type.words.empty()) return write_words(json, type);
  if (type.many) {
    json.member("type", "array").key("items").begin_object();
    write_kind(json, type);
    json.end_object();
  } else if (type.nullable) {
    json.key("anyOf").begin_array().begin_object();
    write_kind(json, type);
    json.end_object().begin_object().member("type", "null").end_object().end_array();
  } else {
    write_kind(json, type);
  }
}

void write_definition(JsonWriter& json, const Table& table) {
  json.key(table.name).begin_object().member("description", table.about);
  json.member("type", "object").key("properties").begin_object();
  for (std::size_t i = 0; i < table.size; ++i) {
    const FieldInfo& field = table.at(i);
    json.key(field.name).begin_object().member("description", field.about);
    write_type(json, field.type);
    json.end_object();
  }
  json.end_object().key("required").begin_array();
  for (std::size_t i = 0; i < table.size; ++i)
    if (table.at(i).always) json.value(table.at(i).name);
  json.end_array().end_object();
}

// --- for people ---

std::string type_text(const Type& type) {
  std::string text;
  for (const std::string_view word : type.words)
    text += fmt::format("{}`{}`", text.empty() ? "" : ", ", word);
  constexpr std::string_view kKinds[] = {"true or false",   "count",         "integer",
                                         "number",          "text",          "list of counts",
                                         "list of numbers", "list of texts", "object"};
  static_assert(std::size(kKinds) == static_cast<std::size_t>(Kind::object) + 1);
  if (text.empty())
    text =
        type.of ? fmt::format("`{}`", type.of->name) : kKinds[static_cast<std::size_t>(type.kind)];
  if (type.many) text = "list of " + text;
  return text + (type.nullable ? " or null" : "");
}

// --- TypeScript ---

std::string raised(std::string_view name) {
  std::string out = camel(name);
  if (!out.empty()) out[0] = static_cast<char>(out[0] - 'a' + 'A');
  return out;
}

std::string script_type(const Type& type) {
  if (!type.words.empty()) {
    std::string text;
    for (const std::string_view word : type.words)
      text += fmt::format("{}'{}'", text.empty() ? "" : " | ", word);
    return text;
  }
  switch (type.kind) {
    case Kind::flag:
      return "boolean";
    case Kind::count:
    case Kind::integer:
      return "number";
    case Kind::number:
      return "Num";
    case Kind::text:
      return "string";
    case Kind::counts:
      return "number[]";
    case Kind::numbers:
      return "Num[]";
    case Kind::texts:
      return "string[]";
    case Kind::object:
      break;
  }
  return (type.of ? raised(type.of->name) : "Record<string, unknown>") + (type.many ? "[]" : "");
}

std::string interface_of(const Table& table) {
  std::string out =
      fmt::format("\n/** {} */\nexport interface {} {{\n", table.about, raised(table.name));
  for (std::size_t i = 0; i < table.size; ++i) {
    const FieldInfo& field = table.at(i);
    const bool null = field.type.nullable && field.type.kind != Kind::number;  // Num has it.
    out += fmt::format("  {}{}: {}{};\n", camel(field.name), field.always ? "" : "?",
                       script_type(field.type), null ? " | null" : "");
  }
  return out + "}\n";
}

std::string list_of(std::string_view name, std::span<const std::string_view> words) {
  std::string out = fmt::format("\nexport const {} = [\n", name);
  for (const std::string_view word : words) out += fmt::format("  '{}',\n", word);
  return out + "] as const;\n";
}

}  // namespace

std::string json_schema() {
  JsonWriter json(JsonWriter::Style::indented);
  json.begin_object().member("$schema", "https://json-schema.org/draft/2020-12/schema");
  json.member("title", kSchema);
  json.member("description", "The result of `tensordiff A B -o report`: docs/output.md");
  json.member("$ref", reference(kReportTable.name)).key("$defs").begin_object();
  json.key("count").begin_object().member("type", "integer").member("minimum", 0).end_object();
  json.key("number").begin_object().key("anyOf").begin_array();
  json.begin_object().member("type", "number").end_object();
  json.begin_object().key("enum").begin_array().value("nan").value("inf").value("-inf");
  json.end_array().end_object().end_array().end_object();
  for (const Table* table : all_tables()) write_definition(json, *table);
  json.end_object().end_object();
  return json.take() + "\n";
}

std::string field_tables() {
  std::string out;
  for (const Table* table : all_tables()) {
    out += fmt::format("\n**`{}`**: {}\n\n| key | type | meaning |\n|---|---|---|\n", table->name,
                       table->about);
    for (std::size_t i = 0; i < table->size; ++i) {
      const FieldInfo& field = table->at(i);
      std::string about(field.about);
      for (std::size_t at = 0; (at = about.find('|', at)) != std::string::npos; at += 2)
        about.insert(at, "\\");
      out += fmt::format("| `{}` | {} | {}{} |\n", field.name, type_text(field.type), about,
                         field.always ? "" : "; else it is left out");
    }
  }
  return out;
}

std::string page_types() {
  std::string out =
      "// Made by tools/update_schema out of the tables of src/report/wire.h.\n\n"
      "/** A number, or why it is none. */\n"
      "export type Num = number | 'nan' | 'inf' | '-inf' | null;\n";
  out += "\n/** The statuses of a row, by their codes in the columns. */";
  out += list_of("STATUS", kRowStatuses);
  out += "export type Status = (typeof STATUS)[number];\n";
  out += list_of("CONCLUSIONS", kConclusionWords);
  out += "export type Conclusion = (typeof CONCLUSIONS)[number];\n";
  for (const Table* table : all_tables()) out += interface_of(*table);
  return out;
}

std::string status_codes() {
  std::string out;
  for (std::size_t i = 0; i < std::size(kRowStatuses); ++i)
    out += fmt::format("{}{} {}", i == 0 ? "" : ", ", i, kRowStatuses[i]);
  return out;
}

}  // namespace tensordiff::wire
