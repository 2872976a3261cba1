#include <algorithm>

#include "cli/test_command.h"

namespace tensordiff {
namespace {

const std::string kA = data("logits/logits.pt"), kB = data("logits/logits_temp.pt");

TEST(LogitsCommand, TellsWhatTwoRunsPredict) {
  const Ran ran = run(commands::logits, {kA, kB});
  EXPECT_EQ(ran.status, kDifferent) << ran.err;
  EXPECT_TRUE(ran.out.starts_with("DIFFERENT  24 positions of 1 sequence, 256 words\n")) << ran.out;
  EXPECT_TRUE(ran.says("[temperature]"));
  EXPECT_EQ(run(commands::logits, {kA, kB, "--exit-zero"}).status, kSame);
  EXPECT_EQ(run(commands::logits, {kA, kB, "-q"}).out, "");
  const Ran same = run(commands::logits, {kA, kA});
  EXPECT_EQ(same.status, kSame);
  EXPECT_TRUE(same.out.starts_with("SAME  ")) << same.out;
}

TEST(LogitsCommand, HasEachOutput) {
  const Result<Json> json = Json::parse(run(commands::logits, {kA, kB, "-o", "json"}).out);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value()["logits"]["verdict"].string(), "different");
  EXPECT_TRUE(run(commands::logits, {kA, kB, "-o", "csv"}).says("sequence,"));
  EXPECT_TRUE(run(commands::logits, {kA, kB, "-o", "markdown"}).says("temperature"));
  EXPECT_TRUE(run(commands::logits, {kA, kB, "-o", "html"}).out.starts_with("<!"));
  const Ran brief = run(commands::logits, {kA, kB, "--brief"});
  EXPECT_EQ(std::ranges::count(brief.out, '\n'), 1) << brief.out;
  const Ran unknown = run(commands::logits, {kA, kB, "-o", "xml"});
  EXPECT_EQ(unknown.status, kTrouble);
  EXPECT_TRUE(unknown.complains("xml")) << unknown.err;
}

TEST(LogitsCommand, NeedsTwoRunsWithPredictions) {
  EXPECT_EQ(run(commands::logits, {kA}).err, "tensordiff: logits needs two runs, A and B\n");
  const Ran none = run(commands::logits, {kA, data("gguf/port_hf.safetensors")});
  EXPECT_EQ(none.status, kTrouble);
  EXPECT_TRUE(none.complains("no logits and no log-probabilities")) << none.err;
  EXPECT_EQ(run(commands::logits, {kA, "nowhere.pt"}).status, kTrouble);
}

}  // namespace
}  // namespace tensordiff
