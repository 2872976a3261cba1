#include "report/baseline.h"

#include <gtest/gtest.h>

#include "report/renderer.h"
#include "report/sample_report.h"

namespace tensordiff {
namespace {

Baseline baseline_of(const Report& report) {
  return Baseline::parse(renderers::report.render(report, {})).value();
}

TEST(Baseline, HoldsForTheSameResult) {
  const Report report = sample_report();
  const BaselineDelta delta = baseline_of(report).delta(report);
  EXPECT_TRUE(delta.holds());
  EXPECT_EQ(delta.known, 5U);  // off, odd, cut, gone, new
  EXPECT_EQ(delta.gone, 0U);
}

TEST(Baseline, NamesWhatIsNewAndWhatHasGrown) {
  const Baseline baseline = baseline_of(sample_report());
  Report report = sample_report();
  report.pairs[0].comparison.status = Status::different;
  report.pairs[2].comparison.diff.rel_l2 = 0.25;
  report.pairs[3].comparison.status = Status::close;
  report.only_b.push_back({{"newer", DType::f32, {1}, ""}});
  const BaselineDelta delta = baseline.delta(report);
  EXPECT_EQ(delta.added, (std::vector<std::string>{"same", "newer"}));
  EXPECT_EQ(delta.grown, std::vector<std::string>{"off: relative L2 error 0.25, was 0.125"});
  EXPECT_EQ(delta.gone, 1U);
  EXPECT_EQ(delta.known, 3U);
}

TEST(Baseline, CountsNanAsGrowth) {
  const Baseline baseline = baseline_of(sample_report());
  Report report = sample_report();
  report.pairs[2].comparison.diff.nonfinite_mismatch = 4;
  EXPECT_EQ(baseline.delta(report).grown,
            std::vector<std::string>{"off: NaN or infinity out of step at 4 places, was 0"});
}

TEST(Baseline, RefusesOtherFiles) {
  EXPECT_EQ(Baseline::parse("[]").error().message(),
            "not a result of -o report: its schema is not tensordiff.report/1");
  EXPECT_FALSE(Baseline::parse("{").ok());
}

}  // namespace
}  // namespace tensordiff
