#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "cli/values.h"

namespace tensordiff {
namespace {

constexpr std::size_t kWidthMin = 60;
constexpr std::size_t kWidthMax = 200;
constexpr std::size_t kWidthDefault = 100;

}  // namespace

std::size_t output_width() {
  std::size_t width = kWidthDefault;
  winsize size{};
  if (const char* text = std::getenv("COLUMNS")) {
    const Result<uint64_t> columns = parse_count(text);
    if (columns.ok() && columns.value() > 0) width = columns.value();
  } else if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
             size.ws_col > 0) {
    width = size.ws_col;
  }
  return std::clamp(width, kWidthMin, kWidthMax);
}

bool wants_color(const Settings& settings) {
  if (settings.color != ColorChoice::automatic) return settings.color == ColorChoice::always;
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color && *no_color) return false;
  return settings.out.empty() && isatty(STDOUT_FILENO);
}

Result<void> deliver(std::string_view text, const Settings& settings) {
  const bool to_file = !settings.out.empty();
  if (!to_file && settings.quiet) return {};
  std::FILE* file = to_file ? std::fopen(settings.out.c_str(), "wb") : stdout;
  if (!file) return Error("{}: cannot write it: {}", settings.out, std::strerror(errno));
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written &= (to_file ? std::fclose(file) : std::fflush(file)) == 0;
  if (!written)
    return Error("{}: cannot write it: {}", to_file ? settings.out : "stdout",
                 std::strerror(errno));
  return {};
}

}  // namespace tensordiff
