#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/test_command.h"

namespace tensordiff {
namespace {

const std::string kA = data("logits/logits.pt"), kB = data("logits/logits_temp.pt");

TEST(RunsCommand, GroupsRunsThatAreTheSame) {
  const Ran ran = run(commands::runs, {kA, kA, kB});
  EXPECT_EQ(ran.status, kDifferent) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("DIFFERENT  3 runs, 2 bitwise classes\n")) << ran.out;
  EXPECT_TRUE(ran.says("class 1     2 runs: "));
  EXPECT_TRUE(ran.says("class 2     1 run: "));
  EXPECT_EQ(run(commands::runs, {kA, kB, "--exit-zero"}).status, kSame);
  EXPECT_EQ(run(commands::runs, {kA, kB, "-q"}).out, "");
}

TEST(RunsCommand, SaysThatAllAreTheSame) {
  const Ran ran = run(commands::runs, {kA, kA});
  EXPECT_EQ(ran.status, kSame);
  EXPECT_EQ(ran.out, "SAME  2 runs, all bit-identical\n");
  EXPECT_TRUE(run(commands::runs, {kA, kA, "-v"}).says("logits"));  // A row for each tensor.
}

TEST(RunsCommand, WritesJson) {
  const Result<Json> json = Json::parse(run(commands::runs, {kA, kB, kA, "-o", "json"}).out);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value()["schema"].string(), "tensordiff.runs/1");
  EXPECT_EQ(json.value()["classes"].u64(), 2U);
  EXPECT_EQ(json.value()["class_of"][1].u64(), 1U);
  EXPECT_EQ(json.value()["class_of"][2].u64(), 0U);
  EXPECT_EQ(json.value()["first_split"].string(), "logits");
}

TEST(RunsCommand, SavesTheNoiseFloorForLater) {
  const std::string path = testing::TempDir() + "runs_test_noise";
  EXPECT_EQ(run(commands::runs, {kA, kB, "--save-noise", path}).status, kDifferent);
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  std::filesystem::remove(path);
  EXPECT_NE(text.str().find("logits"), std::string::npos) << text.str();
}

TEST(RunsCommand, NeedsTwoRuns) {
  EXPECT_EQ(run(commands::runs, {kA}).err, "tensordiff: runs needs two runs or more\n");
  EXPECT_EQ(run(commands::runs, {kA, "nowhere.pt"}).status, kTrouble);
}

}  // namespace
}  // namespace tensordiff
