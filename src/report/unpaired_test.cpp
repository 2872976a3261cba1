#include "report/unpaired.h"

#include <gtest/gtest.h>

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

Catalog named(const std::string& name) {
  Catalog catalog;
  catalog.tensors.push_back({name, f32_view({2}, {1, 3}), ""});
  return catalog;
}

TEST(Unpaired, IsADifferenceUnlessItWasNotDumped) {
  const Catalog a = named("x"), b = named("y");
  const std::vector<Leftover> left = {{.tensor = 0, .nearest = 0}};
  const auto strict = unpaired_rows(a, b, left, {});
  EXPECT_TRUE(strict[0].is_difference());
  EXPECT_EQ(strict[0].nearest, "y");
  const auto dumps = unpaired_rows(a, b, left, {.stats = true, .not_dumped = true});
  EXPECT_FALSE(dumps[0].is_difference());
  EXPECT_EQ(dumps[0].stats.mean, 2);
}

// What only one of two dumps has does not change the verdict.
TEST(Unpaired, OfDumpsIsCoverage) {
  Report report;
  report.pairs.resize(1);
  report.pairs[0].comparison.status = Status::identical;
  report.only_a = unpaired_rows(named("x"), named("y"), {{.tensor = 0}}, {.not_dumped = true});
  EXPECT_NE(summarise(report).verdict, Conclusion::different);
  report.only_a[0].not_dumped = false;
  EXPECT_EQ(summarise(report).verdict, Conclusion::different);
}

}  // namespace
}  // namespace tensordiff
