// `-o yaml`: the same list of changes as `-o json`, as YAML.
//
// The JSON text is read back and written in block style, so that the two can never disagree.

#include <fmt/format.h>

#include <cctype>

#include "base/code_points.h"
#include "base/json.h"
#include "base/text.h"
#include "report/renderer.h"

namespace tensordiff {
namespace {

// Words and numbers that YAML would not read as text have to be quoted; only plain names are not.
bool plain(std::string_view text) {
  constexpr std::string_view kWords[] = {"y",    "n",     "yes", "no",  "on",  "off",
                                         "true", "false", "nan", "inf", "null"};
  if (text.empty() || !(std::isalpha(static_cast<unsigned char>(text[0])) || text[0] == '_'))
    return false;
  for (const char c : text)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '_' && c != '.') return false;
  for (const std::string_view word : kWords)
    if (lower(text) == word) return false;
  return true;
}

// As JSON quotes it, but for characters beyond U+FFFF, which YAML escapes in one piece.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  std::size_t length = 0;
  for (std::size_t at = 0; at < text.size(); at += length) {
    const uint32_t point = decode_utf8(text, at, length);
    if (point == '"' || point == '\\')
      out += {'\\', static_cast<char>(point)};
    else if (point == '\n')
      out += "\\n";
    else if (!is_harmful(point))
      out += text.substr(at, length);
    else
      out += point < 0x10000 ? fmt::format("\\u{:04x}", point) : fmt::format("\\U{:08x}", point);
  }
  return out + "\"";
}

std::string scalar(const Json& value) {
  if (value.is_string())
    return plain(value.string()) ? std::string(value.string()) : quoted(value.string());
  if (const auto flag = value.boolean()) return *flag ? "true" : "false";
  if (const auto number = value.u64()) return fmt::format("{}", *number);
  if (const auto number = value.i64()) return fmt::format("{}", *number);
  if (const auto number = value.number()) {
    // YAML 1.1 takes 1e-05 for text and 1.0e-05 for a number.
    std::string text = number_text(*number);
    const std::size_t exponent = text.find('e');
    if (exponent != std::string::npos && text.find('.') == std::string::npos)
      text.insert(exponent, ".0");
    return text;
  }
  return "null";
}

// Writes a value after its key or dash, with the lines below it `depth` columns in. The list of
// changes, with what analyses add to it, is eight levels deep at most.
void write(const Json& value, std::size_t depth, std::string& out) {
  const std::string margin(depth, ' ');
  if (value.is_array() && !value.array().empty()) {
    for (const Json& item : value.array()) {
      if (&item != value.array().data()) out += margin;
      out += "- ";
      write(item, depth + 2, out);
    }
  } else if (value.is_object() && !value.object().empty()) {
    for (const Json::Member& member : value.object()) {
      if (&member != value.object().data()) out += margin;
      out += scalar(Json(member.key)) + ":";
      const bool nested = !member.value.array().empty() || !member.value.object().empty();
      out += nested ? "\n" + std::string(depth + 2, ' ') : " ";
      write(member.value, depth + 2, out);
    }
  } else {
    out += value.is_array() ? "[]" : value.is_object() ? "{}" : scalar(value);
    out += "\n";
  }
}

std::string render(const Report& report, const RenderOptions& options) {
  const Result<Json> changes = Json::parse(renderers::json.render(report, options));
  std::string out;
  if (changes.ok()) write(changes.value(), 0, out);
  return out;
}

}  // namespace

constinit const Renderer renderers::yaml = {
    .name = "yaml",
    .summary = "the list of changes as YAML",
    .unpaired_stats = true,
    .render = render,
};

}  // namespace tensordiff
