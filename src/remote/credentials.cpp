#include "remote/credentials.h"

#include <cstdlib>

#include "base/byte_source.h"
#include "base/text.h"

namespace tensordiff::remote {
namespace {

constexpr uint64_t kFileBytesMax = 1 << 20;

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string first_of(std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (std::string value = variable(name); !value.empty()) return value;
  return "";
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

// Empty where there is none, or it is too long.
std::string file_text(const std::string& path) {
  const Result<Bytes> bytes = path.empty() ? Error("no path") : map_file(path);
  if (!bytes.ok() || bytes.value().size() > kFileBytesMax) return "";
  return std::string(as_text(bytes.value().view));
}

std::string at_home(std::string_view path) {
  const std::string home = variable("HOME");
  return home.empty() ? "" : home + "/" + std::string(path);
}

void fill(std::string& value, const std::map<std::string, std::string>& section,
          const std::string& key) {
  const auto found = section.find(key);
  if (value.empty() && found != section.end()) value = found->second;
}

// A value with a line break would be a header of its own.
void refuse_breaks(std::string& value) {
  if (value.find_first_of("\r\n") != std::string::npos) value.clear();
}

}  // namespace

Sections parse_sections(std::string_view text) {
  Sections sections;
  std::map<std::string, std::string>* section = nullptr;
  for (std::string_view line : split(text, '\n')) {
    const bool nested = line.starts_with(' ') || line.starts_with('\t');
    line = trimmed(line);
    if (line.empty() || line.starts_with('#') || line.starts_with(';')) continue;
    if (line.starts_with('[')) {
      std::string_view name = trimmed(line.substr(1, line.find(']') - 1));
      if (name.starts_with("profile ")) name = trimmed(name.substr(8));
      section = &sections[std::string(name)];
      continue;
    }
    const std::size_t equals = line.find('=');
    if (!section || nested || equals == std::string_view::npos) continue;
    (*section)[std::string(trimmed(line.substr(0, equals)))] = trimmed(line.substr(equals + 1));
  }
  return sections;
}

AwsSettings aws_settings() {
  AwsSettings aws;
  aws.id = variable("AWS_ACCESS_KEY_ID");
  aws.secret = variable("AWS_SECRET_ACCESS_KEY");
  aws.token = variable("AWS_SESSION_TOKEN");
  std::string region = first_of({"AWS_REGION", "AWS_DEFAULT_REGION"});
  aws.endpoint = first_of({"AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"});
  std::string profile = variable("AWS_PROFILE");
  if (profile.empty()) profile = "default";
  std::string keys_file = variable("AWS_SHARED_CREDENTIALS_FILE");
  std::string config_file = variable("AWS_CONFIG_FILE");
  if (keys_file.empty()) keys_file = at_home(".aws/credentials");
  if (config_file.empty()) config_file = at_home(".aws/config");
  const bool from_variables = !aws.id.empty() && !aws.secret.empty();
  for (const std::string& file : {keys_file, config_file}) {
    const Sections sections = parse_sections(file_text(file));
    const auto section = sections.find(profile);
    if (section == sections.end()) continue;
    // All three of one place: a token belongs to its key.
    if (!from_variables && (aws.id.empty() || file == keys_file)) {
      fill(aws.id, section->second, "aws_access_key_id");
      fill(aws.secret, section->second, "aws_secret_access_key");
      fill(aws.token, section->second, "aws_session_token");
    }
    fill(region, section->second, "region");
    fill(aws.endpoint, section->second, "endpoint_url");
  }
  if (!region.empty()) aws.region = region;
  for (std::string* value : {&aws.id, &aws.secret, &aws.token, &aws.region}) refuse_breaks(*value);
  if (aws.id.empty() || aws.secret.empty()) aws.id.clear();
  return aws;
}

GoogleSettings google_settings() {
  GoogleSettings google;
  google.token = first_of({"GOOGLE_OAUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_ACCESS_TOKEN"});
  google.id = variable("GS_ACCESS_KEY_ID");
  google.secret = variable("GS_SECRET_ACCESS_KEY");
  if (const std::string other = variable("STORAGE_EMULATOR_HOST"); !other.empty())
    google.endpoint = other.find("://") == std::string::npos ? "http://" + other : other;
  for (std::string* value : {&google.token, &google.id, &google.secret}) refuse_breaks(*value);
  return google;
}

HubSettings hub_settings() {
  HubSettings hub;
  if (const std::string other = variable("HF_ENDPOINT"); !other.empty()) hub.endpoint = other;
  while (hub.endpoint.ends_with('/')) hub.endpoint.pop_back();
  hub.token = first_of({"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"});
  if (hub.token.empty()) {
    std::string file = variable("HF_TOKEN_PATH");
    if (file.empty() && !variable("HF_HOME").empty()) file = variable("HF_HOME") + "/token";
    if (file.empty() && !variable("XDG_CACHE_HOME").empty())
      file = variable("XDG_CACHE_HOME") + "/huggingface/token";
    if (file.empty()) file = at_home(".cache/huggingface/token");
    hub.token = trimmed(file_text(file));
  }
  refuse_breaks(hub.token);
  return hub;
}

}  // namespace tensordiff::remote
