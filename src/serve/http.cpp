#include "serve/http.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <new>
#include <set>
#include <system_error>
#include <thread>

#include "serve/connection.h"
#include "serve/socket.h"
#include "serve/watch.h"

namespace tensordiff::serve {

using std::chrono::milliseconds;

struct HttpServer::State {
  Socket listener;
  HttpHandler handler;
  HttpLimits limits;
  CloseWatch watch;
  std::thread thread;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<const Socket*> open;
  std::set<const Socket*> ending;  // All is said; the other side may still have to take it.
  bool stopping = false;

  explicit State(Socket socket) : listener(std::move(socket)) {}

  void run() {
    for (;;) {
      try {
        if (!accept_one()) return;
      } catch (const std::bad_alloc&) {
        // That connection is closed; there may be memory for the next.
      }
    }
  }

  // Whether there may be another.
  bool accept_one() {
    auto socket = std::make_unique<Socket>(listener.accept());
    std::unique_lock lock(mutex);
    if (stopping) return false;
    if (socket->file() < 0) {
      // Out of descriptors, most likely; not a reason to spin.
      changed.wait_for(lock, milliseconds(50));
      return true;
    }
    if (!has_room(lock)) {
      lock.unlock();
      turn_away(*socket);
      return true;
    }
    const Socket* accepted = socket.get();
    const auto place = open.insert(accepted).first;
    try {
      std::thread([this, socket = std::move(socket)] { serve(*socket); }).detach();
    } catch (const std::exception&) {
      open.erase(place);  // No thread or no memory to be had: the socket is closed already.
    }
    return true;
  }

  // A client that has closed its connection counts until the thread of it has noticed, which takes
  // a moment on a busy machine: whoever comes next waits for that instead of being turned away.
  bool has_room(std::unique_lock<std::mutex>& lock) {
    const Clock::time_point deadline = Clock::now() + limits.header_time;
    while (open.size() >= limits.connections_max) {
      if (stopping || std::ranges::none_of(open, &Socket::closed_by_peer)) return false;
      if (changed.wait_until(lock, deadline) == std::cv_status::timeout) return false;
    }
    return true;
  }

  void serve(const Socket& socket) {
    converse(socket, handler, limits, watch);
    bool patient = false;
    {
      const std::lock_guard lock(mutex);
      patient = ending.size() < limits.connections_max;
      ending.insert(open.extract(&socket));
      changed.notify_all();
    }
    if (patient) socket.finish();
    const std::lock_guard lock(mutex);
    ending.erase(&socket);
    changed.notify_all();
  }
};

HttpServer::HttpServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
HttpServer::HttpServer(HttpServer&&) noexcept = default;
HttpServer::~HttpServer() { stop(); }

Result<HttpServer> HttpServer::listen(const std::string& address, uint16_t port, uint16_t ports) {
  return HttpServer(std::make_unique<State>(TRY(Socket::listen(address, port, ports))));
}

uint16_t HttpServer::port() const { return state_->listener.port(); }

void HttpServer::start(HttpHandler handler, const HttpLimits& limits) {
  state_->handler = std::move(handler);
  state_->limits = limits;
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

void HttpServer::stop() {
  if (!state_ || !state_->thread.joinable()) return;
  {
    const std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    for (const auto* sockets : {&state_->open, &state_->ending})
      for (const Socket* socket : *sockets) socket->shut();
    state_->changed.notify_all();
  }
  state_->listener.shut();
  state_->thread.join();
  std::unique_lock lock(state_->mutex);
  state_->changed.wait(lock, [this] { return state_->open.empty() && state_->ending.empty(); });
}

}  // namespace tensordiff::serve
