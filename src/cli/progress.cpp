#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "cli/terminal.h"

namespace tensordiff {
namespace {

constexpr std::chrono::milliseconds kInterval{
    100};  // Also before the first: quick work stays still.

std::string duration_text(double seconds) {
  const auto whole = static_cast<uint64_t>(std::min(std::ceil(seconds), 359999.0));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{}:{:02} min", whole / 60, whole % 60);
  return fmt::format("{}:{:02} h", whole / 3600, whole / 60 % 60);
}

}  // namespace

std::string progress_text(uint64_t done, uint64_t total, double elapsed_s) {
  done = std::min(done, total);
  const double share = total ? static_cast<double>(done) / static_cast<double>(total) : 1;
  std::string text = fmt::format("{} of {}  {:.0f} %", human_bytes(done), human_bytes(total),
                                 std::floor(100 * share));
  if (done == 0 || elapsed_s <= 0) return text;
  const double speed = static_cast<double>(done) / elapsed_s;
  return text + fmt::format("  {:.2f} GB/s  {} left", speed / 1e9,
                            duration_text(static_cast<double>(total - done) / speed));
}

ProgressLine::ProgressLine(bool wanted) : active_(wanted && isatty(STDERR_FILENO)) {}

ProgressLine::~ProgressLine() {
  if (visible_) say("\r\x1b[K");
}

void ProgressLine::update(uint64_t done, uint64_t total, std::string_view about) {
  if (!active_) return;
  // Whoever finds the line busy has nothing to say that the next one will not.
  const std::unique_lock lock(mutex_, std::try_to_lock);
  const Clock::time_point now = Clock::now();
  if (!lock || now - shown_ < kInterval) return;
  shown_ = now;
  visible_ = true;
  const double elapsed_s = std::chrono::duration<double>(now - start_).count();
  say(fmt::format("\r\x1b[K{}{}{}", printable(about, 40), about.empty() ? "" : ": ",
                  progress_text(done, total, elapsed_s)));
}

}  // namespace tensordiff
