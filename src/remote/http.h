// Requests that come through: redirects are followed and checked, what may pass is tried again, and
// a range that was cut off goes on where it ended.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "remote/transport.h"
#include "remote/url.h"

namespace tensordiff::remote {

// Header lines that prove who asks, for a request to this address. They are sent to the server of
// the address that the user named, and to no other.
using Sign = std::function<std::vector<std::string>(const Url& url)>;

struct Request {
  std::string url;
  Sign sign;         // May be empty.
  std::string hint;  // What helps where access is refused; may be empty.
  // Takes the place of `url` while it works: where an earlier request was led to.
  std::string moved = {};
};

// The whole answer to a request, of any status.
Result<Answer> get(const Request& request, uint64_t body_max);

// What is wrong where the status is not that of success.
Error status_error(const Answer& answer, const Request& request);

struct Piece {
  std::string body;
  uint64_t total = 0;     // Of the whole file.
  bool whole = false;     // The server knows no ranges, and gave all of it.
  bool missing = false;   // There is no such file.
  std::string validator;  // Changes when the file changes: its ETag, or its time.
  std::string hash;       // Of the content, where the ETag is one; may be empty.
  std::string moved;      // Where the request was led to; may be empty.
};

// A range of a file. Fewer bytes than asked for only where the file ends. `whole_max`: the largest
// file that is taken whole from a server that knows no ranges.
Result<Piece> get_range(const Request& request, ByteRange range, uint64_t whole_max = 0);

// A hash that an ETag is, by its form: 32, 40 or 64 hexadecimal digits, and perhaps "-N" as S3
// writes it for files in parts. Others, such as a time and a size, say nothing of the content.
std::string hash_in(std::string_view etag);

}  // namespace tensordiff::remote
