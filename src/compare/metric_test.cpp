#include "compare/metric.h"

#include <gtest/gtest.h>

namespace tensordiff {
namespace {

TEST(Metric, IsReadByName) {
  Diff diff;
  diff.compared = 8;
  diff.exceeding = 2;
  diff.rel_l2 = 0.5;
  diff.cosine = 0.25;
  EXPECT_EQ(metric_named("rel_l2")->of(diff), 0.5);
  EXPECT_EQ(metric_named("cosine")->of(diff), 0.25);
  EXPECT_EQ(metric_named("exceeding_share")->of(diff), 0.25);
  EXPECT_EQ(metric_named("max_abs")->of(diff), std::nullopt);
  EXPECT_EQ(metric_named("rel-l2"), nullptr);
}

TEST(Metric, KnowsWhichSideIsGood) {
  EXPECT_EQ(metric_named("pcc")->good, Metric::Good::high);
  EXPECT_EQ(metric_named("mse")->good, Metric::Good::low);
  EXPECT_EQ(metric_named("norm_ratio")->good, Metric::Good::near_one);
}

}  // namespace
}  // namespace tensordiff
