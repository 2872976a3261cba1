// What is trusted, with a state folder of its own.

#include "cli/trust.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace tensordiff {
namespace {

namespace fs = std::filesystem;

class Trust : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) / "tensordiff_trust";
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    setenv("XDG_STATE_HOME", (folder_ / "state").c_str(), 1);
  }
  void TearDown() override {
    unsetenv("XDG_STATE_HOME");
    fs::remove_all(folder_);
  }
  std::string write(const std::string& name, const std::string& text) {
    const fs::path path = folder_ / name;
    std::ofstream(path) << text;
    return path.string();
  }

  fs::path folder_;
};

TEST_F(Trust, IsForAFileAsItIs) {
  const std::string path = write("settings", "atol: 1"), other = write("other", "atol: 1");
  EXPECT_FALSE(is_trusted({path, "atol: 1", {}}));
  ASSERT_TRUE(trust({path, "atol: 1", {}}).ok());
  EXPECT_TRUE(is_trusted({path, "atol: 1", {}}));
  EXPECT_FALSE(is_trusted({path, "atol: 2", {}}));
  EXPECT_FALSE(is_trusted({other, "atol: 1", {}}));
  ASSERT_TRUE(trust({other, "atol: 1", {}}).ok());
  ASSERT_TRUE(distrust(path).ok());
  EXPECT_FALSE(is_trusted({path, "atol: 1", {}}));
  EXPECT_TRUE(is_trusted({other, "atol: 1", {}}));
}

TEST_F(Trust, CoversTheFilesThatItNames) {
  const std::string path = write("settings", ""), rules = write("rules", "x");
  ASSERT_TRUE(trust({path, "", {rules}}).ok());
  EXPECT_TRUE(is_trusted({path, "", {rules}}));
  write("rules", "y");
  EXPECT_FALSE(is_trusted({path, "", {rules}}));
}

TEST_F(Trust, IsNotReadOutOfADamagedStore) {
  const std::string path = write("settings", "");
  ASSERT_TRUE(trust({path, "", {}}).ok());
  const fs::path store = folder_ / "state" / "tensordiff" / "trusted";
  EXPECT_EQ(fs::status(store).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  std::ofstream(store) << "nonsense\n\n a b c\n";
  EXPECT_FALSE(is_trusted({path, "", {}}));
}

TEST_F(Trust, NeedsAPlaceToBeKept) {
  setenv("XDG_STATE_HOME", write("file", "").c_str(), 1);
  EXPECT_FALSE(trust({write("settings", ""), "", {}}).ok());
}

}  // namespace
}  // namespace tensordiff
