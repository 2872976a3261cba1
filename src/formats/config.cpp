#include "formats/config.h"

#include "base/json.h"
#include "base/text.h"

namespace tensordiff {
namespace {

constexpr std::size_t kListMax = 16;  // Values of a list that are written out.

std::string text_of(const Json& value) {
  if (value.is_string()) return std::string(value.string());
  if (value.u64()) return fmt::format("{}", *value.u64());
  if (value.number()) return fmt::format("{}", *value.number());
  if (value.is_null()) return "null";
  if (value.boolean()) return *value.boolean() ? "true" : "false";
  if (value.is_object()) return "{…}";
  std::string list;
  for (std::size_t i = 0; i < value.array().size() && i < kListMax; ++i)
    list += (i ? ", " : "") + text_of(value.array()[i]);
  const bool more = value.array().size() > kListMax;
  return fmt::format("[{}{}]", list, more ? fmt::format(", … {}", value.array().size()) : "");
}

// As deep as the parser lets JSON be.
void add(const Json& value, const std::string& key, Catalog& catalog) {
  for (const Json::Member& member : value.object()) {
    const std::string inner = key + member.key;
    if (member.value.is_object())
      add(member.value, inner + ".", catalog);
    else
      catalog.metadata.push_back({inner, text_of(member.value)});
  }
}

}  // namespace

void add_config(const ByteSource& json, const Limits& limits, Catalog& catalog) {
  const auto unread = [&](std::string_view why) {
    catalog.metadata.push_back({"config.json", fmt::format("not read: {}", why)});
  };
  if (json.size() > limits.json_bytes_max)
    return unread(fmt::format("longer than {}", human_bytes(limits.json_bytes_max)));
  const Result<Bytes> bytes = json.open();
  if (!bytes.ok()) return unread(bytes.error().message());
  const Result<Json> parsed = Json::parse(as_text(bytes.value().view));
  if (!parsed.ok()) return unread(parsed.error().message());
  add(parsed.value(), "config.json: ", catalog);
}

}  // namespace tensordiff
