#include "cli/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>

namespace tensordiff {
namespace {

// Sets a variable of the environment while it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before) before_ = before;
    setenv(name, value, 1);
  }
  ~Variable() { before_ ? setenv(name_, before_->c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(Terminal, IsAsWideAsColumnsSays) {
  for (const auto& [columns, width] : {std::pair<const char*, std::size_t>{"80", 80},
                                       {"10", 60},
                                       {"4000", 4000},
                                       {"0", 1000},
                                       {"wide", 1000}}) {
    const Variable variable("COLUMNS", columns);
    EXPECT_EQ(output_width(), width) << columns;
  }
}

TEST(Terminal, ColoursOnlyWhatIsAskedFor) {
  Settings settings;
  settings.out = "file";
  EXPECT_FALSE(wants_color(settings));
  settings.color = ColorChoice::always;
  const Variable variable("NO_COLOR", "1");
  EXPECT_TRUE(wants_color(settings));
  settings.color = ColorChoice::automatic;
  EXPECT_FALSE(wants_color(settings));
}

TEST(Terminal, WritesToAFileAlsoWhenQuiet) {
  Settings settings;
  settings.out = testing::TempDir() + "terminal_test.txt";
  settings.quiet = true;
  EXPECT_TRUE(deliver("text\n", settings).ok());
  std::ostringstream text;
  text << std::ifstream(settings.out).rdbuf();
  EXPECT_EQ(text.str(), "text\n");
}

TEST(Terminal, SaysThatADiskIsFull) {
  Settings settings;
  settings.out = "/dev/full";
  EXPECT_EQ(deliver("text", settings).error().message(),
            "/dev/full: writing failed, the output is incomplete: No space left on device");
  settings.out = "/no/such/folder/x";
  EXPECT_EQ(deliver("text", settings).error().message(),
            "/no/such/folder/x: cannot write it: No such file or directory");
}

}  // namespace
}  // namespace tensordiff
