// tensordiff compare, and what all commands that compare share.

#include "cli/comparing.h"

#include "cli/test_command.h"
#include "report/sample_report.h"

namespace tensordiff {
namespace {

const std::string kA = "formats/pair_f32_a.pth", kB = "formats/pair_f32_b.pth";

TEST(CompareCommand, ExitsAsDiffDoes) {
  EXPECT_EQ(run(commands::compare, {data(kA), data(kA), "--brief"}).status, kSame);
  const Ran strict = run(commands::compare, {data(kA), data(kB), "--epsilon", "0", "--brief"});
  EXPECT_EQ(strict.status, kDifferent);
  EXPECT_TRUE(strict.out.starts_with("DIFFERENT  1 pair: 1 different")) << strict.out;
  EXPECT_EQ(run(commands::compare, {data(kA), data(kB), "--epsilon", "0", "--exit-zero"}).status,
            kSame);
  const Ran missing = run(commands::compare, {data(kA), "nowhere.pt"});
  EXPECT_EQ(missing.status, kTrouble);
  EXPECT_EQ(missing.err, "tensordiff: nowhere.pt: no such file or folder\n");
}

TEST(CompareCommand, PrintsNothingWhenItIsQuiet) {
  const Ran ran = run(commands::compare, {data(kA), data(kB), "--epsilon", "0", "-q"});
  EXPECT_EQ(ran.status, kDifferent);
  EXPECT_EQ(ran.out + ran.err, "");
}

TEST(CompareCommand, KeepsThePairsThatItMade) {
  const std::string file = testing::TempDir() + "pairs_of_compare.yaml";
  EXPECT_EQ(run(commands::compare, {data(kA), data(kA), "--save-pairs", file}).status, kSame);
  const Ran again = run(commands::compare, {data(kA), data(kB), "--pairs", file, "-o", "report"});
  const Result<Json> json = Json::parse(again.out);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value()["pairs"][0]["matched_by"].string(), "manual");
}

TEST(OneComparison, RefusesInputsThatMakeNoSense) {
  Settings settings;
  const auto fault = [&](const std::vector<std::string>& inputs) {
    const Result<void> checked = check_inputs(settings, inputs);
    return checked.ok() ? "" : checked.error().message();
  };
  EXPECT_EQ(fault({"a", "b"}), "");
  EXPECT_EQ(fault({"a", "-"}), "'-': reading from standard input is not supported");
  EXPECT_EQ(fault({"a", ""}), "an input is an empty name; is a variable of your script unset?");
  EXPECT_EQ(fault({"a", "b", "c"}), "needs two inputs, has 3");
  EXPECT_EQ(fault({"m-1-of-3.pt", "m-2-of-3.pt", "m-3-of-3.pt"}),
            "these 3 files are shards of one model; pass its folder or its index instead");
  EXPECT_EQ(fault({"m-1-of-2.pt", "m-2-of-2.pt"}),
            "these 2 files are shards of one model; pass its folder or its index instead");
  EXPECT_EQ(fault({"a/m-1-of-2.pt", "a/m-2-of-2.pt", "b/m-1-of-2.pt", "b/m-2-of-2.pt"}),
            "4 of these files are shards of 2 models; "
            "pass the folder or the index of each instead");
  EXPECT_EQ(fault({"a/m-1-of-2.pt", "a/m-2-of-2.pt", "b"}),
            "2 of these files are shards of 1 model; pass its folder or its index instead");
  EXPECT_EQ(fault({}), "needs two inputs, has none");
  EXPECT_EQ(fault({"a/m-1-of-2.pt", "b/m-1-of-2.pt"}), "");
  EXPECT_EQ(fault({"a/m-1-of-2.pt", "a/m-1-of-2.pt"}), "");
  EXPECT_TRUE(fault({"a"}).starts_with("needs two inputs, has one; --single"));
  settings.single = true;
  EXPECT_EQ(fault({"a"}), "");
  EXPECT_EQ(fault({"a", "b"}), "--single needs one input, has 2");
}

TEST(OneComparison, PicksTheRendererByOptionsAndNames) {
  Settings settings;
  EXPECT_EQ(&renderer_of(settings), &renderers::text);
  settings.stats = true;
  EXPECT_EQ(&renderer_of(settings), &renderers::stats);
  settings.output = "csv";
  EXPECT_EQ(&renderer_of(settings), &renderers::csv);
  settings.output = "text";
  settings.full_report = true;
  EXPECT_EQ(&renderer_of(settings), &renderers::markdown);
  settings.out = "Result.HTML";
  EXPECT_EQ(&renderer_of(settings), &renderers::html);
}

TEST(OneComparison, TroubleWinsOverDifference) {
  Settings settings;
  Report report = sample_report();
  const auto status = [&](Conclusion verdict) {
    report.summary.verdict = verdict;
    return exit_status(report, settings);
  };
  EXPECT_EQ(status(Conclusion::same), kSame);
  EXPECT_EQ(status(Conclusion::close), kSame);
  EXPECT_EQ(status(Conclusion::known), kSame);
  EXPECT_EQ(status(Conclusion::shapes_match), kSame);
  EXPECT_EQ(status(Conclusion::different), kDifferent);
  EXPECT_EQ(status(Conclusion::trouble), kTrouble);
  settings.exit_zero = true;
  EXPECT_EQ(status(Conclusion::different), kSame);
  EXPECT_EQ(status(Conclusion::trouble), kTrouble);
}

}  // namespace
}  // namespace tensordiff
