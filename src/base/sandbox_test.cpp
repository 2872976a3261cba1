// The sandbox: what it may not do, and what is said of how it ended.

#include "base/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace tensordiff {
namespace {

// Runs in a process that the test framework forks.
template <class Try>
void in_sandbox(Try attempt) {
  if (!enter_sandbox({10, uint64_t{4} << 30}).ok()) _exit(99);
  _exit(attempt() ? 1 : 0);
}

TEST(SandboxDeathTest, OpensNoFile) {
  EXPECT_EXIT(in_sandbox([] { return open("/etc/passwd", O_RDONLY) >= 0 || errno != EACCES; }),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(in_sandbox([] { return open("/tmp/made-by-a-test", O_WRONLY | O_CREAT, 0600) >= 0; }),
              testing::ExitedWithCode(0), "");
}

TEST(SandboxDeathTest, WritesNowhereButToItsSocket) {
  EXPECT_EXIT(in_sandbox([] { return write(2, "x", 1) >= 0; }), testing::ExitedWithCode(0), "");
}

TEST(SandboxDeathTest, StartsNothingAndCallsNobody) {
  EXPECT_EXIT(in_sandbox([] {
                char* const arguments[] = {nullptr};
                return execv("/bin/true", arguments) == 0;
              }),
              testing::KilledBySignal(SIGSYS), "");
  EXPECT_EXIT(in_sandbox([] { return socket(AF_INET, SOCK_STREAM, 0) >= 0; }),
              testing::KilledBySignal(SIGSYS), "");
  EXPECT_EXIT(in_sandbox([] { return fork() >= 0; }), testing::KilledBySignal(SIGSYS), "");
  EXPECT_EXIT(in_sandbox([] { return unlink("/tmp/made-by-a-test") == 0; }),
              testing::KilledBySignal(SIGSYS), "");
}

TEST(SandboxDeathTest, SendsNoSignalToOthers) {
  const pid_t parent = getpid();
  EXPECT_EXIT(in_sandbox([&] { return kill(parent, 0) == 0; }), testing::KilledBySignal(SIGSYS),
              "");
  EXPECT_EXIT(
      in_sandbox([&] { return syscall(SYS_tgkill, parent, parent, 0) == 0 || errno != EACCES; }),
      testing::ExitedWithCode(0), "");
  EXPECT_EXIT(in_sandbox([] { return raise(SIGUSR1) == 0; }), testing::KilledBySignal(SIGUSR1), "");
}

TEST(SandboxDeathTest, MakesNoMemoryThatCanBeRun) {
  const auto map = [](int rights) {
    return mmap(nullptr, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  };
  EXPECT_EXIT(in_sandbox([&] { return map(PROT_READ | PROT_EXEC) != MAP_FAILED; }),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(in_sandbox([&] {
                void* memory = map(PROT_READ | PROT_WRITE);
                return memory == MAP_FAILED || mprotect(memory, 4096, PROT_READ) != 0 ||
                       mprotect(memory, 4096, PROT_READ | PROT_EXEC) == 0 || errno != EACCES;
              }),
              testing::ExitedWithCode(0), "");
  EXPECT_EXIT(in_sandbox([] {
                return mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, kSandboxSocket, 0) != MAP_FAILED;
              }),
              testing::ExitedWithCode(0), "");
}

// Every system call of the kernel, by its number: what computing does not need ends the process or
// fails.
TEST(SandboxDeathTest, RefusesAnythingNotOnTheList) {
  constexpr long kComputing[] = {
      SYS_munmap,
      SYS_mremap,
      SYS_madvise,
      SYS_brk,
      SYS_futex,
      SYS_getpid,
      SYS_gettid,
      SYS_getrandom,
      SYS_clock_gettime,
      SYS_gettimeofday,
      SYS_sched_yield,
      SYS_exit,
      SYS_exit_group,
      SYS_rt_sigreturn,
      SYS_rt_sigaction,
      SYS_rt_sigprocmask,
      SYS_sigaltstack,
      SYS_mprotect,
      // They would hurt the machine if the filter were broken.
      SYS_vhangup,
      SYS_sethostname,
      SYS_setdomainname,
  };
  constexpr long kNumbersMax = 480;  // Linux 6.18 has fewer.
  for (long number = 0; number < kNumbersMax; ++number) {
    if (std::ranges::find(kComputing, number) != std::end(kComputing)) continue;
    const pid_t child = fork();
    if (child == 0) {
      alarm(60);
      in_sandbox([number] { return syscall(number, -1, 0, 0, 0, 0, 0) >= 0; });
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    // SIGILL is the kernel's own answer to uretprobe and its like outside a probe.
    const bool ended =
        WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGILL);
    EXPECT_TRUE(ended || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
        << "system call " << number << ": status " << status;
  }
}

TEST(SandboxDeathTest, MayCompute) {
  EXPECT_EXIT(in_sandbox([] {
                std::string memory(8 << 20, 'x');
                return memory[memory.size() / 2] != 'x';
              }),
              testing::ExitedWithCode(0), "");
}

// Programs that end in a known way, whatever they are told.
std::string ending_of(const std::string& program, std::string_view task, uint64_t seconds) {
  set_sandbox_program(program);
  Result<SandboxChild> child = SandboxChild::start(task, {seconds, 1 << 30});
  if (!child.ok()) return child.error().message();
  std::byte answer[1];
  const Result<void> read = child.value().read(answer);
  if (read.ok()) return "an answer";
  return read.error().message() + (child.value().out_of_time() ? " (its time was up)" : "");
}

class SandboxChildTest : public testing::Test {
 protected:
  void TearDown() override { set_sandbox_program(TENSORDIFF_PROGRAM); }
};

TEST_F(SandboxChildTest, SaysHowItEnded) {
  EXPECT_EQ(ending_of("/bin/true", "x", 10), "it ended early, with status 0");
  EXPECT_EQ(ending_of("/bin/false", "x", 10), "it ended early, with status 1");
  EXPECT_EQ(ending_of("/no/such/program", "x", 10),
            "cannot start a process for it: No such file or directory");
  EXPECT_EQ(ending_of("/bin/sleep", "100", 1), "it took longer than 1 s (its time was up)");
}

}  // namespace
}  // namespace tensordiff
