// Signature Version 4, by which Amazon's stores and those that speak their language know who asks.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "remote/url.h"

namespace tensordiff::remote {

std::string hmac_sha256(std::string_view key, std::string_view text);

struct SigningKey {
  std::string id, secret, token;  // The token may be empty.
  std::string region;
  std::string service = "s3";
};

// Header lines for a GET of this address. `time` is such as "20130524T000000Z", in UTC. `more` are
// lines that are sent with it and take part in the signature, names in lower case.
std::vector<std::string> signed_headers(const Url& url, const SigningKey& key,
                                        const std::string& time,
                                        const std::vector<std::string>& more = {});

std::string time_now();  // As `time` above.

}  // namespace tensordiff::remote
