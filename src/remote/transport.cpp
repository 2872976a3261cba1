#include "remote/transport.h"

#include <curl/curl.h>
#include <dlfcn.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <mutex>

#include "base/build_info.h"
#include "base/text.h"
#include "remote/address.h"
#include "remote/policy.h"

namespace tensordiff::remote {
namespace {

constexpr std::size_t kHeaderBytesMax = 1 << 16;
constexpr long kSlowBytesPerSecond = 1;  // Below this for the time-out, a transfer has stopped.

std::atomic<uint64_t> bytes_come = 0, requests_made = 0;

struct Curl {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_reset) easy_reset;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_strerror) easy_strerror;
  decltype(&curl_slist_append) slist_append;
  decltype(&curl_slist_free_all) slist_free_all;
};

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// Debian's two builds of one library, with one interface.
Result<Curl> load() {
  void* library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!library) library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
  if (!library) return Error("remote inputs need libcurl, which is not installed (libcurl4)");
  Curl curl = {};
  const bool whole = find(library, "curl_global_init", curl.global_init) &&
                     find(library, "curl_easy_init", curl.easy_init) &&
                     find(library, "curl_easy_reset", curl.easy_reset) &&
                     find(library, "curl_easy_setopt", curl.easy_setopt) &&
                     find(library, "curl_easy_perform", curl.easy_perform) &&
                     find(library, "curl_easy_getinfo", curl.easy_getinfo) &&
                     find(library, "curl_easy_strerror", curl.easy_strerror) &&
                     find(library, "curl_slist_append", curl.slist_append) &&
                     find(library, "curl_slist_free_all", curl.slist_free_all);
  if (!whole) return Error("the libcurl that is installed lacks functions that are needed");
  if (curl.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return Error("libcurl does not start");
  return curl;
}

const Result<Curl>& loaded() {
  static const Result<Curl>* const curl = new Result<Curl>(load());
  return *curl;
}

// Handles with their open connections, for whoever makes the next request.
class Handles {
 public:
  CURL* take(const Curl& curl) {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return curl.easy_init();
    CURL* handle = free_.back();
    free_.pop_back();
    return handle;
  }
  void give(CURL* handle) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(handle);
  }

 private:
  std::mutex mutex_;
  std::vector<CURL*> free_;
};

// Calls that are held to public addresses have their own: each of their connections was looked at.
// They outlive threads that are still at work at the end.
Handles& handles(bool only_public) {
  static Handles* const all = new Handles[2];
  return all[only_public ? 1 : 0];
}

struct Progress {
  const Call& call;
  Answer& answer;
  std::size_t header_bytes = 0;
  bool refused = false;
};

std::size_t on_body(char* data, std::size_t, std::size_t count, void* user) {
  auto& progress = *static_cast<Progress*>(user);
  Answer& answer = progress.answer;
  bytes_come += count;
  const uint64_t room = progress.call.body_max - answer.body.size();
  answer.cut = count > room;
  answer.body.append(data, answer.cut ? room : count);
  return answer.cut ? 0 : count;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && static_cast<unsigned char>(text.front()) <= ' ') text.remove_prefix(1);
  while (!text.empty() && static_cast<unsigned char>(text.back()) <= ' ') text.remove_suffix(1);
  return text;
}

std::size_t on_header(char* data, std::size_t, std::size_t count, void* user) {
  auto& progress = *static_cast<Progress*>(user);
  progress.header_bytes += count;
  if (progress.header_bytes > kHeaderBytesMax) return 0;
  const std::string_view line(data, count);
  if (line.starts_with("HTTP/")) progress.answer.headers.clear();  // After "100 Continue".
  const std::size_t colon = line.find(':');
  if (colon != std::string_view::npos)
    progress.answer.headers.emplace_back(lower(line.substr(0, colon)),
                                         trimmed(line.substr(colon + 1)));
  return count;
}

// The address is looked at here, after the name was resolved: a name that resolves to something
// else the second time gains nothing.
curl_socket_t on_socket(void* user, curlsocktype, curl_sockaddr* address) {
  auto& progress = *static_cast<Progress*>(user);
  const bool open = is_public(&address->addr);
  progress.answer.own_network = progress.answer.own_network || !open;
  if (progress.call.only_public && !open) {
    progress.refused = true;
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

void set_options(const Curl& curl, CURL* handle, Progress& progress, curl_slist* headers) {
  const Call& call = progress.call;
  const auto set = [&](CURLoption option, auto value) { curl.easy_setopt(handle, option, value); };
  const long timeout = static_cast<long>(policy().timeout_seconds);
  set(CURLOPT_URL, call.url.c_str());
  set(CURLOPT_HTTPHEADER, headers);
  set(CURLOPT_PROTOCOLS_STR, "http,https");
  set(CURLOPT_FOLLOWLOCATION, 0L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_PATH_AS_IS, 1L);
  set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_2TLS));
  set(CURLOPT_CONNECTTIMEOUT, timeout);
  set(CURLOPT_LOW_SPEED_LIMIT, kSlowBytesPerSecond);
  set(CURLOPT_LOW_SPEED_TIME, timeout);
  set(CURLOPT_WRITEFUNCTION, on_body);
  set(CURLOPT_WRITEDATA, static_cast<void*>(&progress));
  set(CURLOPT_HEADERFUNCTION, on_header);
  set(CURLOPT_HEADERDATA, static_cast<void*>(&progress));
  set(CURLOPT_OPENSOCKETFUNCTION, on_socket);
  set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(&progress));
  if (call.only_public) set(CURLOPT_PROXY, "");  // Its address would be the one looked at.
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"})
    if (const char* file = std::getenv(name); file && *file) {
      set(CURLOPT_CAINFO, file);
      break;
    }
  if (call.range) {
    const ByteRange& range = *call.range;
    const std::string text = fmt::format("{}-{}", range.first, range.first + range.count - 1);
    set(CURLOPT_RANGE, text.c_str());
  }
}

bool may_pass(CURLcode code) {
  switch (code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_PARTIAL_FILE:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
    case CURLE_WEIRD_SERVER_REPLY:
      return true;
    default:
      return false;
  }
}

}  // namespace

std::string_view Answer::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return "";
}

Traffic traffic() { return {bytes_come, requests_made}; }

Result<Answer> exchange(const Call& call) {
  if (!loaded().ok()) return loaded().error();
  const Curl& curl = loaded().value();
  CURL* handle = handles(call.only_public).take(curl);
  if (!handle) return Error("libcurl is out of memory");
  Answer answer;
  Progress progress{call, answer};
  curl_slist* headers =
      curl.slist_append(nullptr, fmt::format("User-Agent: tensordiff/{}", kVersion).c_str());
  for (const std::string& line : call.headers) headers = curl.slist_append(headers, line.c_str());
  set_options(curl, handle, progress, headers);
  if (call.range) answer.body.reserve(std::min(call.range->count, call.body_max));
  ++requests_made;
  const CURLcode code = curl.easy_perform(handle);
  curl.easy_getinfo(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  char* redirect = nullptr;
  curl.easy_getinfo(handle, CURLINFO_REDIRECT_URL, &redirect);
  if (redirect) answer.redirect = redirect;
  if (progress.refused) {
    answer.fault = "its address is in a private or local network, which is not allowed here";
  } else if (progress.header_bytes > kHeaderBytesMax) {
    answer.fault = "the server sends too many headers";
  } else if (code != CURLE_OK && !answer.cut) {
    answer.fault = curl.easy_strerror(code);
    answer.retry = may_pass(code);
  }
  curl.easy_reset(handle);
  curl.slist_free_all(headers);
  handles(call.only_public).give(handle);
  return answer;
}

}  // namespace tensordiff::remote
