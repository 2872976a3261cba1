#include "cli/test_command.h"

namespace tensordiff {
namespace {

TEST(CheckCommand, NamesCodeThatWasNotRun) {
  const Ran ran = run(commands::check, {data("formats/malicious_reduce.pt")});
  EXPECT_EQ(ran.status, kDifferent);
  EXPECT_TRUE(ran.out.starts_with("dangerous  ")) << ran.out;
  EXPECT_TRUE(ran.says("data.pkl: holds a reference to 'posix.system', which was not run"));
}

TEST(CheckCommand, FailsFromTheLevelOnThatIsAskedFor) {
  const std::string hostile = data("formats/malicious_reduce.pt");
  const std::string odd = data("parity/nan_rows.tar.gz");
  EXPECT_EQ(run(commands::check, {hostile, "--fail-on", "dangerous"}).status, kDifferent);
  EXPECT_EQ(run(commands::check, {hostile, "--fail-on", "unreadable"}).status, kSame);
  EXPECT_EQ(run(commands::check, {odd}).status, kDifferent);
  EXPECT_EQ(run(commands::check, {odd, "--fail-on", "dangerous"}).status, kSame);
  EXPECT_TRUE(run(commands::check, {odd, "--fail-on", "never"}).complains("'never' is not one of"));
}

TEST(CheckCommand, TellsAFileThatIsNotThereFromOneThatIsBroken) {
  const Ran ran = run(commands::check, {"nowhere.pt", data("parity/reference.zip")});
  EXPECT_EQ(ran.status, kTrouble);
  EXPECT_TRUE(ran.says("not found  nowhere.pt\n"));
  EXPECT_TRUE(ran.says("ok  ")) << ran.out;  // The other is looked at all the same.
}

TEST(CheckCommand, WritesJson) {
  const Ran ran = run(commands::check, {data("parity/nan_rows.tar.gz"), "-o", "json"});
  const Result<Json> json = Json::parse(ran.out);
  ASSERT_TRUE(json.ok());
  const Json& file = json.value().is_array() ? json.value()[0] : json.value()["files"][0];
  EXPECT_EQ(file["ok"].boolean(), false);
  EXPECT_EQ(file["level"].string(), "suspicious");
  EXPECT_EQ(file["tensors"].u64(), 39U);
  EXPECT_FALSE(file["nonfinite"].array().empty());
}

}  // namespace
}  // namespace tensordiff
