// https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html

#include "remote/sigv4.h"

#include <algorithm>
#include <ctime>
#include <map>

#include "base/sha256.h"
#include "base/text.h"

namespace tensordiff::remote {
namespace {

std::string hexadecimal(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}

// Queries are ours, and encoded already: they only need their order.
std::string canonical_query(const std::string& query) {
  std::vector<std::string_view> parts = split(query, '&');
  std::ranges::sort(parts);
  std::string out;
  for (const std::string_view part : parts) {
    if (part.empty()) continue;
    out += (out.empty() ? "" : "&") + std::string(part);
    if (part.find('=') == std::string_view::npos) out += "=";
  }
  return out;
}

}  // namespace

// RFC 2104, for a hash of blocks of 64 bytes.
std::string hmac_sha256(std::string_view key, std::string_view text) {
  constexpr std::size_t kBlock = 64;
  std::string padded(key.size() > kBlock ? sha256(key) : std::string(key));
  padded.resize(kBlock, '\0');
  std::string inner, outer;
  for (const char c : padded) {
    inner += static_cast<char>(c ^ 0x36);
    outer += static_cast<char>(c ^ 0x5c);
  }
  return sha256(outer + sha256(inner + std::string(text)));
}

std::vector<std::string> signed_headers(const Url& url, const SigningKey& key,
                                        const std::string& time,
                                        const std::vector<std::string>& more) {
  const std::string nothing = hexadecimal(sha256(""));
  std::map<std::string, std::string> headers = {
      {"host", url.authority()}, {"x-amz-content-sha256", nothing}, {"x-amz-date", time}};
  if (!key.token.empty()) headers["x-amz-security-token"] = key.token;
  for (const std::string& line : more)
    headers[line.substr(0, line.find(':'))] = line.substr(line.find(':') + 2);
  std::string canonical, names;
  for (const auto& [name, value] : headers) {
    canonical += name + ":" + value + "\n";
    names += (names.empty() ? "" : ";") + name;
  }
  const std::string asked = "GET\n" + url.path + "\n" + canonical_query(url.query) + "\n" +
                            canonical + "\n" + names + "\n" + nothing;
  const std::string day = time.substr(0, 8);
  const std::string scope = day + "/" + key.region + "/" + key.service + "/aws4_request";
  const std::string to_sign =
      "AWS4-HMAC-SHA256\n" + time + "\n" + scope + "\n" + hexadecimal(sha256(asked));
  std::string secret = hmac_sha256("AWS4" + key.secret, day);
  for (const std::string& part : {key.region, key.service, std::string("aws4_request")})
    secret = hmac_sha256(secret, part);
  std::vector<std::string> lines;
  for (const auto& [name, value] : headers)
    if (name != "host") lines.push_back(name + ": " + value);
  lines.push_back("Authorization: AWS4-HMAC-SHA256 Credential=" + key.id + "/" + scope +
                  ",SignedHeaders=" + names +
                  ",Signature=" + hexadecimal(hmac_sha256(secret, to_sign)));
  return lines;
}

std::string time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y%m%dT%H%M%SZ", &parts);
  return text;
}

}  // namespace tensordiff::remote
