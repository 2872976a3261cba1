#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/batch_list.h"
#include "cli/batch_state.h"
#include "cli/test_command.h"

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

// A folder that is there for one test.
class Batch : public testing::Test {
 protected:
  void SetUp() override { fs::create_directories(folder_); }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name, std::string_view text = "x") {
    const fs::path path = folder_ / name;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
    return path.string();
  }

  const fs::path folder_ =
      fs::path(testing::TempDir()) /
      ("tensordiff-batch-" +
       std::string(testing::UnitTest::GetInstance()->current_test_info()->name()));
};

TEST_F(Batch, ReadsAList) {
  const std::vector<BatchRun> runs = parse_batch(
                                         "options: {atol: 1e-5}\n"
                                         "runs:\n"
                                         "  - {name: seven, a: ref/7.pt, b: /abs/7.pt}\n"
                                         "  - a: ref/8.pt\n"
                                         "    b: new/8.pt\n"
                                         "    rtol: 0.01\n"
                                         "    diagnose: false\n",
                                         "some/list.yaml")
                                         .value();
  ASSERT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs[0].name, "seven");
  EXPECT_EQ(runs[0].a, "some/ref/7.pt");
  EXPECT_EQ(runs[0].b, "/abs/7.pt");
  EXPECT_EQ(runs[1].name, "new/8.pt");
  ASSERT_EQ(runs[1].options.size(), 3U);
  EXPECT_EQ(runs[1].options[0].key, "atol");
  EXPECT_EQ(runs[1].options[1].values, std::vector<std::string>{"0.01"});
  EXPECT_TRUE(runs[1].options[2].off);
}

TEST_F(Batch, SaysWhereTheListIsWrong) {
  const auto error = [](std::string_view text) {
    return parse_batch(text, "list.yaml").error().message();
  };
  EXPECT_EQ(error("runs: 3"), "line 1: 'runs' has to be a list");
  EXPECT_EQ(error("runs:\n  - a: x\n"), "line 2: a run needs both 'a' and 'b'");
  EXPECT_EQ(error("runs:\n  - {a: x, b: y}\n  - {a: z, b: y}"),
            "line 3: a second run is called 'y'");
  EXPECT_EQ(error("runs:\n  - {a: x, b: y, atoll: 1}"),
            "line 2: unknown key 'atoll'; keys are the options of compare beside name, a, b; did "
            "you mean 'atol'?");
  EXPECT_EQ(error("runs:\n  - {a: x, b: y, out: z}"), "line 2: 'out' is for the command line only");
  EXPECT_EQ(error("run: []"), "line 1: unknown key 'run'; did you mean 'runs'?");
}

TEST_F(Batch, MatchesFoldersByName) {
  for (const char* name : {"a/one.pt", "a/two.pt", "a/three.pt", "a/.hidden", "b/one.pt",
                           "b/two.safetensors", "b/four.pt"})
    file(name);
  const std::vector<BatchRun> runs =
      match_folders((folder_ / "a").string(), (folder_ / "b").string()).value();
  std::vector<std::string> told;
  for (const BatchRun& run : runs)
    told.push_back(run.name + ": " + fs::path(run.a).filename().string() + " " +
                   fs::path(run.b).filename().string());
  EXPECT_EQ(told, (std::vector<std::string>{"four.pt:  four.pt", "one.pt: one.pt one.pt",
                                            "three.pt: three.pt ", "two: two.pt two.safetensors"}));
  EXPECT_FALSE(match_folders((folder_ / "none").string(), folder_.string()).ok());
}

TEST_F(Batch, IgnoresWhatIsNoTensorFile) {
  for (const char* side : {"a", "b"})
    for (const char* name : {"config.json", "tokenizer.model", "vocab.txt", "README.md", "logo.png",
                             "modeling.py", "LICENSE", "notes/todo.txt", "cut_off.safetensors"})
      file(std::string(side) + "/" + name, "plain words");
  fs::copy(data("formats/pair_f32_a.pth"), folder_ / "a/odd.model");
  fs::copy(data("formats/pair_f32_b.pth"), folder_ / "b/odd.model");
  fs::create_directory(folder_ / "a/deep");
  fs::copy(data("formats/pair_f32_a.pth"), folder_ / "a/deep/x.pth");
  const std::vector<BatchRun> runs =
      match_folders((folder_ / "a").string(), (folder_ / "b").string()).value();
  std::vector<std::string> names;
  for (const BatchRun& run : runs) names.push_back(run.name);
  EXPECT_EQ(names, (std::vector<std::string>{"cut_off.safetensors", "deep", "odd.model"}));
}

TEST_F(Batch, RemembersWhatIsDoneUntilSomethingChanges) {
  const BatchRun run{"seven", file("a.pt"), file("b.pt"), {}};
  BatchRow row;
  row.name = "seven";
  row.verdict = Conclusion::different;
  row.status = 1;
  const std::string path = (folder_ / "state.json").string();
  const std::string stamp = stamp_of(run, {});
  ASSERT_TRUE(BatchState::open(path).value().add(stamp, row).ok());
  const BatchState state = BatchState::open(path).value();
  EXPECT_EQ(state.find("seven", stamp)->verdict, Conclusion::different);
  EXPECT_EQ(state.find("eight", stamp), std::nullopt);

  // Options that matter, a file that one names, and the inputs themselves; but not the output.
  EXPECT_EQ(stamp_of(run, {{"output", "html"}}), stamp);
  EXPECT_NE(stamp_of(run, {{"atol", "1"}}), stamp);
  const std::vector<Settings::Given> rules = {{"tolerance-file", file("t.yaml", "w: {atol: 1}")}};
  const std::string before = stamp_of(run, rules);
  file("t.yaml", "w: {atol: 2}");
  EXPECT_NE(stamp_of(run, rules), before);
  file("b.pt", "longer");
  EXPECT_NE(stamp_of(run, {}), stamp);
}

TEST_F(Batch, TriesTroubleAgain) {
  BatchRow row;
  row.name = "nine";
  row.verdict = Conclusion::trouble;
  row.status = 2;
  const std::string path = (folder_ / "state.json").string();
  ASSERT_TRUE(BatchState::open(path).value().add("s", row).ok());
  EXPECT_EQ(BatchState::open(path).value().find("nine", "s"), std::nullopt);
}

TEST_F(Batch, RefusesAStateThatIsNone) {
  EXPECT_EQ(BatchState::open(file("s.json", "{}")).error().message(), "not the state of a batch");
  EXPECT_FALSE(BatchState::open(file("t.json", "{")).ok());
}

TEST_F(Batch, ReplacesAFileAsAWhole) {
  const std::string path = file("state.json", "old");
  ASSERT_TRUE(write_whole(path, "new").ok());
  std::ifstream stream(path);
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(stream), {}), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);  // No draft is left.
  EXPECT_FALSE(write_whole((folder_ / "none" / "x").string(), "new").ok());
}

// The worst of all runs decides; a run that fails is a row, and the others go on.
TEST_F(Batch, RunsAListAndExitsAsTheWorst) {
  const Ran ran = run(commands::batch, {data("settings/batch.yaml"), "-o", "json"});
  EXPECT_EQ(ran.status, kTrouble) << ran.err;
  const Result<Json> json = Json::parse(ran.out);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value()["summary"]["runs"].u64(), json.value()["runs"].array().size());
  EXPECT_EQ(json.value()["summary"]["trouble"].u64(), 1U);
  EXPECT_EQ(json.value()["runs"][0]["verdict"].string(), "same");
  EXPECT_TRUE(run(commands::batch, {}).complains("batch needs a list in YAML, or two folders"));
}

}  // namespace
}  // namespace tensordiff
