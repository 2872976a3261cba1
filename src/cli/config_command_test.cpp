#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/test_command.h"

namespace tensordiff {
namespace {

// A folder of its own for what the user and the working folder have set, while it lives.
class Settled {
 public:
  explicit Settled(const std::string& users)
      : before_(std::filesystem::current_path()),
        folder_(std::filesystem::path(testing::TempDir()) / "config_command_test") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ / "tensordiff");
    std::ofstream(folder_ / "tensordiff/config.yaml") << users;
    std::filesystem::current_path(folder_);
    setenv("XDG_CONFIG_HOME", folder_.c_str(), 1);
    setenv("XDG_STATE_HOME", folder_.c_str(), 1);
  }
  ~Settled() {
    unsetenv("XDG_CONFIG_HOME");
    unsetenv("XDG_STATE_HOME");
    std::filesystem::current_path(before_);
  }

 private:
  std::filesystem::path before_, folder_;
};

TEST(ConfigCommand, SaysWhatIsInForceAndWhereItComesFrom) {
  const Settled settled("atol: 1e-3\n");
  const Ran ran = run_as_is(commands::config, {"-o", "json", "--atol", "2e-3"});
  EXPECT_EQ(ran.status, kSame) << ran.err;
  const Result<Json> json = Json::parse(ran.out);
  ASSERT_TRUE(json.ok());
  const Json& settings = json.value()["settings"];
  ASSERT_EQ(settings.array().size(), 2U) << ran.out;
  EXPECT_EQ(settings[0]["value"].string(), "1e-3");
  EXPECT_TRUE(settings[0]["from"].string().ends_with("config.yaml:1"));
  EXPECT_EQ(settings[0]["overridden"].boolean(), true);
  EXPECT_EQ(settings[1]["from"].string(), "command line");
  EXPECT_EQ(settings[1]["overridden"].boolean(), false);
}

TEST(ConfigCommand, SaysThatNothingIsSet) {
  const Settled settled("");
  EXPECT_TRUE(run_as_is(commands::config, {}).says("Nothing is set"));
}

TEST(ConfigCommand, KnowsTwoActions) {
  const Settled settled("");
  EXPECT_TRUE(run_as_is(commands::config, {"believe"}).complains("is not one of trust, untrust"));
  EXPECT_TRUE(run_as_is(commands::config, {"trust", "a", "b"}).complains("takes one folder"));
}

}  // namespace
}  // namespace tensordiff
