#include <filesystem>

#include "cli/part.h"
#include "cli/test_command.h"

namespace tensordiff {
namespace {

const std::string kA = data("parity/reference.zip"), kB = data("parity/constant_scale.tgz");

// A folder of its own, which is removed in the end.
class MergeCommand : public testing::Test {
 protected:
  MergeCommand() {
    folder_ = std::filesystem::temp_directory_path() /
              fmt::format("tensordiff_merge_{}_{}", getpid(),
                          testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
  }
  ~MergeCommand() override { std::filesystem::remove_all(folder_); }

  std::string file(const std::string& name) const { return (folder_ / name).string(); }

  // Part K of N under the name "K".
  Ran part(const std::string& number, std::vector<std::string> more = {}) {
    more.insert(more.begin(), {kA, kB, "--part", number, "--out", file(number.substr(0, 1))});
    return run(commands::compare, more);
  }

  std::filesystem::path folder_;
};

TEST_F(MergeCommand, GivesTheReportOfOneProcess) {
  for (const char* number : {"1/2", "2/2"}) EXPECT_EQ(part(number).status, kSame);
  for (const char* output : {"text", "report", "csv"}) {
    const Ran whole = run(commands::compare, {kA, kB, "-o", output});
    const Ran merged = run(commands::merge, {file("2"), file("1"), "-o", output});
    EXPECT_EQ(merged.out, whole.out);
    EXPECT_EQ(merged.status, whole.status);
  }
}

TEST_F(MergeCommand, SaysWhatItCompares) {
  part("1/1", {"--no-diagnose", "--atol", "9", "--brief"});
  const Ran merged = run(commands::merge, {file("1")});
  EXPECT_EQ(merged.err, fmt::format("tensordiff: merging 1 part of: tensordiff {} {} "
                                    "--no-diagnose --atol 9\n",
                                    kA, kB));
  EXPECT_EQ(run(commands::merge, {file("1"), "-q"}).err, "");
}

TEST_F(MergeCommand, NamesThePartThatIsMissing) {
  part("1/2");
  const Ran merged = run(commands::merge, {file("1")});
  EXPECT_EQ(merged.status, kTrouble);
  EXPECT_TRUE(merged.complains("part 2 of 2 is missing: run it again with --part 2/2"));
  EXPECT_TRUE(run(commands::merge, {kA}).complains("not a partial result of tensordiff"));
  EXPECT_TRUE(run(commands::merge, {}).complains("needs partial results"));
}

TEST(PartOptions, AreThoseThatChangeTheComparison) {
  Settings settings;
  settings.given = {
      {"atol", "1"}, {"brief", ""}, {"out", "x"}, {"save-pairs", "y"}, {"single", ""}};
  EXPECT_EQ(options_of_part(settings), (std::vector<GivenOption>{{"atol", "1"}, {"single", ""}}));
}

TEST(PartOptions, OfAStrangerNeitherWriteNorRun) {
  for (const GivenOption& option : {GivenOption{"out", "x"},
                                    {"save-pairs", "x"},
                                    {"match", "exec:/bin/sh"},
                                    {"match", "exact,exec:/bin/sh"},
                                    {"nonsense", ""}}) {
    Settings settings;
    EXPECT_FALSE(apply_part_options({option}, settings).ok()) << option.name;
    EXPECT_TRUE(settings.request.match.program.empty());
  }
}

TEST(PartFile, HasANameThatSorts) {
  EXPECT_EQ(part_file_name({3, 16}), "part-03-of-16.tdpart");
  EXPECT_EQ(part_file_name({1, 1}), "part-1-of-1.tdpart");
}

}  // namespace
}  // namespace tensordiff
