#include <gtest/gtest.h>

#include "report/report.h"

namespace tensordiff {
namespace {

Report with(std::initializer_list<Status> statuses) {
  Report report;
  for (const Status status : statuses) report.pairs.emplace_back().comparison.status = status;
  return report;
}

TEST(Summary, CountsAndSaysTheWorst) {
  EXPECT_EQ(summarise(with({Status::identical, Status::equal})).verdict, Conclusion::same);
  EXPECT_EQ(summarise(with({Status::identical, Status::close})).verdict, Conclusion::close);
  EXPECT_EQ(summarise(with({Status::close, Status::different})).verdict, Conclusion::different);
  EXPECT_EQ(summarise(with({Status::incomparable})).verdict, Conclusion::different);
  EXPECT_EQ(summarise(with({Status::different, Status::error})).verdict, Conclusion::trouble);
  EXPECT_EQ(summarise(with({Status::close, Status::close})).close, 2U);
}

TEST(Summary, NothingComparedIsTrouble) {
  Report report;
  EXPECT_EQ(summarise(report).verdict, Conclusion::trouble);
  EXPECT_EQ(summarise(report).caveat, "0 tensors compared: both sides are empty");
  report.a.tensors = 1;
  report.only_a.push_back({{"2_query", DType::f32, {}, ""}, true, {}});
  EXPECT_EQ(summarise(report).verdict, Conclusion::trouble);
  EXPECT_EQ(summarise(report).caveat, "0 tensors compared: A and B have no tensor in common");
  report.nothing_selected = "0 tensors selected: --path 'x'";
  EXPECT_EQ(summarise(report).caveat, "0 tensors selected: --path 'x'");
}

TEST(Summary, TensorsThatWereMergedAreSaidToBe) {
  Report report = with({Status::identical, Status::close});
  Report::Unpaired& norm = report.only_a.emplace_back();
  norm.id.name = "bn.running_var";
  EXPECT_EQ(summarise(report).caveat, "");
  norm.merged = true;
  // The tensors are missing all the same: the verdict stays, and says why.
  EXPECT_EQ(summarise(report).verdict, Conclusion::different);
  EXPECT_EQ(summarise(report).caveat, "B has those only in A merged into its weights, which agree");
  report.pairs.emplace_back().comparison.status = Status::different;
  EXPECT_EQ(summarise(report).caveat, "");
}

TEST(Summary, ShapesThatMatchAreNotValuesThatDo) {
  Report report = with({Status::same_shape, Status::same_shape});
  report.shape_only = true;
  EXPECT_EQ(summarise(report).verdict, Conclusion::shapes_match);
  EXPECT_EQ(summarise(report).caveat, "shapes match, values not compared");
  report.pairs.emplace_back().comparison.status = Status::different;
  EXPECT_EQ(summarise(report).verdict, Conclusion::different);
  EXPECT_EQ(summarise(report).caveat, "values not compared");
}

TEST(Summary, AMissingTensorIsADifferenceAndAnAbsentLayerIsNot) {
  Report report = with({Status::identical});
  report.only_a.push_back({{"2_query", DType::f32, {}, ""}, true, {}});
  EXPECT_EQ(summarise(report).verdict, Conclusion::same);
  report.only_a.push_back({{"1_query", DType::f32, {}, ""}, false, {}});
  EXPECT_EQ(summarise(report).verdict, Conclusion::different);
  report.only_b.push_back({{"w", DType::f32, {}, "cut short"}, false, {}});
  EXPECT_EQ(summarise(report).verdict, Conclusion::trouble);
}

}  // namespace
}  // namespace tensordiff
