// An HTTP/1.1 server that knows no routes: it reads requests within hard limits, hands them on, and
// writes the answers. A thread for each connection; connection.cpp says what happens on one.
//
// The work of a request runs inside a Cancellation, which is called off when the client closes its
// connection.

#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "serve/message.h"

namespace tensordiff::serve {

struct HttpLimits {
  std::size_t connections_max = 256;
  uint32_t header_bytes_max = 16 << 10;
  std::chrono::milliseconds header_time{10'000};  // For the whole head, from its first byte on.
  std::chrono::milliseconds idle_time{60'000};    // Between two requests.
  std::chrono::milliseconds pause_max{20'000};    // Between two pieces of a body.
  std::chrono::milliseconds body_time{60'000};    // For the whole body, and
  uint64_t body_bytes_per_second = 64 << 10;      // so much more for what is long.
};

struct HttpHandler {
  // Sees the head of a request and says what becomes of its body.
  std::function<BodyPlan(Request& request)> begin;
  std::function<Response(Request& request)> respond;
};

class HttpServer {
 public:
  // Binds to a numeric address, to the first free one of `ports` ports from `port` on; 0: any.
  static Result<HttpServer> listen(const std::string& address, uint16_t port, uint16_t ports);
  HttpServer(HttpServer&&) noexcept;
  HttpServer& operator=(HttpServer&&) = delete;
  ~HttpServer();

  uint16_t port() const;

  // Serves from threads of its own until stop().
  void start(HttpHandler handler, const HttpLimits& limits = {});
  // Ends all connections, and returns when all of them have ended.
  void stop();

 private:
  struct State;
  explicit HttpServer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace tensordiff::serve
