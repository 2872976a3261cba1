// One exchange with a server, through libcurl, which is loaded when the first one is made: a run
// without remote inputs pays nothing for it. The only source that knows libcurl is the .cpp.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace tensordiff::remote {

struct ByteRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

struct Call {
  std::string url;
  std::vector<std::string> headers;  // "Name: value".
  std::optional<ByteRange> range;
  uint64_t body_max = 0;     // A longer body is cut off, and the answer says so.
  bool only_public = false;  // Whether addresses of somebody's own network are refused.
};

struct Answer {
  long status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case.
  std::string body;
  std::string redirect;  // Where it leads, made absolute; may be empty.
  // Why there is no whole answer. What came until then is in `body`.
  std::string fault;
  bool retry = false;        // Whether another try may help.
  bool cut = false;          // The body was longer than asked for.
  bool own_network = false;  // The server has an address of somebody's own network.

  std::string_view header(std::string_view name) const;
};

// An Error where libcurl cannot be loaded. Many threads may call it; connections are kept.
Result<Answer> exchange(const Call& call);

// What has come from servers so far, in bytes of bodies, and how many requests were made.
struct Traffic {
  uint64_t bytes = 0;
  uint64_t requests = 0;
};
Traffic traffic();

}  // namespace tensordiff::remote
