#include "cli/test_command.h"

namespace tensordiff {
namespace {

TEST(CompletionsCommand, KnowsEveryCommandAndItsOptions) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Ran ran = run(commands::completions, {shell});
    EXPECT_EQ(ran.status, kSame);
    for (const Command* command : commands::kAll) {
      EXPECT_TRUE(ran.says(command->name)) << shell << " " << command->name;
      for (const std::string_view name : option_names(*command))
        EXPECT_TRUE(ran.says(name)) << shell << " " << name;
    }
  }
  EXPECT_TRUE(run(commands::completions, {"zsh"}).out.starts_with("#compdef tensordiff\n"));
}

TEST(CompletionsCommand, KnowsTheWordsThatOptionsTake) {
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    const Ran ran = run(commands::completions, {shell});
    for (const char* words : {"auto always never", "suspicious dangerous unreadable",
                              "layer name similarity difference size", "text json python"})
      EXPECT_TRUE(ran.says(words)) << shell << " " << words;
  }
}

TEST(CompletionsCommand, RefusesOtherShells) {
  EXPECT_EQ(run(commands::completions, {}).status, kTrouble);
  const Ran ran = run(commands::completions, {"tcsh"});
  EXPECT_EQ(ran.status, kTrouble);
  EXPECT_TRUE(ran.complains("'tcsh' is not one of bash, zsh, fish")) << ran.err;
}

}  // namespace
}  // namespace tensordiff
