#include "serve/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.h"

namespace tensordiff::serve {
namespace {

using std::chrono::milliseconds;

// How long the other side has to take the last of what was sent, and how much of what it still
// sends is read meanwhile.
constexpr milliseconds kLinger{1000};
constexpr std::size_t kLingerBytesMax = 8 << 20;

// Whether something happened to the socket before the deadline.
bool wait_for(int file, short events, Clock::time_point deadline) {
  for (;;) {
    const auto left = std::chrono::ceil<milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) return false;
    pollfd watched{file, events, 0};
    const int found = poll(&watched, 1, static_cast<int>(std::min<int64_t>(left, 60'000)));
    if (found > 0) return true;
    if (found < 0 && errno != EINTR) return true;  // Reading will say what is wrong.
  }
}

struct FreeAddress {
  void operator()(addrinfo* address) const { freeaddrinfo(address); }
};

Result<std::unique_ptr<addrinfo, FreeAddress>> numeric_address(const std::string& text) {
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(text.c_str(), nullptr, &hints, &found) != 0)
    return Error("'{}' is not a numeric address", printable(text));
  return std::unique_ptr<addrinfo, FreeAddress>(found);
}

void set_port(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  else
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
}

}  // namespace

Socket::~Socket() {
  if (file_ >= 0) close(file_);
}

Socket::Piece Socket::read(char* out, std::size_t size, Clock::time_point deadline) const {
  for (;;) {
    if (!wait_for(file_, POLLIN, deadline)) return {Got::late, 0};
    const ssize_t count = recv(file_, out, size, MSG_DONTWAIT);
    if (count > 0) return {Got::bytes, static_cast<std::size_t>(count)};
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    return {Got::end, 0};
  }
}

bool Socket::write(std::string_view bytes, milliseconds pause) const {
  while (!bytes.empty()) {
    const ssize_t count = send(file_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(count));
      continue;
    }
    if (errno != EAGAIN && errno != EINTR) return false;
    if (!wait_for(file_, POLLOUT, Clock::now() + pause)) return false;
  }
  return true;
}

bool Socket::closed_by_peer() const {
  pollfd watched{file_, POLLRDHUP, 0};
  return poll(&watched, 1, 0) > 0 && watched.revents != 0;
}

void Socket::finish() const {
  shutdown(file_, SHUT_WR);
  char scrap[16 << 10];
  const Clock::time_point deadline = Clock::now() + kLinger;
  for (std::size_t total = 0; total < kLingerBytesMax;) {
    const Piece piece = read(scrap, sizeof scrap, deadline);
    if (piece.got != Got::bytes) return;
    total += piece.count;
  }
}

void Socket::shut() const { shutdown(file_, SHUT_RDWR); }

Result<Socket> Socket::listen(const std::string& address, uint16_t port, uint16_t ports) {
  const auto found = TRY(numeric_address(address));
  for (uint16_t i = 0; i < ports; ++i) {
    Socket socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (socket.file() < 0) return Error("cannot make a socket: {}", std::strerror(errno));
    const int yes = 1;
    setsockopt(socket.file(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    set_port(found->ai_addr, static_cast<uint16_t>(port + i));
    if (bind(socket.file(), found->ai_addr, found->ai_addrlen) == 0 &&
        ::listen(socket.file(), SOMAXCONN) == 0)
      return socket;
    if (errno != EADDRINUSE || i + 1 == ports)
      return Error("cannot listen on {} port {}: {}", printable(address), port + i,
                   std::strerror(errno));
  }
  return Error("no port to listen on");
}

uint16_t Socket::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (getsockname(file_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

Socket Socket::accept() const {
  Socket socket(accept4(file_, nullptr, nullptr, SOCK_CLOEXEC));
  const int yes = 1;
  if (socket.file() >= 0) setsockopt(socket.file(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  return socket;
}

}  // namespace tensordiff::serve
