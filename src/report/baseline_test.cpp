#include "report/baseline.h"

#include <gtest/gtest.h>

#include "report/renderer.h"
#include "report/sample_report.h"

namespace tensordiff {
namespace {

Baseline baseline_of(const Report& report) {
  return Baseline::parse(renderers::report.render(report, {})).value();
}

// Every pair of it could be compared.
Report readable_report() {
  Report report = sample_report();
  report.pairs.pop_back();
  return report;
}

TEST(Baseline, HoldsForTheSameResult) {
  Report report = readable_report();
  baseline_of(report).judge(report);
  EXPECT_TRUE(report.baseline->holds());
  EXPECT_EQ(report.baseline->known, 4U);  // off, odd, gone, new
  EXPECT_EQ(report.baseline->gone, 0U);
  EXPECT_EQ(report.summary.verdict, Conclusion::known);
}

TEST(Baseline, TellsOneStoryInEveryOutput) {
  Report report = readable_report();
  baseline_of(report).judge(report);
  EXPECT_TRUE(
      renderers::text.render(report, {.brief = true}).starts_with("KNOWN DIFFERENCES ONLY"));
  EXPECT_NE(renderers::markdown.render(report, {}).find("known differences only"),
            std::string::npos);
  const std::string junit = renderers::junit.render(report, {});
  EXPECT_NE(junit.find("failures=\"0\" errors=\"0\" skipped=\"4\""), std::string::npos) << junit;
  EXPECT_NE(junit.find("<skipped message=\"known difference: "), std::string::npos) << junit;

  report.only_b.push_back({{"newer", DType::f32, {1}, ""}});
  baseline_of(readable_report()).judge(report);
  EXPECT_EQ(report.summary.verdict, Conclusion::different);
  const std::string worse = renderers::junit.render(report, {});
  EXPECT_NE(worse.find("failures=\"1\" errors=\"0\" skipped=\"4\""), std::string::npos) << worse;
}

TEST(Baseline, KnowsNothingThatCannotBeRead) {
  Report report = sample_report();
  baseline_of(report).judge(report);
  EXPECT_EQ(report.summary.verdict, Conclusion::trouble);
  EXPECT_FALSE(report.pairs[4].novelty);
  EXPECT_NE(renderers::junit.render(report, {}).find("errors=\"1\""), std::string::npos);
}

TEST(Baseline, NamesWhatIsNewAndWhatHasGrown) {
  const Baseline baseline = baseline_of(sample_report());
  Report report = sample_report();
  report.pairs[0].comparison.status = Status::different;
  report.pairs[2].comparison.diff.rel_l2 = 0.25;
  report.pairs[3].comparison.status = Status::close;
  report.only_b.push_back({{"newer", DType::f32, {1}, ""}});
  baseline.judge(report);
  const BaselineDelta& delta = *report.baseline;
  EXPECT_EQ(delta.added, (std::vector<std::string>{"same", "newer"}));
  EXPECT_EQ(delta.grown, std::vector<std::string>{"off: relative L2 error 0.25, was 0.125"});
  EXPECT_EQ(delta.gone, 1U);
  EXPECT_EQ(delta.known, 2U);
}

TEST(Baseline, CountsNanAsGrowth) {
  const Baseline baseline = baseline_of(sample_report());
  Report report = sample_report();
  report.pairs[2].comparison.diff.nonfinite_mismatch = 4;
  baseline.judge(report);
  EXPECT_EQ(report.baseline->grown,
            std::vector<std::string>{"off: NaN/Inf mismatch at 4 elements, was 0"});
}

TEST(Baseline, RefusesOtherFiles) {
  EXPECT_EQ(Baseline::parse("[]").error().message(),
            "not a result of -o report: its schema is not tensordiff.report/2");
  EXPECT_FALSE(Baseline::parse("{").ok());
}

}  // namespace
}  // namespace tensordiff
