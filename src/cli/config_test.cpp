#include "cli/config.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

Result<std::vector<ConfigEntry>> entries(std::string_view text) {
  return options_in(Yaml::parse(text).value(), "folder/.tensordiff.yaml");
}

Settings applied(std::string_view text, const Command& command) {
  Settings settings;
  const Result<void> result = apply_config(entries(text).value(), command, settings);
  EXPECT_TRUE(result.ok()) << result.error().message();
  return settings;
}

TEST(Config, KeysAreOptions) {
  const Settings settings = applied(
      "atol: 1e-3\nstats: true\ndiagnose: no\nthreads: 3\npath: [a., b.]\n"
      "show: [different, error]\noutput: markdown\n",
      commands::compare);
  EXPECT_EQ(settings.request.compare.atol, 1e-3);
  EXPECT_TRUE(settings.stats);
  EXPECT_FALSE(settings.request.diagnose.enabled);
  EXPECT_EQ(settings.threads, 3U);
  EXPECT_EQ(settings.request.paths, (std::vector<std::string>{"a.", "b."}));
  EXPECT_FALSE(settings.render.show_unpaired);
  EXPECT_EQ(settings.output, "markdown");
}

TEST(Config, GivesACommandWhatItKnows) {
  const Settings settings = applied("atol: 1\nstats: true\noutput: markdown\n", commands::show);
  EXPECT_TRUE(settings.stats);
  EXPECT_EQ(settings.request.compare.atol, std::nullopt);
  EXPECT_EQ(settings.output, "text");
}

TEST(Config, FilesLieBesideIt) {
  EXPECT_EQ(entries("tolerance-file: t.yaml").value()[0].values[0], "folder/t.yaml");
  EXPECT_EQ(entries("tolerance-file: /t.yaml").value()[0].values[0], "/t.yaml");
}

TEST(Config, SaysWhatIsWrongAndWhere) {
  const auto error = [](std::string_view text) { return entries(text).error().message(); };
  EXPECT_EQ(error("atol: 1\nattol: 2"),
            "line 2: unknown key 'attol'; keys are the options of compare; did you mean 'atol'?");
  EXPECT_EQ(error("stats: maybe"), "line 1: true or false is expected here");
  EXPECT_EQ(error("atol: {x: 1}"), "line 1: a value is expected here");
  EXPECT_EQ(error("- atol"), "line 1: keys and values are expected here");
  Settings settings;
  const Result<void> bad = apply_config(entries("atol: tiny").value(), commands::compare, settings);
  EXPECT_EQ(bad.error().message(), "folder/.tensordiff.yaml: line 1: atol: 'tiny' is not a number");
}

// A folder may come from somebody else: its settings must not make us write, nor trust its files.
TEST(Config, WritesNothingAndLiftsNoLimit) {
  for (const std::string_view key : {"out", "save-pairs", "limit", "limit-size"})
    EXPECT_EQ(entries(std::string(key) + ": x").error().message(),
              "line 1: '" + std::string(key) + "' is for the command line only");
}

// Nor run anything.
TEST(Config, RunsNothing) {
  for (const char* text : {"match: exec:evil", "match: [auto, exec:evil]"})
    EXPECT_EQ(entries(text).error().message(),
              "line 1: a program is named on the command line only");
  EXPECT_TRUE(entries("match: [exact, fuzzy]").ok());
}

}  // namespace
}  // namespace tensordiff
