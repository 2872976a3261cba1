#include "serve/guard.h"

#include <arpa/inet.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/result.h"
#include "base/text.h"

namespace tensordiff::serve {
namespace {

std::string random_letters(std::size_t length, std::string_view alphabet) {
  std::string text;
  while (text.size() < length) {
    std::array<unsigned char, 64> bytes{};
    if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) continue;
    // A byte beyond the last whole round of the alphabet would favour its first letters.
    const std::size_t fair = 256 - 256 % alphabet.size();
    for (const unsigned char byte : bytes)
      if (byte < fair && text.size() < length) text += alphabet[byte % alphabet.size()];
  }
  return text;
}

bool is_numeric(std::string_view address) {
  std::array<unsigned char, 16> bytes{};
  const bool bracketed = address.starts_with('[') && address.ends_with(']');
  const std::string text(bracketed ? address.substr(1, address.size() - 2) : address);
  return inet_pton(bracketed ? AF_INET6 : AF_INET, text.c_str(), bytes.data()) == 1;
}

}  // namespace

std::string random_token() {
  return random_letters(32, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789");
}

std::string random_id(std::size_t length) {
  return random_letters(length, "abcdefghijklmnopqrstuvwxyz0123456789");
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

Guard make_guard(uint16_t port, const std::string& listen, bool loopback) {
  Guard guard;
  guard.port = port;
  guard.any_address = !loopback;
  std::vector<std::string> names = {"127.0.0.1", "localhost", "[::1]"};
  const bool v6 = listen.find(':') != std::string::npos;
  names.push_back(v6 ? "[" + listen + "]" : listen);
  std::array<char, 256> own{};
  if (!loopback && gethostname(own.data(), own.size() - 1) == 0) names.push_back(lower(own.data()));
  for (const std::string& name : names) {
    guard.hosts.push_back(fmt::format("{}:{}", name, port));
    if (port == 80) guard.hosts.push_back(name);
  }
  return guard;
}

bool Guard::is_ours(std::string_view host) const {
  if (std::ranges::find(hosts, lower(host)) != hosts.end()) return true;
  const std::size_t colon = host.rfind(':');
  return any_address && colon != std::string_view::npos &&
         host.substr(colon + 1) == std::to_string(port) && is_numeric(host.substr(0, colon));
}

bool Guard::comes_from_elsewhere(const Request& request) const {
  const std::string_view site = request.header("sec-fetch-site");
  if (site.empty() || site == "same-origin") return false;
  if (request.method != "GET" && request.method != "HEAD") return true;
  // A link may lead to the page from anywhere, also from the file that opens the browser: it is
  // shown as a page of its own (never in a frame), holds no secrets, and starts nothing.
  const bool followed = request.header("sec-fetch-mode") == "navigate" &&
                        request.header("sec-fetch-dest") == "document" && request.path == "/";
  return site != "none" && !followed;
}

std::optional<Response> Guard::check(const Request& request) const {
  if (request.count("host") != 1 || !is_ours(request.header("host")))
    return problem(421, "this server does not answer to that host",
                   "use the address that tensordiff printed");
  const std::string_view origin = request.header("origin");
  constexpr std::string_view kScheme = "http://";
  const bool foreign = !origin.starts_with(kScheme) || !is_ours(origin.substr(kScheme.size()));
  if (request.count("origin") > 1 || (request.count("origin") == 1 && foreign))
    return problem(403, "the request comes from a page of another origin");
  if (comes_from_elsewhere(request))
    return problem(403, "the request comes from a page of another site");
  if (request.count("content-encoding") > 0)
    return problem(415, "compressed requests are not taken", "send it without Content-Encoding");
  return std::nullopt;
}

bool Guard::knows_token(std::string_view offered) const {
  unsigned char wrong = offered.size() == token.size() && !token.empty() ? 0 : 1;
  for (std::size_t i = 0; i < token.size(); ++i)
    wrong |= static_cast<unsigned char>(token[i] ^ (i < offered.size() ? offered[i] : 0));
  return wrong == 0;
}

void add_security_headers(Response& response) {
  const auto add = [&](std::string_view name, std::string_view value) {
    if (std::ranges::find(response.headers, name, &Header::name) == response.headers.end())
      response.headers.push_back({std::string(name), std::string(value)});
  };
  add("Content-Security-Policy",
      "default-src 'self'; img-src 'self' data: blob:; object-src 'none'; base-uri 'none'; "
      "form-action 'none'; frame-ancestors 'none'");
  add("X-Content-Type-Options", "nosniff");
  add("Referrer-Policy", "no-referrer");
  add("Cross-Origin-Resource-Policy", "same-origin");
  add("Cross-Origin-Opener-Policy", "same-origin");
  add("X-Frame-Options", "DENY");
  add("Cache-Control", "no-store");
}

}  // namespace tensordiff::serve
