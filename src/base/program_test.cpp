#include "base/program.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

namespace tensordiff {
namespace {

// A script in a file of its own, gone with the test.
class Script {
 public:
  explicit Script(const std::string& body) {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::string(folder ? folder : "/tmp") + "/tensordiff_script_XXXXXX";
    close(mkstemp(path_.data()));
    std::ofstream(path_) << "#!/bin/sh\n" << body << "\n";
    chmod(path_.c_str(), 0700);
  }
  ~Script() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

TEST(RunProgram, GivesBackWhatItWrote) {
  EXPECT_EQ(run_program("cat", "one\ntwo\n").value(), "one\ntwo\n");
  EXPECT_EQ(run_program("true", std::string(1 << 20, 'x')).value(), "");
  EXPECT_EQ(run_program("cat", std::string(1 << 20, 'x')).value().size(), 1U << 20);
}

TEST(RunProgram, RunsNoShell) {
  const Result<std::string> found = run_program("echo hello; echo $HOME", "");
  ASSERT_FALSE(found.ok());
  EXPECT_EQ(found.error().message(), "cannot be run: No such file or directory");
}

TEST(RunProgram, SaysHowItFailed) {
  EXPECT_EQ(run_program("false", "").error().message(), "ended with status 1");
  EXPECT_EQ(run_program(Script("kill -9 $$").path(), "").error().message(),
            "was ended by signal 9");
}

TEST(RunProgram, StopsWhatTakesTooLongOrWritesTooMuch) {
  using std::chrono::milliseconds;
  const std::string slow = "took longer than 0.05 s and was stopped";
  for (const char* body : {"sleep 100", "sleep 100 & wait", "exec >&-; sleep 100"})
    EXPECT_EQ(run_program(Script(body).path(), "", {.time = milliseconds(50)}).error().message(),
              slow)
        << body;
  const ProgramLimits few{.output_bytes = 100};
  EXPECT_EQ(run_program("yes", "", few).error().message(),
            "wrote more than 100 bytes and was stopped");
}

}  // namespace
}  // namespace tensordiff
