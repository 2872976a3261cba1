// The progress line on stderr: bytes done of bytes in all, speed, time left.

#pragma once

#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace tensordiff {

// "1.2 GiB of 4.0 GiB  30 %  3.1 GB/s  1 s left"
std::string progress_text(uint64_t done, uint64_t total, double elapsed_s);

// Shows itself only where stderr is a terminal, after a moment, and wipes itself away at the end.
class ProgressLine {
 public:
  explicit ProgressLine(bool wanted);
  ProgressLine(const ProgressLine&) = delete;
  ~ProgressLine();

  bool active() const { return active_; }
  // From any thread. `about` is what of many is being worked on.
  void update(uint64_t done, uint64_t total, std::string_view about = {});

 private:
  using Clock = std::chrono::steady_clock;
  bool active_;
  std::mutex mutex_;
  Clock::time_point start_ = Clock::now();
  Clock::time_point shown_ = start_;
  bool visible_ = false;
};

}  // namespace tensordiff
