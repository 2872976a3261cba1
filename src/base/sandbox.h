// A child process that may compute, talk to us through one socket, and nothing else: for libraries
// that are not to be trusted with a file.
//
// The child is this program started anew, so that it has one thread and none of our memory. Before
// it touches anything it gives up its rights (seccomp): no files, no network, no other programs, no
// signals to others, no memory that can be run; and it has limits on memory and time. Where the
// system has no seccomp there is no child. Whatever it says is as untrusted as the file itself.
// When it crashes, hangs or breaks the rules, read() and write() fail and ending() tells how it
// ended.

#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/byte_source.h"

namespace tensordiff {

struct SandboxLimits {
  uint64_t seconds = 8;
  uint64_t memory = 1ULL << 30;
};

// The program to start; cli/main.cpp names itself. In another process it is the one that
// TENSORDIFF_PROGRAM names, or one that lies beside our code or in ../bin.
void set_sandbox_program(std::string path);

class SandboxChild {
 public:
  // Starts the program with `task` as its only argument.
  static Result<SandboxChild> start(std::string_view task, const SandboxLimits& limits);
  SandboxChild(SandboxChild&& other) noexcept;
  SandboxChild& operator=(SandboxChild&&) = delete;
  ~SandboxChild();  // Ends the child, whatever it does.

  // All of it before the time is up, or an error.
  Result<void> write(ByteView bytes);
  Result<void> read(std::span<std::byte> bytes);

  // Whether the last error is that its time was up.
  bool out_of_time() const { return out_of_time_; }

 private:
  SandboxChild(int process, int socket, uint64_t seconds);
  Result<void> wait_for(short events);
  Error ending();
  Error late();

  int process_;
  int socket_;
  uint64_t seconds_;
  std::chrono::steady_clock::time_point deadline_;
  bool out_of_time_ = false;
};

// In the child: from here on it may only compute, and read and write kSandboxSocket.
inline constexpr int kSandboxSocket = 0;
Result<void> enter_sandbox(const SandboxLimits& limits);

}  // namespace tensordiff
