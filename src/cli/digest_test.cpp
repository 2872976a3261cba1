#include "cli/digest.h"

#include <filesystem>

#include "cli/test_command.h"

namespace tensordiff {
namespace {

const std::string kA = data("formats/pair_f32_a.pth"), kB = data("formats/pair_f32_b.pth");

TEST(DigestCommand, TellsWhatChanged) {
  const std::string file =
      (std::filesystem::temp_directory_path() / fmt::format("td_{}.digest", getpid())).string();
  const Ran written = run(commands::digest, {kA, "--out", file});
  EXPECT_EQ(written.status, kSame) << written.err;
  EXPECT_TRUE(is_digest_file(file));
  const Ran same = run(commands::compare, {file, kA});
  EXPECT_EQ(same.status, kSame) << same.err;
  EXPECT_TRUE(same.out.starts_with("SAME  1 tensor: 1 same\n")) << same.out;
  const Ran changed = run(commands::compare, {file, kB});
  EXPECT_EQ(changed.status, kDifferent);
  EXPECT_TRUE(changed.says("1 changed")) << changed.out;
  const Result<Json> json = Json::parse(run(commands::compare, {file, kB, "-o", "json"}).out);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json.value()["tensors"][0]["state"].string(), "changed");
  EXPECT_EQ(run(commands::compare, {file, kB, "-o", "html"}).status, kTrouble);
  std::filesystem::remove(file);
}

TEST(DigestCommand, NeedsOneModel) {
  EXPECT_EQ(run(commands::digest, {kA, kB}).err, "tensordiff: digest needs one model, has 2\n");
  EXPECT_FALSE(is_digest_file(kA));
}

}  // namespace
}  // namespace tensordiff
