#include "cli/test_command.h"

namespace tensordiff {
namespace {

const std::string kA = data("formats/pair_f32_a.pth"), kB = data("formats/pair_f32_b.pth");

TEST(TrendCommand, TellsHowARunMoves) {
  const Ran ran = run(commands::trend, {kA, kB, kA});
  EXPECT_EQ(ran.status, kSame) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("converged  ")) << ran.out;
  EXPECT_TRUE(ran.says("3 checkpoints, 1 tensor"));
  EXPECT_EQ(run(commands::trend, {kA, kB, "-q"}).out, "");
}

TEST(TrendCommand, HasEachOutput) {
  const Result<Json> json = Json::parse(run(commands::trend, {kA, kB, "-o", "json"}).out);
  ASSERT_TRUE(json.ok());
  EXPECT_FALSE(json.value()["verdict"].string().empty());
  EXPECT_TRUE(run(commands::trend, {kA, kB, "-o", "csv"}).says("pair_f32_b.pth"));
  EXPECT_TRUE(run(commands::trend, {kA, kB, "-o", "markdown"}).says("pair_f32_b.pth"));
  EXPECT_TRUE(run(commands::trend, {kA, kB, "-o", "html"}).out.starts_with("<!"));
}

TEST(TrendCommand, NeedsTwoCheckpointsWithTensors) {
  EXPECT_EQ(run(commands::trend, {kA}).err,
            "tensordiff: trend needs two checkpoints or more, in order\n");
  const Ran none = run(commands::trend, {kA, kB, "--path", "nothing"});
  EXPECT_EQ(none.status, kTrouble);
  EXPECT_TRUE(none.complains("0 tensors selected")) << none.err;
}

}  // namespace
}  // namespace tensordiff
