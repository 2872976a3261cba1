// A request and an answer as plain values: what the routes know of HTTP.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensordiff::serve {

struct Header {
  std::string name;  // Of a request: in lower case.
  std::string value;
};

class BodyFile;

struct Request {
  std::string method;  // "GET"
  std::string path;    // "/api/v1/health", percent signs resolved.
  std::string query;   // "a=1&b=2", as sent.
  std::vector<Header> headers;
  std::string body;                // Empty where it went elsewhere: see BodyPlan.
  std::shared_ptr<BodyFile> file;  // Where it went, if that is a file.
  std::string file_path;           // Of the same, if it is a file of its own.

  // The first header of that name (in lower case); empty when there is none.
  std::string_view header(std::string_view name) const;
  std::size_t count(std::string_view name) const;
};

// Sends a piece of an answer that has no end of its own. False: nobody listens any more.
using Send = std::function<bool(std::string_view piece)>;

struct Response {
  int status = 200;
  std::string type = "application/json";
  std::vector<Header> headers = {};
  std::string body = {};
  std::string_view fixed = {};                   // Instead of body: bytes that live for ever.
  std::function<void(const Send&)> stream = {};  // Instead of body: sends until it returns.
};

// What becomes of the body of a request, decided when its head was read.
struct BodyPlan {
  std::optional<Response> refusal = {};  // It is not read at all.
  uint64_t bytes_max = 0;
  // Gets the body in pieces instead of Request::body; an answer ends the request.
  std::function<std::optional<Response>(std::string_view piece)> sink = {};
};

std::string_view reason_of(int status);

// An answer as RFC 9457 says. `members` is put into the object as it is: ",\"stale\":[]".
Response problem(int status, std::string_view detail, std::string_view hint = {},
                 std::string_view members = {});
inline Response json_response(std::string body, int status = 200) {
  Response response;
  response.status = status;
  response.body = std::move(body);
  return response;
}
inline Response empty_response(int status = 204) {
  Response response;
  response.status = status;
  return response;
}

}  // namespace tensordiff::serve
