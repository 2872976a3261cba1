// Each group of options: what its rows do to the settings, and what they refuse.

#include <algorithm>
#include <fstream>

#include "base/text.h"
#include "cli/test_command.h"
#include "report/style.h"

namespace tensordiff {
namespace {

// Applies one option of a group.
Result<void> apply(const OptionGroup& group, std::string_view flag, std::string_view argument,
                   Settings& settings) {
  for (const Option& option : group.options)
    if (option.flags.substr(option.flags.find("--")) == flag)
      return option.apply(settings, option.argument.empty() ? flag : argument);
  return Error("the group has no {}", flag);
}

Settings with(const OptionGroup& group, std::string_view flag, std::string_view argument = "") {
  Settings settings;
  const Result<void> done = apply(group, flag, argument, settings);
  EXPECT_TRUE(done.ok()) << flag << ": " << (done.ok() ? "" : done.error().message());
  return settings;
}

std::string fault(const OptionGroup& group, std::string_view flag, std::string_view argument) {
  Settings settings;
  const Result<void> done = apply(group, flag, argument, settings);
  return done.ok() ? "" : done.error().message();
}

std::string file_with(const std::string& text) {
  const std::string path = testing::TempDir() + "options_test_file";
  std::ofstream(path) << text;
  return path;
}

TEST(Options, OfInput) {
  const OptionGroup& group = option_groups::input;
  EXPECT_EQ(with(group, "--path", "model.").request.paths, std::vector<std::string>{"model."});
  EXPECT_EQ(with(group, "--ignore-keys-regex", "bias$").request.ignore_regex, "bias$");
}

TEST(Options, OfWhatIsCompared) {
  const OptionGroup& group = option_groups::what;
  EXPECT_TRUE(with(group, "--stats").stats);
  EXPECT_TRUE(with(group, "--single").single);
  EXPECT_TRUE(with(group, "--shape-only").request.shape_only);
  EXPECT_TRUE(with(group, "--brief").render.brief);
  EXPECT_TRUE(with(group, "--exit-zero").exit_zero);
}

TEST(Options, OfTolerance) {
  const OptionGroup& group = option_groups::tolerance;
  const CompareOptions epsilon = with(group, "--epsilon", "1e-3").request.compare;
  EXPECT_EQ(epsilon.atol, 1e-3);
  EXPECT_EQ(epsilon.rtol, 0);
  const CompareOptions rtol = with(group, "--rtol", "0.5").request.compare;
  EXPECT_EQ(rtol.rtol, 0.5);
  EXPECT_EQ(rtol.atol, std::nullopt);
  EXPECT_EQ(with(group, "--atol", "2").request.compare.atol, 2);
  EXPECT_FALSE(with(group, "--no-equal-nan").request.compare.equal_nan);
  EXPECT_TRUE(with(group, "--equal-nan").request.compare.equal_nan);
  EXPECT_EQ(with(group, "--noise", "again.zip").request.noise, "again.zip");
  EXPECT_NE(fault(group, "--atol", "-1"), "");
  EXPECT_NE(fault(group, "--tolerance-file", "nowhere.yaml"), "");
  EXPECT_NE(fault(group, "--tolerance-file", file_with("- 1")), "");
}

TEST(Options, OfDiagnosis) {
  const OptionGroup& group = option_groups::diagnosis;
  EXPECT_FALSE(with(group, "--no-diagnose").request.diagnose.enabled);
  EXPECT_TRUE(with(group, "--diagnose").request.diagnose.enabled);
  EXPECT_TRUE(with(group, "--explain").request.diagnose.explain);
  EXPECT_EQ(with(group, "--weights", "m.pt").request.weights, "m.pt");
  EXPECT_EQ(with(group, "--order", file_with("b\na\n")).request.diagnose.order,
            (std::vector<std::string>{"b", "a"}));
  EXPECT_NE(fault(group, "--order", "nowhere.txt"), "");
}

TEST(Options, OfOutput) {
  const OptionGroup& group = option_groups::output;
  EXPECT_EQ(with(group, "--output", "junit").output, "junit");
  EXPECT_EQ(with(group, "--markdown-output").output, "markdown");
  EXPECT_TRUE(with(group, "--generate-report").full_report);
  EXPECT_TRUE(with(group, "--include-charts").render.charts);
  EXPECT_TRUE(with(group, "--review-friendly").render.review);
  EXPECT_TRUE(with(group, "--verbose").render.verbose);
  EXPECT_EQ(with(group, "--top", "7").render.top, 7U);
  EXPECT_EQ(with(group, "--sort", "size").render.sort, Sort::size);
  EXPECT_EQ(with(group, "--sort-by-change-magnitude").render.sort, Sort::difference);
  const RenderOptions shown = with(group, "--show", "identical,unpaired").render;
  EXPECT_EQ(shown.show, (std::set<Status>{Status::identical, Status::equal}));
  EXPECT_TRUE(shown.show_unpaired);
  EXPECT_FALSE(with(group, "--show", "error").render.show_unpaired);
  EXPECT_EQ(with(group, "--show", "different").render.show,
            (std::set<Status>{Status::different, Status::incomparable}));
  EXPECT_NE(fault(group, "--output", "pdf"), "");
  EXPECT_NE(fault(group, "--show", "all"), "");
  EXPECT_NE(fault(group, "--baseline", file_with("{}")), "");
}

TEST(Options, OfPairing) {
  const OptionGroup& group = option_groups::pairing;
  EXPECT_FALSE(with(group, "--align", "none").request.align.enabled);
  EXPECT_FALSE(with(group, "--tp", "none").request.tp.enabled);
  EXPECT_EQ(with(group, "--tp", "4").request.tp.ranks, 4U);
  EXPECT_NE(fault(group, "--match", "magic"), "");
  EXPECT_NE(fault(group, "--fuzzy-threshold", "2"), "");
  EXPECT_NE(fault(group, "--dims", "b s"), "");
}

TEST(Options, OfSpeed) {
  const OptionGroup& group = option_groups::speed;
  with(group, "--memory-limit", "256MiB");
  with(group, "--stream");
  EXPECT_NE(fault(group, "--memory-limit", "much"), "");
}

TEST(Options, OfTheServer) {
  const OptionGroup& group = option_groups::server;
  EXPECT_EQ(with(group, "--port", "0").serve.port, 0);
  EXPECT_EQ(with(group, "--port", "8080").serve.ports, 1);
  EXPECT_FALSE(with(group, "--no-open").open_browser);
  EXPECT_EQ(with(group, "--listen", "0.0.0.0").serve.listen, "0.0.0.0");
  EXPECT_EQ(with(group, "--upload-limit", "1GB").serve.upload_limit, 1000000000U);
  EXPECT_TRUE(with(group, "--legacy-open").serve.legacy_open);
  EXPECT_NE(fault(group, "--port", "70000"), "");
}

TEST(Options, OfEachAnalysis) {
  const OptionGroup& group = option_groups::analyses;
  const Settings settings = with(group, "--memory-analysis");
  ASSERT_EQ(settings.request.analyze.wanted.size(), 1U);
  EXPECT_EQ(with(group, "--device", "h200").request.analyze.device, "h200");
  EXPECT_NE(fault(group, "--threshold", "nonsense"), "");
}

TEST(Options, OfEveryCommand) {
  const OptionGroup& group = option_groups::common;
  EXPECT_EQ(with(group, "--format", "npz").open.format, "npz");
  EXPECT_EQ(with(group, "--limit-size", "2k").open.limits.input_bytes_max, 2000U);
  EXPECT_EQ(with(group, "--out", "x").out, "x");
  EXPECT_EQ(with(group, "--color", "never").color, ColorChoice::never);
  EXPECT_EQ(with(group, "--threads", "3").threads, 3U);
  EXPECT_TRUE(with(group, "--quiet").quiet);
  EXPECT_NE(fault(group, "--format", "docx"), "");
  EXPECT_EQ(fault(group, "--limit", "pickle"), "not of the form NAME=N");
}

TEST(RunCommand, NamesTheOptionThatWasMeant) {
  const Ran ran = run(commands::compare, {"a", "b", "--epsilom", "1"});
  EXPECT_EQ(ran.status, kTrouble);
  EXPECT_EQ(ran.err,
            "tensordiff: unknown option '--epsilom'; did you mean '--epsilon'?\n"
            "try: tensordiff compare --help\n");
  EXPECT_TRUE(run_as_is(commands::compare, {"--no-config", "a", "b", "--rtol"})
                  .complains("--rtol needs a value"));
}

TEST(RunCommand, ShowsHelpWithEachOption) {
  for (const Command* command : commands::kAll) {
    const Ran ran = run(*command, {"--help"});
    EXPECT_EQ(ran.status, kSame);
    EXPECT_TRUE(ran.says(command->usage)) << command->name;
    for (const std::string_view name : command->usual) EXPECT_TRUE(ran.says(name)) << name;
    const Ran all = run(*command, {"--help-all"});
    for (const std::string_view name : option_names(*command)) EXPECT_TRUE(all.says(name)) << name;
  }
}

// Of an old terminal: 24 lines of 80 columns.
TEST(RunCommand, ShowsTheUsualOptionsOnTwoScreens) {
  const std::string text = run(commands::compare, {"--help"}).out;
  EXPECT_LE(std::ranges::count(text, '\n'), 48) << text;
  for (const Command* command : commands::kAll) {
    const Ran all = run(*command, {"--help-all"});
    for (const std::string_view line : split(all.out, '\n'))
      EXPECT_TRUE(columns(line) <= 80 || line.starts_with("usage: ")) << line;
  }
}

// The last one wins.
TEST(RunCommand, TakesOptionsInTheirOrder) {
  const std::string a = data("formats/pair_f32_a.pth"), b = data("formats/pair_f32_b.pth");
  EXPECT_EQ(run(commands::compare, {a, b, "--epsilon", "0", "--epsilon", "9", "-q"}).status, kSame);
  EXPECT_EQ(run(commands::compare, {a, b, "--epsilon", "9", "--epsilon", "0", "-q"}).status,
            kDifferent);
}

}  // namespace
}  // namespace tensordiff
