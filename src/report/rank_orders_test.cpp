#include "report/rank_orders.h"

#include <gtest/gtest.h>

#include "report/sample_report.h"

namespace tensordiff {
namespace {

// Pairs that were gathered from four ranks of one side, whose blocks are in this order.
Report gathered(char side, std::vector<uint64_t> source) {
  Report report;
  for (std::size_t i = 0; i < 2; ++i) {
    report.pairs.push_back(sample_pair(i, "w" + std::to_string(i), Status::different));
    report.pairs[i].steps = {{side, Op::concat, {i, 4, 1}}};
    Finding finding;
    finding.code = "block_permutation";
    finding.pair = i;
    finding.explanation = "blocks are in another order along axis " + std::to_string(i);
    finding.parameters = {{"blocks", 4.0}, {"source", source}};
    report.findings.push_back(finding);
  }
  return report;
}

TEST(RankOrders, AreToldInTheSameWordsOfEveryPair) {
  Report report = gathered('b', {2, 0, 1, 3});
  name_rank_orders(report);
  for (const Finding& finding : report.findings)
    EXPECT_EQ(finding.explanation,
              "the ranks of B are in the wrong order: ranks 0 to 3 hold the pieces [2, 0, 1, 3]");
  report = gathered('a', {2, 0, 1, 3});
  name_rank_orders(report);
  EXPECT_EQ(report.findings[0].explanation,
            "the ranks of A are in the wrong order: ranks 0 to 3 hold the pieces [1, 2, 0, 3]");
}

TEST(RankOrders, LeavesBlocksThatAreNoRanks) {
  Report report = gathered('b', {1, 0});  // Two halves, of four ranks.
  const std::string before = report.findings[0].explanation;
  name_rank_orders(report);
  EXPECT_EQ(report.findings[0].explanation, before);
  report = gathered('b', {0, 2, 1, 3});
  report.pairs[0].steps.clear();
  name_rank_orders(report);
  EXPECT_EQ(report.findings[0].explanation, before);
}

TEST(RankOrders, TellsAnOrderWithoutItsAxis) {
  const Report report = gathered('b', {0, 2, 1, 3});
  EXPECT_EQ(block_order_text(report.findings[0]),
            "4 blocks are in the order [0, 2, 1, 3], in rows or columns");
  EXPECT_EQ(block_order_text(Finding{}), "");
}

}  // namespace
}  // namespace tensordiff
