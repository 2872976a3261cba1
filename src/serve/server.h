// The debugger as a whole: listens, answers, and stops.

#pragma once

#include <memory>
#include <string>

#include "serve/app.h"
#include "serve/http.h"

namespace tensordiff::serve {

class Server {
 public:
  static Result<Server> start(const ServeOptions& options);
  Server(Server&&) noexcept = default;
  Server& operator=(Server&&) = delete;
  ~Server();

  // With the token, and with the session of the command line where there is one.
  const std::string& url() const { return url_; }
  uint16_t port() const { return http_->port(); }
  const App& app() const { return *app_; }
  void stop();

 private:
  Server(std::unique_ptr<App> app, std::unique_ptr<HttpServer> http, std::string url)
      : app_(std::move(app)), http_(std::move(http)), url_(std::move(url)) {}

  // The connections end before what they use.
  std::unique_ptr<App> app_;
  std::unique_ptr<HttpServer> http_;
  std::string url_;
};

}  // namespace tensordiff::serve
