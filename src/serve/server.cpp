#include "serve/server.h"

#include <algorithm>

namespace tensordiff::serve {
namespace {

// Where to point a browser; an address that means all of this machine is no place to go to.
std::string url_for(const ServeOptions& options, const App& app, uint16_t port) {
  const bool everywhere = options.listen == "0.0.0.0" || options.listen == "::";
  std::string host = everywhere ? "127.0.0.1" : options.listen;
  if (host.find(':') != std::string::npos) host = "[" + host + "]";
  return fmt::format("http://{}:{}/#t={}{}", host, port, app.guard.token,
                     app.opened.empty() ? "" : "&s=" + app.opened);
}

}  // namespace

Result<Server> Server::start(const ServeOptions& options) {
  auto http = std::make_unique<HttpServer>(
      TRY(HttpServer::listen(options.listen, options.port, options.ports)));
  const Guard guard = make_guard(http->port(), options.listen, is_loopback(options.listen));
  std::unique_ptr<App> app = TRY(App::make(options, guard));
  if (options.demo || !options.inputs.empty()) app->opened = TRY(app->open_inputs())->id();
  HttpHandler handler;
  handler.begin = [app = app.get()](Request& request) { return app->begin(request); };
  handler.respond = [app = app.get()](Request& request) { return app->respond(request); };
  http->start(std::move(handler));
  std::string url = url_for(options, *app, http->port());
  return Server(std::move(app), std::move(http), std::move(url));
}

Server::~Server() { stop(); }

void Server::stop() {
  if (!app_) return;
  app_->stop();
  http_->stop();
}

}  // namespace tensordiff::serve
