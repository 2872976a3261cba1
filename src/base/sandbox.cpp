#include "base/sandbox.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace tensordiff {
namespace {

// What set_sandbox_program() was told. Made on first use, since that may be called before main().
struct ProgramSaid {
  std::mutex mutex;
  std::string path;
};

ProgramSaid& program_said() {
  static ProgramSaid said;
  return said;
}

// Beside the program or shared library that this code is in, or where an installed one has it.
std::string program_beside_us() {
  Dl_info here = {};
  static const char mark = 0;
  if (dladdr(&mark, &here) == 0 || !here.dli_fname) return "";
  std::string folder = here.dli_fname;
  folder.erase(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/'));
  for (const char* path : {"/tensordiff", "/../bin/tensordiff"})
    if (!folder.empty() && access((folder + path).c_str(), X_OK) == 0) return folder + path;
  return "";
}

std::string program() {
  {
    const std::scoped_lock lock(program_said().mutex);
    if (!program_said().path.empty()) return program_said().path;
  }
  if (const char* set = std::getenv("TENSORDIFF_PROGRAM"); set && *set) return set;
  return program_beside_us();
}

// --- The filter, as a program for the kernel: it looks at the number of a system call and, where
// that matters, at its arguments. ---

constexpr uint32_t kNumber = offsetof(seccomp_data, nr), kArch = offsetof(seccomp_data, arch);
constexpr uint32_t kFirstArgument = offsetof(seccomp_data, args[0]);
constexpr uint32_t kThirdArgument = offsetof(seccomp_data, args[2]);
constexpr uint32_t kFourthArgument = offsetof(seccomp_data, args[3]);

#if defined(__x86_64__)
constexpr uint32_t kThisArch = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr uint32_t kThisArch = AUDIT_ARCH_AARCH64;
#else
constexpr uint32_t kThisArch = 0;  // Nothing runs: the filter kills every call.
#endif

sock_filter load(uint32_t offset) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset); }
sock_filter jump_unless(uint32_t value, uint8_t skipped) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, skipped);
}
sock_filter jump_unless_bit(uint32_t bit, uint8_t skipped) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bit, 0, skipped);
}
sock_filter answer(uint32_t action) { return BPF_STMT(BPF_RET | BPF_K, action); }

// What a computation needs whatever its arguments: memory, time, its own end.
constexpr long kAllowed[] = {
    SYS_munmap,         SYS_mremap,      SYS_madvise,    SYS_brk,           SYS_futex,
    SYS_getpid,         SYS_gettid,      SYS_getrandom,  SYS_clock_gettime, SYS_gettimeofday,
    SYS_sched_yield,    SYS_exit,        SYS_exit_group, SYS_rt_sigreturn,  SYS_rt_sigaction,
    SYS_rt_sigprocmask, SYS_sigaltstack,
};

// What is answered with an error: a library that asks for a file or a fact about one hears no, and
// can say so. Everything else ends the process.
constexpr long kRefused[] = {
    SYS_openat, SYS_newfstatat, SYS_fstat,      SYS_statx,  SYS_close,     SYS_ioctl,   SYS_lseek,
    SYS_fcntl,  SYS_prlimit64,  SYS_readlinkat, SYS_getcwd, SYS_faccessat, SYS_sysinfo, SYS_writev,
};

// What is done with one system call: instructions that end in an answer.
void add_rule(long number, const std::vector<sock_filter>& rule, std::vector<sock_filter>& code) {
  code.push_back(jump_unless(static_cast<uint32_t>(number), static_cast<uint8_t>(rule.size())));
  code.insert(code.end(), rule.begin(), rule.end());
}

std::vector<sock_filter> make_filter() {
  const sock_filter allow = answer(SECCOMP_RET_ALLOW), refuse = answer(SECCOMP_RET_ERRNO | EACCES);
  std::vector<sock_filter> code = {load(kArch),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kThisArch, 1, 0),
                                   answer(SECCOMP_RET_KILL_PROCESS), load(kNumber)};
  for (const long number : kAllowed) add_rule(number, {allow}, code);
  // Reading and writing: the socket alone.
  for (const long number : {SYS_read, SYS_write})
    add_rule(number,
             {load(kFirstArgument), jump_unless(kSandboxSocket, 1), allow,
              answer(SECCOMP_RET_ERRNO | EBADF)},
             code);
  // Signals: to itself, as abort() sends one.
  add_rule(SYS_tgkill,
           {load(kFirstArgument), jump_unless(static_cast<uint32_t>(getpid()), 1), allow, refuse},
           code);
  // Memory: its own, no file's, and never to be run as code.
  add_rule(SYS_mmap,
           {load(kThirdArgument), jump_unless_bit(PROT_EXEC, 1), refuse, load(kFourthArgument),
            jump_unless_bit(MAP_ANONYMOUS, 1), allow, refuse},
           code);
  add_rule(SYS_mprotect, {load(kThirdArgument), jump_unless_bit(PROT_EXEC, 1), refuse, allow},
           code);
  for (const long number : kRefused) add_rule(number, {refuse}, code);
  code.push_back(answer(SECCOMP_RET_KILL_PROCESS));
  return code;
}

Result<void> limit(int resource, uint64_t most) {
  const rlimit both = {most, most};
  if (setrlimit(static_cast<__rlimit_resource>(resource), &both) == 0) return {};
  return Error("cannot set a limit: {}", std::strerror(errno));
}

}  // namespace

void set_sandbox_program(std::string path) {
  const std::scoped_lock lock(program_said().mutex);
  program_said().path = std::move(path);
}

Result<void> enter_sandbox(const SandboxLimits& limits) {
  TRY(limit(RLIMIT_CPU, limits.seconds));
  TRY(limit(RLIMIT_CORE, 0));
  TRY(limit(RLIMIT_FSIZE, 0));
  TRY(limit(RLIMIT_NPROC, 0));
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  TRY(limit(RLIMIT_AS, limits.memory));  // Sanitizers set terabytes of addresses aside.
#endif
  std::vector<sock_filter> filter = make_filter();
  const sock_fprog code = {static_cast<uint16_t>(filter.size()), filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0)
    return Error("cannot drop privileges: {}", std::strerror(errno));
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &code) != 0)
    return Error("seccomp is not available: {}", std::strerror(errno));
  return {};
}

SandboxChild::SandboxChild(int process, int socket, uint64_t seconds)
    : process_(process),
      socket_(socket),
      seconds_(seconds),
      deadline_(std::chrono::steady_clock::now() + std::chrono::seconds(seconds)) {}

SandboxChild::SandboxChild(SandboxChild&& other) noexcept
    : process_(other.process_),
      socket_(other.socket_),
      seconds_(other.seconds_),
      deadline_(other.deadline_),
      out_of_time_(other.out_of_time_) {
  other.process_ = -1;
  other.socket_ = -1;
}

SandboxChild::~SandboxChild() {
  if (socket_ >= 0) close(socket_);
  if (process_ < 0) return;
  kill(process_, SIGKILL);
  waitpid(process_, nullptr, 0);
}

Result<SandboxChild> SandboxChild::start(std::string_view task, const SandboxLimits& limits) {
  std::string path = program();
  if (path.empty())
    return Error(
        "it needs the program tensordiff for a process of its own; TENSORDIFF_PROGRAM "
        "may say where it is");
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0)
    return Error("cannot make a socket: {}", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets[1], kSandboxSocket);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  std::string word(task), seconds = std::to_string(limits.seconds),
                          memory = std::to_string(limits.memory);
  char* arguments[] = {path.data(), word.data(), seconds.data(), memory.data(), nullptr};
  // Nothing of ours but where libraries are: an environment can steer a library.
  std::string libraries = "LD_LIBRARY_PATH=";
  if (const char* set = std::getenv("LD_LIBRARY_PATH")) libraries += set;
  std::string leaks = "ASAN_OPTIONS=detect_leaks=0";
  char* environment[] = {libraries.data(), leaks.data(), nullptr};
  pid_t process = -1;
  const int fault = posix_spawn(&process, path.c_str(), &actions, nullptr, arguments, environment);
  posix_spawn_file_actions_destroy(&actions);
  close(sockets[1]);
  if (fault != 0) {
    close(sockets[0]);
    return Error("cannot start a process for it: {}", std::strerror(fault));
  }
  return SandboxChild(process, sockets[0], limits.seconds);
}

Result<void> SandboxChild::wait_for(short events) {
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline_ - std::chrono::steady_clock::now());
    pollfd socket = {socket_, events, 0};
    const int ready = left.count() <= 0 ? 0 : poll(&socket, 1, static_cast<int>(left.count()));
    if (ready > 0) return {};
    if (ready < 0 && errno == EINTR) continue;
    return late();
  }
}

Error SandboxChild::late() {
  out_of_time_ = true;
  return Error("it took longer than {} s", seconds_);
}

// How the child ended, when it no longer answers.
Error SandboxChild::ending() {
  int status = 0;
  pid_t ended = 0;
  for (int tries = 0; ended == 0 && tries < 100; ++tries) {  // It closes its socket as it dies.
    ended = process_ < 0 ? -1 : waitpid(process_, &status, WNOHANG);
    if (ended == 0) usleep(10'000);
  }
  if (ended != process_ || process_ < 0) return Error("it no longer answers");
  process_ = -1;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS)
    return Error("it tried something that the sandbox forbids");
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU) return late();
  if (WIFSIGNALED(status)) return Error("it crashed: {}", strsignal(WTERMSIG(status)));
  return Error("it ended early, with status {}", WEXITSTATUS(status));
}

Result<void> SandboxChild::write(ByteView bytes) {
  while (!bytes.empty()) {
    TRY(wait_for(POLLOUT));
    const ssize_t written = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (written < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) return ending();
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> SandboxChild::read(std::span<std::byte> bytes) {
  while (!bytes.empty()) {
    TRY(wait_for(POLLIN));
    const ssize_t received = recv(socket_, bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (received < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (received <= 0) return ending();
    bytes = bytes.subspan(static_cast<std::size_t>(received));
  }
  return {};
}

}  // namespace tensordiff
