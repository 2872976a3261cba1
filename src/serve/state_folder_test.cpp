#include "serve/state_folder.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

#include "serve/guard.h"

namespace fs = std::filesystem;

namespace tensordiff::serve {
namespace {

// A folder that ends with the test.
class StateFolderTest : public testing::Test {
 protected:
  StateFolderTest() {
    std::string name = (fs::temp_directory_path() / "serve-test-XXXXXX").string();
    folder = fs::canonical(mkdtemp(name.data()));
  }
  ~StateFolderTest() override { fs::remove_all(folder); }
  fs::path folder;
};

// A variable of the environment for as long as this lives; no value: it is not set.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    value ? setenv(name, value, 1) : unsetenv(name);
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;
  ~Environment() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

unsigned mode_of(const fs::path& path) {
  struct stat facts {};
  return stat(path.c_str(), &facts) == 0 ? facts.st_mode & 07777 : 0;
}

std::string content_of(const fs::path& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

TEST_F(StateFolderTest, OneServerHasItAndAnotherItsOwn) {
  const StateFolder first = StateFolder::open((folder / "state").string()).value();
  EXPECT_FALSE(first.passing());
  EXPECT_EQ(mode_of(first.path()), 0700U);
  fs::path passing;
  {
    const StateFolder second = StateFolder::open((folder / "state").string()).value();
    EXPECT_TRUE(second.passing());
    EXPECT_NE(second.why_passing().find("another server has"), std::string::npos);
    passing = second.path();
    EXPECT_TRUE(fs::exists(passing));
    EXPECT_NE(first.token().value(), second.token().value());
  }
  EXPECT_FALSE(fs::exists(passing));
}

TEST_F(StateFolderTest, NeverChangesTheModeOfAFolderThatWasThere) {
  const fs::path shared = folder / "shared";
  fs::create_directories(shared);
  fs::permissions(shared, static_cast<fs::perms>(0755));
  const StateFolder state = StateFolder::open(shared.string()).value();
  EXPECT_EQ(mode_of(shared), 0755U);
  ASSERT_TRUE(state.token().ok());
  EXPECT_EQ(mode_of(shared / "token"), 0600U);
}

TEST_F(StateFolderTest, TheTokenLastsUnlessSomebodyElseCouldReadIt) {
  const std::string path = (folder / "state").string();
  const std::string token = StateFolder::open(path).value().token().value();
  EXPECT_EQ(token.size(), random_token().size());
  EXPECT_EQ(mode_of(folder / "state" / "token"), 0600U);
  EXPECT_EQ(StateFolder::open(path).value().token().value(), token);
  fs::permissions(folder / "state" / "token", static_cast<fs::perms>(0644));
  const std::string second = StateFolder::open(path).value().token().value();
  EXPECT_NE(second, token);
  EXPECT_EQ(mode_of(folder / "state" / "token"), 0600U);
  for (const char* broken : {"", "short", "<script>aaaaaaaaaaaaaaaaaaaaaaaa"}) {
    std::ofstream(folder / "state" / "token") << broken;
    EXPECT_EQ(StateFolder::open(path).value().token().value().size(), token.size()) << broken;
  }
}

TEST_F(StateFolderTest, TheRedirectIsPrivateAndEndsWithTheServer) {
  fs::path page;
  {
    const StateFolder state = StateFolder::open((folder / "state").string()).value();
    page = state.write_redirect("http://127.0.0.1:5000/#t=abc&s=x").value();
    EXPECT_EQ(mode_of(page), 0600U);
    const std::string text = content_of(page);
    EXPECT_NE(text.find("content=\"0;url=http://127.0.0.1:5000/#t=abc&amp;s=x\""),
              std::string::npos)
        << text;
  }
  EXPECT_FALSE(fs::exists(page));
}

TEST_F(StateFolderTest, AFolderThatIsNamedAndCannotBeUsedIsAnError) {
  std::ofstream(folder / "file") << "x";
  fs::create_directories(folder / "open");
  fs::permissions(folder / "open", static_cast<fs::perms>(0777));
  for (const std::string& path : {(folder / "file").string(), (folder / "file" / "x").string(),
                                  (folder / "open").string(), std::string("/proc/none/x")}) {
    const Result<StateFolder> state = StateFolder::open(path);
    ASSERT_FALSE(state.ok()) << path;
    EXPECT_NE(state.error().message().find(path), std::string::npos) << state.error().message();
    EXPECT_NE(state.error().message().find("--state"), std::string::npos);
  }
  EXPECT_EQ(mode_of(folder / "open"), 0777U);
}

TEST_F(StateFolderTest, WithoutAHomeSessionsEndWithTheServer) {
  const Environment home("HOME", nullptr), state("XDG_STATE_HOME", nullptr);
  const StateFolder passing = StateFolder::open("").value();
  EXPECT_TRUE(passing.passing());
  EXPECT_NE(passing.why_passing().find("HOME"), std::string::npos);
  const Environment unusable("HOME", "/proc/none");
  EXPECT_TRUE(StateFolder::open("").value().passing());
}

TEST_F(StateFolderTest, AMissingFolderForTemporaryFilesIsSaidSo) {
  const Environment home("HOME", nullptr), state("XDG_STATE_HOME", nullptr);
  const Environment temporary("TMPDIR", (folder / "none").c_str());
  const Result<StateFolder> passing = StateFolder::open("");
  ASSERT_FALSE(passing.ok());
  EXPECT_NE(passing.error().message().find("TMPDIR"), std::string::npos);
}

TEST_F(StateFolderTest, WhatAKilledServerLeftIsSwept) {
  const Environment temporary("TMPDIR", folder.c_str());
  const Environment home("HOME", nullptr), state("XDG_STATE_HOME", nullptr);
  const fs::path left = folder / "tensordiff-state-left";
  fs::create_directories(left / "uploads");
  std::ofstream(left / "lock") << "";
  fs::last_write_time(left / "lock", fs::file_time_type::clock::now() - std::chrono::hours(1));
  const StateFolder first = StateFolder::open("").value();
  EXPECT_FALSE(fs::exists(left));
  fs::last_write_time(first.path() / "lock",
                      fs::file_time_type::clock::now() - std::chrono::hours(1));
  const StateFolder second = StateFolder::open("").value();
  EXPECT_TRUE(fs::exists(first.path())) << "the folder of a server that runs";
}

}  // namespace
}  // namespace tensordiff::serve
