// The child without rights: what it may not do, and what is said of how it ended.

#include "base/sandbox.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

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
  return read.ok() ? "an answer" : read.error().message();
}

class SandboxChildTest : public testing::Test {
 protected:
  void TearDown() override { set_sandbox_program(TENSORDIFF_PROGRAM); }
};

TEST_F(SandboxChildTest, SaysHowItEnded) {
  EXPECT_EQ(ending_of("/bin/true", "x", 10), "it ended before it was done, with status 0");
  EXPECT_EQ(ending_of("/bin/false", "x", 10), "it ended before it was done, with status 1");
  EXPECT_EQ(ending_of("/no/such/program", "x", 10),
            "cannot start a process for it: No such file or directory");
  EXPECT_EQ(ending_of("/bin/sleep", "100", 1), "it took longer than 1 s");
}

}  // namespace
}  // namespace tensordiff
