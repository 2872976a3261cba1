// Addresses: their parts, and the spelling that requests and signatures need.

#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace tensordiff::remote {

struct Url {
  std::string scheme;  // "https", in lower case.
  std::string host;    // As it was written: "host", "[::1]"; lower case.
  std::string port;    // Empty: the usual one.
  std::string path;    // From its '/' on, as it was written.
  std::string query;   // Without its '?'.

  std::string authority() const { return port.empty() ? host : host + ":" + port; }
  std::string origin() const;  // "https://host:443": what two addresses of one server share.
  std::string text() const;
  bool loopback() const;  // By its name alone: localhost, 127.0.0.0/8, ::1.
};

// Takes http and https. Refuses a user name or password in it, spaces, control characters, and what
// is too long. A fragment is left out.
Result<Url> parse_url(std::string_view text);

// The address without its query, which may hold a signature.
std::string shown(std::string_view url);

// Every byte but letters, digits and "-._~" as %XX; '/' stays where it is kept.
std::string encoded(std::string_view text, bool keep_slash = true);

// Whether a name from a listing can be that of a file below a folder.
bool is_relative_name(std::string_view name);

}  // namespace tensordiff::remote
