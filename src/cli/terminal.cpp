#include "cli/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.h"
#include "cli/command.h"
#include "cli/values.h"

namespace tensordiff {
namespace {

constexpr std::size_t kWidthMin = 60;
// Wide enough for the longest names that printable() lets through: nothing is cut in a pipe.
constexpr std::size_t kWidthOfPipes = 1000;

}  // namespace

void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(stream, F_GETFD) != -1 || errno != EBADF) continue;
    // Writing to a closed stdout must fail. The lowest number that is free is this one.
    const int flags = stream == STDERR_FILENO ? O_WRONLY : O_RDONLY;
    if (open("/dev/null", flags) != stream) _exit(kTrouble);
  }
}

void say(std::string_view text) {
  // fmt::print would throw.
  static_cast<void>(std::fwrite(text.data(), 1, text.size(), stderr));
}

std::size_t output_width() {
  std::size_t width = kWidthOfPipes;
  winsize size{};
  if (const char* text = std::getenv("COLUMNS")) {
    const Result<uint64_t> columns = parse_count(text);
    if (columns.ok() && columns.value() > 0) width = columns.value();
  } else if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
             size.ws_col > 0) {
    width = size.ws_col;
  }
  return std::max(width, kWidthMin);
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
  const std::string name = to_file ? printable(settings.out, 1000) : "stdout";
  if (!file) return Error("{}: cannot write it: {}", name, std::strerror(errno));
  bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  written &= (to_file ? std::fclose(file) : std::fflush(file)) == 0;
  if (!written)
    return Error("{}: writing failed, the output is incomplete: {}", name, std::strerror(errno));
  return {};
}

}  // namespace tensordiff
