#include "cli/test_command.h"

namespace tensordiff {
namespace {

const std::string kA = data("formats/pair_f32_a.pth"), kB = data("formats/pair_f32_b.pth");

TEST(GitCommand, ComparesAsADiffDriver) {
  const Ran ran = run(commands::git, {"diff", "model.pth", kA, "0", "100644", kB, "1", "100644"});
  EXPECT_EQ(ran.status, kSame) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("tensordiff a/model.pth b/model.pth\n")) << ran.out;
  EXPECT_TRUE(ran.says("1 pair"));
}

TEST(GitCommand, ListsAFileThatIsNew) {
  const Ran ran =
      run(commands::git, {"diff", "model.pth", "/dev/null", "0", "0", kB, "1", "100644"});
  EXPECT_TRUE(ran.says("\n+x  f32 ")) << ran.out;
}

// Equal files have equal lines, and another value gives another line.
TEST(GitCommand, WritesALineForEachTensor) {
  const Ran a = run(commands::git, {"textconv", kA}), b = run(commands::git, {"textconv", kB});
  EXPECT_TRUE(a.out.starts_with("x  f32 ")) << a.out;
  EXPECT_NE(a.out, b.out);
  EXPECT_EQ(a.out, run(commands::git, {"textconv", kA}).out);
}

TEST(GitCommand, RefusesOtherActions) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{}, {"instal"}, {"install", "here"}, {"diff", "a", "b"}}) {
    const Ran ran = run(commands::git, words);
    EXPECT_EQ(ran.status, kTrouble);
    EXPECT_TRUE(ran.complains("git needs install or uninstall")) << ran.err;
  }
}

}  // namespace
}  // namespace tensordiff
