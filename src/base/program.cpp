// The input is a file in memory rather than a pipe: a program that does not read it to the end can
// then neither block us nor raise SIGPIPE.

#include "base/program.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

namespace tensordiff {
namespace {

using Clock = std::chrono::steady_clock;

class Handle {
 public:
  explicit Handle(int number = -1) : number_(number) {}
  Handle(Handle&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Handle() {
    if (number_ >= 0) close(number_);
  }
  int get() const { return number_; }

 private:
  int number_;
};

Error system_error(std::string_view what) { return Error("{}: {}", what, std::strerror(errno)); }

Result<Handle> file_of(std::string_view text) {
  Handle file(memfd_create("input", MFD_CLOEXEC));
  if (file.get() < 0) return system_error("no file for its input");
  while (!text.empty()) {
    const ssize_t written = write(file.get(), text.data(), text.size());
    if (written < 0 && errno != EINTR) return system_error("no room for its input");
    if (written > 0) text.remove_prefix(static_cast<std::size_t>(written));
  }
  if (lseek(file.get(), 0, SEEK_SET) != 0) return system_error("no file for its input");
  return file;
}

// A child in a process group of its own, which ends with us at the latest.
class Child {
 public:
  static Result<Child> start(const std::string& program, const Handle& input,
                             const Handle& output) {
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&actions, input.get(), STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output.get(), STDOUT_FILENO);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    std::string name = program;
    const std::array<char*, 2> arguments = {name.data(), nullptr};
    pid_t id = -1;
    const int error =
        posix_spawnp(&id, name.c_str(), &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    if (error != 0) return Error("cannot be run: {}", std::strerror(error));
    return Child(id);
  }

  Child(Child&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Child& operator=(Child&&) = delete;
  ~Child() {
    if (id_ < 0) return;
    kill(-id_, SIGKILL);
    waitpid(id_, nullptr, 0);
  }

  // Its status as of wait(2), or nothing where it still runs at the end of that time.
  std::optional<int> wait_until(Clock::time_point end) {
    while (true) {
      int status = 0;
      if (waitpid(id_, &status, WNOHANG) == id_) {
        kill(-id_, SIGKILL);  // What it may have left running.
        id_ = -1;
        return status;
      }
      if (Clock::now() >= end) return std::nullopt;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

 private:
  explicit Child(pid_t id) : id_(id) {}
  pid_t id_;
};

Error too_slow(const ProgramLimits& limits) {
  return Error("took longer than {} s and was stopped",
               std::chrono::duration<double>(limits.time).count());
}

Result<std::string> read_all(const Handle& pipe, Clock::time_point end,
                             const ProgramLimits& limits) {
  std::string output;
  std::array<char, 1 << 16> piece;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now()).count();
    pollfd wait{pipe.get(), POLLIN, 0};
    const int ready = left <= 0 ? 0 : poll(&wait, 1, static_cast<int>(left));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return system_error("its output cannot be read");
    if (ready == 0) return too_slow(limits);
    const ssize_t count = read(pipe.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return system_error("its output cannot be read");
    if (count == 0) return output;
    output.append(piece.data(), static_cast<std::size_t>(count));
    if (output.size() > limits.output_bytes)
      return Error("wrote more than {} bytes and was stopped", limits.output_bytes);
  }
}

}  // namespace

Result<std::string> run_program(const std::string& program, std::string_view input,
                                const ProgramLimits& limits) {
  const Clock::time_point end = Clock::now() + limits.time;
  const Handle file = TRY(file_of(input));
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return system_error("no pipe for its output");
  const Handle output(ends[0]);
  Handle to_output(ends[1]);
  Child child = TRY(Child::start(program, file, to_output));
  to_output = Handle();  // Else the pipe would never end.

  std::string text = TRY(read_all(output, end, limits));
  const std::optional<int> status = child.wait_until(end);
  if (!status) return too_slow(limits);
  if (WIFSIGNALED(*status)) return Error("was ended by signal {}", WTERMSIG(*status));
  if (WEXITSTATUS(*status) != 0) return Error("ended with status {}", WEXITSTATUS(*status));
  return text;
}

}  // namespace tensordiff
