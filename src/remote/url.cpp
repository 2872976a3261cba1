#include "remote/url.h"

#include <algorithm>

#include "base/text.h"

namespace tensordiff::remote {
namespace {

constexpr std::size_t kUrlBytesMax = 8192;  // What common servers take, nginx and Apache.

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

bool is_unfit(char c) { return static_cast<unsigned char>(c) <= ' ' || c == '\x7f' || c == '\\'; }

Result<void> split_authority(std::string_view authority, Url& url) {
  if (authority.find('@') != std::string_view::npos)
    return Error("a user name or password in an address is not accepted");
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.find(':', bracket == std::string_view::npos ? 0 : bracket);
  url.host = lower(authority.substr(0, colon));
  if (colon != std::string_view::npos) url.port = authority.substr(colon + 1);
  if (url.host.empty()) return Error("an address without a host");
  if (!url.port.empty() && (!all_digits(url.port) || url.port.size() > 5))
    return Error("'{}' is not a port", printable(url.port, 20));
  if (url.port == (url.scheme == "https" ? "443" : "80")) url.port.clear();
  return {};
}

}  // namespace

std::string Url::origin() const {
  const std::string usual = scheme == "https" ? "443" : "80";
  return scheme + "://" + host + ":" + (port.empty() ? usual : port);
}

std::string Url::text() const {
  return scheme + "://" + authority() + path + (query.empty() ? "" : "?" + query);
}

bool Url::loopback() const {
  const bool dotted =
      std::ranges::all_of(host, [](char c) { return (c >= '0' && c <= '9') || c == '.'; });
  return host == "localhost" || host == "[::1]" || (dotted && host.starts_with("127."));
}

Result<Url> parse_url(std::string_view text) {
  if (text.size() > kUrlBytesMax) return Error("an address of more than {} bytes", kUrlBytesMax);
  if (std::ranges::any_of(text, is_unfit)) return Error("a space or '\\' in an address");
  Url url;
  const std::size_t mark = text.find("://");
  if (mark == std::string_view::npos) return Error("'{}' is not an address", printable(text, 80));
  url.scheme = lower(text.substr(0, mark));
  if (url.scheme != "http" && url.scheme != "https")
    return Error("addresses of '{}' are not read; there are: https, s3, gs, hf",
                 printable(url.scheme, 20));
  text = text.substr(mark + 3);
  text = text.substr(0, text.find('#'));
  const std::size_t question = text.find('?');
  if (question != std::string_view::npos) url.query = text.substr(question + 1);
  text = text.substr(0, question);
  const std::size_t slash = std::min(text.find('/'), text.size());
  TRY(split_authority(text.substr(0, slash), url));
  url.path = slash < text.size() ? text.substr(slash) : "/";
  return url;
}

std::string shown(std::string_view url) {
  const bool web = url.starts_with("http://") || url.starts_with("https://");
  std::string text(web ? url.substr(0, url.find_first_of("?#")) : url);
  const std::size_t host = text.find("://");
  if (!web || host == std::string::npos) return text;
  const std::size_t slash = std::min(text.find('/', host + 3), text.size());
  const std::size_t at = text.rfind('@', slash);
  if (at != std::string::npos && at > host) text.erase(host + 3, at - host - 2);
  return text;
}

std::string encoded(std::string_view text, bool keep_slash) {
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c) || (keep_slash && c == '/'))
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

bool is_relative_name(std::string_view name) {
  if (name.empty() || name.size() > 1024) return false;
  if (std::ranges::any_of(name, [](char c) {
        return static_cast<unsigned char>(c) < ' ' || c == '\x7f' || c == '\\';
      }))
    return false;
  return std::ranges::none_of(split(name, '/'), [](std::string_view part) {
    return part.empty() || part == "." || part == "..";
  });
}

}  // namespace tensordiff::remote
