#include "report/auxiliary.h"

#include "report/sample_report.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

TEST(ListAuxiliary, TakesWhatIsNoWeightOutOfTheLists) {
  Catalog a, b;
  for (const char* name : {"w", "steps", "epoch"})
    a.tensors.push_back({name, counting_view({2}), ""});
  a.tensors[1].auxiliary = a.tensors[2].auxiliary = "counter";
  b.tensors.push_back({"v", counting_view({2}), ""});
  b.tensors[0].made_from = "int4 (AWQ, groups of 2)";
  Matching matching;
  Report report;
  for (std::size_t i = 0; i < 3; ++i) {
    matching.only_a.push_back({i});
    report.only_a.emplace_back().id.name = a.tensors[i].name;
  }
  list_auxiliary(a, b, matching, report);
  ASSERT_EQ(report.only_a.size(), 1);
  EXPECT_EQ(report.only_a[0].id.name, "w");
  ASSERT_EQ(report.auxiliary_a.size(), 2);
  EXPECT_EQ(report.auxiliary_a[1].id.name, "epoch");
  EXPECT_EQ(report.auxiliary_a[1].why, "counter");
  EXPECT_EQ(report.notes,
            (std::vector<std::string>{"B: 1 weight was dequantized from int4 (AWQ, groups of 2)",
                                      "only in A, not weights: counter (2)"}));
  report.summary = summarise(report);
  EXPECT_EQ(report.summary.verdict, Conclusion::different);
  report.only_a.clear();
  report.pairs.push_back(sample_pair(0, "w", Status::identical));
  EXPECT_EQ(summarise(report).verdict, Conclusion::same);
}

}  // namespace
}  // namespace tensordiff
