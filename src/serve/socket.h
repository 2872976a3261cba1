// A connected socket, read and written with a deadline.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace tensordiff::serve {

using Clock = std::chrono::steady_clock;

class Socket {
 public:
  explicit Socket(int file = -1) : file_(file) {}
  Socket(Socket&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  Socket& operator=(Socket&&) = delete;
  ~Socket();

  int file() const { return file_; }

  // What read() found.
  enum class Got { bytes, end, late };
  struct Piece {
    Got got = Got::end;
    std::size_t count = 0;
  };
  Piece read(char* out, std::size_t size, Clock::time_point deadline) const;

  // All of it, or false: gone, or no byte was taken for `pause`.
  bool write(std::string_view bytes, std::chrono::milliseconds pause) const;

  // Whether the other side has ended it, as far as the system knows by now.
  bool closed_by_peer() const;

  // Says that nothing more comes, and lets the other side take what was sent: closing while it
  // still sends would make it lose our answer.
  void finish() const;
  // Ends what another thread is doing with it.
  void shut() const;

  // Listens on a numeric address, and on the first free one of `ports` ports from `port` on.
  static Result<Socket> listen(const std::string& address, uint16_t port, uint16_t ports);
  uint16_t port() const;
  // A connection, or none for a moment; `shut()` on the listener ends the waiting.
  Socket accept() const;

 private:
  int file_;
};

}  // namespace tensordiff::serve
