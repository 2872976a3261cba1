#include "cli/manual.h"

#include <gtest/gtest.h>

#include <set>

#include "base/text.h"

namespace tensordiff {
namespace {

TEST(Manual, HasEveryOptionOfACommand) {
  for (const Command* command : commands::kAll) {
    const std::string page = command_manual(*command);
    for (const std::string_view name : option_names(*command)) {
      std::string flag = "\\-\\-";
      for (const char c : name) flag += c == '-' ? "\\-" : std::string(1, c);
      EXPECT_NE(page.find(flag), std::string::npos) << command->name << " " << name;
    }
  }
}

TEST(Manual, NamesEveryCommand) {
  for (const Command* command : commands::kAll)
    EXPECT_NE(program_manual().find(".B " + std::string(command->name) + "\n"), std::string::npos);
}

// A line that starts with a dot or a quote and is no request would be lost when it is shown.
TEST(Manual, StartsLinesOnlyWithRequestsOfItsOwn) {
  const std::set<std::string_view> requests = {".TH", ".SH", ".SS", ".TP",
                                               ".B",  ".BR", ".I",  ".br"};
  const std::string page = command_manual(commands::compare);
  for (const std::string_view line : split(page, '\n')) {
    if (!line.starts_with('.') && !line.starts_with('\'')) continue;
    EXPECT_TRUE(requests.contains(line.substr(0, line.find(' ')))) << line;
  }
}

}  // namespace
}  // namespace tensordiff
