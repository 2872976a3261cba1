#include "remote/listing_xml.h"

#include "base/text.h"

namespace tensordiff::remote {
namespace {

// What stands between <name> and the next </name>; nothing where there is none. `at` moves behind
// it.
std::optional<std::string_view> element(std::string_view xml, std::string_view name,
                                        std::size_t& at) {
  const std::string open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  const std::size_t begin = xml.find(open, at);
  if (begin == std::string_view::npos) return std::nullopt;
  const std::size_t end = xml.find(close, begin);
  if (end == std::string_view::npos) return std::nullopt;
  at = end + close.size();
  return xml.substr(begin + open.size(), end - begin - open.size());
}

std::optional<std::string_view> inside(std::string_view xml, std::string_view name) {
  std::size_t at = 0;
  return element(xml, name, at);
}

constexpr std::pair<std::string_view, char> kEntities[] = {
    {"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'}, {"&apos;", '\''}};

// "&#34;" and "&#x22;", of which stores write those below 128.
std::optional<char> numbered(std::string_view entity) {
  if (!entity.starts_with("&#") || entity.size() > 7) return std::nullopt;
  entity = entity.substr(2, entity.size() - 3);
  const bool sixteen = entity.starts_with('x');
  if (sixteen) entity.remove_prefix(1);
  unsigned value = 0;
  for (const char c : lower(entity)) {
    const bool digit = c >= '0' && c <= '9', letter = sixteen && c >= 'a' && c <= 'f';
    if (!digit && !letter) return std::nullopt;
    value = value * (sixteen ? 16 : 10) + static_cast<unsigned>(digit ? c - '0' : c - 'a' + 10);
  }
  return value > 0 && value < 128 ? std::optional(static_cast<char>(value)) : std::nullopt;
}

Result<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '&') {
      out += text[i];
      continue;
    }
    const std::size_t end = text.find(';', i);
    const std::string_view entity =
        end == std::string_view::npos ? "" : text.substr(i, end - i + 1);
    std::optional<char> meant = numbered(entity);
    for (const auto& [name, c] : kEntities)
      if (entity == name) meant = c;
    if (!meant) return Error("an entity in the listing that is not known");
    out += *meant;
    i = end;
  }
  return out;
}

Result<Listed> parse_object(std::string_view xml) {
  const auto key = inside(xml, "Key"), size = inside(xml, "Size"), etag = inside(xml, "ETag");
  if (!key || !size || !all_digits(*size) || size->size() > 18)
    return Error("an entry of the listing has no name or size");
  Listed object;
  object.name = TRY(unescaped(*key));
  object.size = std::stoull(std::string(*size));
  if (etag) object.hash = hash_in(TRY(unescaped(*etag)));
  return object;
}

}  // namespace

Result<ListingPage> parse_listing(std::string_view xml) {
  if (xml.find("<ListBucketResult") == std::string_view::npos)
    return Error("the server's answer is not a listing");
  ListingPage page;
  std::size_t at = 0;
  while (const auto object = element(xml, "Contents", at)) {
    page.objects.push_back(TRY(parse_object(*object)));
    if (page.objects.size() > kListedMax) return Error("a page lists more than {}", kListedMax);
  }
  if (inside(xml, "IsTruncated").value_or("false") != "true") return page;
  page.next = TRY(unescaped(inside(xml, "NextContinuationToken").value_or("")));
  if (page.next.empty()) return Error("the listing goes on, but does not say where");
  return page;
}

}  // namespace tensordiff::remote
