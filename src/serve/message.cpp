#include "serve/message.h"

#include <algorithm>

#include "base/json.h"

namespace tensordiff::serve {

std::string_view Request::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &Header::name);
  return found == headers.end() ? std::string_view() : std::string_view(found->value);
}

std::size_t Request::count(std::string_view name) const {
  return static_cast<std::size_t>(std::ranges::count(headers, name, &Header::name));
}

std::string_view reason_of(int status) {
  struct Reason {
    int status;
    std::string_view text;
  };
  constexpr Reason kReasons[] = {
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {304, "Not Modified"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {413, "Content Too Large"},
      {415, "Unsupported Media Type"},
      {421, "Misdirected Request"},
      {422, "Unprocessable Content"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {503, "Service Unavailable"},
      {507, "Insufficient Storage"},
  };
  const auto found = std::ranges::find(kReasons, status, &Reason::status);
  return found == std::end(kReasons) ? "Unknown" : found->text;
}

Response problem(int status, std::string_view detail, std::string_view hint,
                 std::string_view members) {
  JsonWriter json;
  json.begin_object().member("type", "about:blank").member("title", reason_of(status));
  json.member("status", status).member("detail", detail);
  if (!hint.empty()) json.member("hint", hint);
  json.end_object();
  Response response;
  response.status = status;
  response.type = "application/problem+json";
  response.body = json.take();
  response.body.insert(response.body.size() - 1, members);
  if (status == 503) response.headers.push_back({"Retry-After", "1"});
  return response;
}

}  // namespace tensordiff::serve
