#include "remote/http.h"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <random>
#include <set>
#include <thread>

#include "base/text.h"
#include "remote/policy.h"

namespace tensordiff::remote {
namespace {

constexpr int kRedirectsMax = 8;
constexpr std::chrono::milliseconds kFirstWait{250}, kLongestWait{8000};
constexpr uint64_t kProgress =
    8;  // A try that brings this part of what is missing was not in vain.
constexpr uint64_t kRetryAfterMax = 60;  // Seconds that a server may make us wait, each time.

// Servers that have an address of somebody's own network. An open connection no longer tells.
class OwnOrigins {
 public:
  void add(const std::string& origin) {
    const std::scoped_lock lock(mutex_);
    origins_.insert(origin);
  }
  bool contains(const std::string& origin) {
    const std::scoped_lock lock(mutex_);
    return origins_.contains(origin);
  }

 private:
  std::mutex mutex_;
  std::set<std::string> origins_;
};

OwnOrigins& own_origins() {
  static OwnOrigins* const all = new OwnOrigins;
  return *all;
}

Result<Url> checked(std::string_view text) {
  Url url = TRY(parse_url(text));
  if (url.scheme == "http" && !policy().http && !url.loopback())
    return Error(
        "plain http:// is refused: it can be read and changed on the way "
        "(--remote-http allows it)");
  return url;
}

bool is_redirect(long status) {
  return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

// One try, with its redirects. `final_url` is where it ended.
Result<Answer> follow(const Request& request, std::optional<ByteRange> range, uint64_t body_max,
                      std::string& final_url) {
  const Url first = TRY(checked(request.url));
  Url url = request.moved.empty() ? first : TRY(checked(request.moved));
  for (int hop = 0; hop <= kRedirectsMax; ++hop) {
    const bool home = url.origin() == first.origin();
    Call call{url.text(), {}, range, body_max, !policy().private_addresses};
    // A public server may not lead us into a network that it cannot reach itself.
    if (!home && !own_origins().contains(first.origin())) call.only_public = true;
    if (home && request.sign) call.headers = request.sign(url);
    Answer answer = TRY(exchange(call));
    if (answer.own_network) own_origins().add(url.origin());
    if (!is_redirect(answer.status) || answer.redirect.empty()) {
      final_url = url.text();
      return answer;
    }
    const Url next = TRY(checked(answer.redirect).in("redirected"));
    if (url.scheme == "https" && next.scheme != "https")
      return Error("redirected from https to plain http, which is refused");
    url = next;
  }
  return Error("more than {} redirects", kRedirectsMax);
}

bool may_pass(long status) {
  return status == 408 || status == 429 || status == 500 || status == 502 || status == 503 ||
         status == 504;
}

// Twice as long each time, and not the same for all who were refused together.
void wait_before(std::size_t attempt, const Answer& answer) {
  thread_local std::minstd_rand random{std::random_device{}()};
  auto wait = kFirstWait * (1U << std::min<std::size_t>(attempt, 5));
  wait = std::min<std::chrono::milliseconds>(wait, kLongestWait);
  wait += std::chrono::milliseconds(random() % static_cast<uint64_t>(wait.count() / 2));
  const std::string_view asked = answer.header("retry-after");
  if (all_digits(asked) && asked.size() < 6) {
    const uint64_t seconds = std::min<uint64_t>(std::stoul(std::string(asked)), kRetryAfterMax);
    wait = std::max<std::chrono::milliseconds>(wait, std::chrono::seconds(seconds));
  }
  std::this_thread::sleep_for(wait);
}

std::string tried(std::size_t attempts) {
  return attempts > 1 ? fmt::format(" (tried {} times)", attempts) : "";
}

struct Span {
  uint64_t first = 0, last = 0, total = 0;
};

// "bytes 0-99/1000"
std::optional<Span> content_range(std::string_view text) {
  if (!text.starts_with("bytes ")) return std::nullopt;
  text.remove_prefix(6);
  const std::size_t dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || slash < dash)
    return std::nullopt;
  const std::string_view parts[] = {text.substr(0, dash), text.substr(dash + 1, slash - dash - 1),
                                    text.substr(slash + 1)};
  uint64_t numbers[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (!all_digits(parts[i]) || parts[i].size() > 18) return std::nullopt;
    numbers[i] = std::stoull(std::string(parts[i]));
  }
  if (numbers[0] > numbers[1] || numbers[1] >= numbers[2]) return std::nullopt;
  return Span{numbers[0], numbers[1], numbers[2]};
}

std::string validator_of(const Answer& answer) {
  const std::string_view etag = answer.header("etag");
  return std::string(etag.empty() ? answer.header("last-modified") : etag);
}

// Collects a range over several tries.
class RangeFetch {
 public:
  RangeFetch(const Request& request, ByteRange range, uint64_t whole_max)
      : request_(request), range_(range), whole_max_(whole_max) {}

  Result<Piece> run() {
    std::string fault;
    const std::size_t tries = policy().retries + 1;
    for (std::size_t attempt = 0; attempt < tries; ++attempt) {
      const uint64_t got = piece_.body.size();
      const ByteRange rest{range_.first + got, range_.count - got};
      std::string final_url;
      const uint64_t room = std::max(rest.count, got == 0 ? whole_max_ : 0);
      Answer answer = TRY(follow(request_, rest, room, final_url));
      // An address that we were led to earlier lasts only for a while.
      if (!request_.moved.empty() && answer.status >= 400 && answer.status < 500) {
        request_.moved.clear();
        answer = TRY(follow(request_, rest, room, final_url));
      }
      piece_.moved = final_url == request_.url ? "" : final_url;
      if (may_pass(answer.status)) {
        fault = status_error(answer, request_).message();
      } else if (answer.status != 0) {
        if (TRY(take(answer))) return std::move(piece_);
        // A server that cuts off often still comes to the end: what counts is tries in vain.
        if (piece_.body.size() - got > rest.count / kProgress) attempt = 0;
        fault = answer.fault.empty() ? "the connection was cut" : answer.fault;
      } else {
        fault = answer.fault;
        if (!answer.retry) return Error("{}", fault);
      }
      if (attempt + 1 < tries) wait_before(attempt, answer);
    }
    return Error("{}{}", fault, tried(tries));
  }

 private:
  // Whether all of it is there now.
  Result<bool> take(Answer& answer) {
    if (answer.status == 404 && piece_.body.empty()) {
      piece_.missing = true;
      return true;
    }
    if (answer.status == 416 && answer.header("content-range") == "bytes */0") return true;
    if (answer.status == 200) return take_whole(answer);
    if (answer.status != 206) return status_error(answer, request_);
    const std::optional<Span> span = content_range(answer.header("content-range"));
    if (!span) return Error("the server does not say which bytes it sends");
    const uint64_t first = range_.first + piece_.body.size();
    const uint64_t last = std::min(range_.first + range_.count, span->total) - 1;
    if (span->first != first || span->last != last)
      return Error("the server sends bytes {}-{} where {}-{} were asked for", span->first,
                   span->last, first, last);
    const std::string validator = validator_of(answer);
    if (!piece_.body.empty() && (validator != piece_.validator || span->total != piece_.total))
      return Error("the file changed on the server while it was read");
    if (answer.cut || answer.body.size() > last - first + 1)
      return Error("the server sends more than it says");
    piece_.total = span->total;
    piece_.validator = validator;
    piece_.hash = hash_in(answer.header("etag"));
    piece_.body += answer.body;
    const bool done = range_.first + piece_.body.size() == last + 1;
    if (!done && !answer.fault.empty() && !answer.retry) return Error("{}", answer.fault);
    return done;
  }

  Result<bool> take_whole(Answer& answer) {
    if (answer.cut || range_.first != 0 || !piece_.body.empty())
      return Error("the server does not support range requests: download the file first");
    if (!answer.fault.empty() && !answer.retry) return Error("{}", answer.fault);
    if (!answer.fault.empty()) return false;
    piece_.body = std::move(answer.body);
    piece_.total = piece_.body.size();
    piece_.whole = true;
    piece_.validator = validator_of(answer);
    piece_.hash = hash_in(answer.header("etag"));
    return true;
  }

  Request request_;
  ByteRange range_;
  uint64_t whole_max_;
  Piece piece_;
};

}  // namespace

Error status_error(const Answer& answer, const Request& request) {
  const std::string hint = request.hint.empty() ? "" : "; " + request.hint;
  switch (answer.status) {
    case 401:
    case 403:
      return Error("the server refuses access ({}){}", answer.status, hint);
    case 404:
      return Error("no such file on the server (404){}", hint);
    case 429:
      return Error("the server asks for fewer requests (429)");
    default:
      return Error("the server answers with status {}", answer.status);
  }
}

std::string hash_in(std::string_view etag) {
  if (etag.size() < 2 || !etag.starts_with('"') || !etag.ends_with('"')) return "";
  etag = etag.substr(1, etag.size() - 2);
  const std::string_view digits = etag.substr(0, etag.find('-'));
  const std::string_view parts = etag.substr(digits.size());
  const bool hexadecimal = std::ranges::all_of(digits, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
  const bool sized = digits.size() == 32 || digits.size() == 40 || digits.size() == 64;
  const bool in_parts = parts.empty() || (parts.size() > 1 && all_digits(parts.substr(1)));
  return hexadecimal && sized && in_parts ? lower(etag) : "";
}

Result<Answer> get(const Request& request, uint64_t body_max) {
  std::string fault;
  const std::size_t tries = policy().retries + 1;
  for (std::size_t attempt = 0; attempt < tries; ++attempt) {
    std::string final_url;
    Answer answer = TRY(follow(request, std::nullopt, body_max, final_url));
    if (answer.cut) return Error("the server's answer is longer than {}", human_bytes(body_max));
    if (answer.fault.empty() && !may_pass(answer.status)) return answer;
    fault = answer.fault.empty() ? status_error(answer, request).message() : answer.fault;
    if (!answer.fault.empty() && !answer.retry) return Error("{}", fault);
    if (attempt + 1 < tries) wait_before(attempt, answer);
  }
  return Error("{}{}", fault, tried(tries));
}

Result<Piece> get_range(const Request& request, ByteRange range, uint64_t whole_max) {
  return RangeFetch(request, range, whole_max).run();
}

}  // namespace tensordiff::remote
