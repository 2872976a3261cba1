#include "cli/subprocess.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(RunProgram, GivesOutputAndStatus) {
  const Finished echoed = run_program({"echo", "$HOME; *"}).value();
  EXPECT_EQ(echoed.output, "$HOME; *\n");  // No shell had a look at it.
  EXPECT_EQ(echoed.exit, 0);
  EXPECT_EQ(run_program({"false"}).value().exit, 1);
}

TEST(RunProgram, SaysWhatItCannotRun) {
  const Result<Finished> missing = run_program({"no-such-program-anywhere"});
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().message(),
            "no-such-program-anywhere: cannot run it: No such file or directory");
}

}  // namespace
}  // namespace tensordiff
