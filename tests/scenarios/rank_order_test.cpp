// Heads of keys and values that several ranks share, in the right order and in a wrong one.

#include <gtest/gtest.h>

#include "align/view.h"
#include "diagnose/hypotheses/rank_order.h"
#include "tensor/test_views.h"
#include "test_compare.h"

namespace tensordiff {
namespace {

// Two heads of keys on four ranks, beside queries that each rank has a part of.
Report compare(const std::vector<uint64_t>& heads) {
  const View key = noise_view({16, 24}, 1);
  const View query = noise_view({32, 24}, 2);
  Catalog whole, ranks;
  whole.tensors.push_back({"layers.0.self_attn.k_proj.weight", key, ""});
  whole.tensors.push_back({"layers.0.self_attn.q_proj.weight", query, ""});
  for (uint64_t rank = 0; rank < heads.size(); ++rank) {
    const std::string at = fmt::format("rank_{}/layers.0.self_attn.", rank);
    const View part = narrowed(key, 0, 8 * heads[rank], 8);
    const View own = narrowed(query, 0, 8 * rank, 8);
    ranks.tensors.push_back({at + "k_proj.weight", stored_as(part, part.shape), ""});
    ranks.tensors.push_back({at + "q_proj.weight", stored_as(own, own.shape), ""});
  }
  return compare_catalogs(std::move(whole), std::move(ranks));
}

TEST(RankOrder, IsToldWhereNeighboursShouldShare) {
  const Report report = compare({0, 1, 0, 1});
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_EQ(report.findings[0].code, "block_permutation");
  EXPECT_EQ(report.findings[0].explanation,
            "the ranks of B are in the wrong order: they hold the pieces [0, 1, 0, 1], not "
            "[0, 0, 1, 1]; in that order they match");
}

TEST(RankOrder, IsNotToldWhereNeighboursDoShare) {
  const Report report = compare({0, 0, 1, 1});
  EXPECT_TRUE(report.findings.empty());
  for (const PairRow& row : report.pairs) EXPECT_EQ(row.comparison.status, Status::equal);
}

}  // namespace
}  // namespace tensordiff
