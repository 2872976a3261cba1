// Keys and tokens, from the places where the tools of each store keep them. They go into requests
// and nowhere else: no message, report or log has them.

#pragma once

#include <map>
#include <string>
#include <string_view>

namespace tensordiff::remote {

struct AwsSettings {
  std::string id, secret, token;  // Empty: requests are not signed.
  std::string region = "us-east-1";
  std::string endpoint;  // Empty: Amazon's own.
};

// AWS_* variables, then the profile in ~/.aws/credentials and ~/.aws/config.
AwsSettings aws_settings();

struct GoogleSettings {
  std::string token;       // OAuth; else
  std::string id, secret;  // HMAC keys; else requests are not signed.
  std::string endpoint = "https://storage.googleapis.com";
};
GoogleSettings google_settings();

struct HubSettings {
  std::string endpoint = "https://huggingface.co";
  std::string token;
};
HubSettings hub_settings();

// The sections of a file such as ~/.aws/config: "[profile x]" and lines "key = value".
using Sections = std::map<std::string, std::map<std::string, std::string>, std::less<>>;
Sections parse_sections(std::string_view text);

}  // namespace tensordiff::remote
