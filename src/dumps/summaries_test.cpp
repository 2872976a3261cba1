// Statistics in place of tensors, on one side or both.

#include "dumps/summaries.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "formats/statistics.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Rows = std::vector<float>;

TEST(Summaries, StatisticsAreComparedWithThoseOfTensors) {
  Catalog whole, statistics;
  whole.tensors.push_back({"model.norm", f32_view({1, 2}, {3, -4}), ""});
  statistics.tensors.push_back({"model.norm", f32_view({4}, {3, -4, -0.5F, 5}), ""});
  statistics.tensors[0].made_from = fmt::format("{}{}", kStatisticsMark, kProbeStatistics);
  std::vector<std::string> notes;
  summarise_both(whole, statistics, notes);
  EXPECT_EQ(values_of(whole.tensors[0].view), (Rows{3, -4, -0.5F, 5}));
  ASSERT_EQ(notes.size(), 1U);
}

// TransformerEngine has other ones, under other names.
TEST(Summaries, OfTwoKindsOfStatisticsThoseAreComparedThatBothHave) {
  Catalog a, b;
  a.tensors.push_back({"model.norm", f32_view({4}, {3, -4, -0.5F, 5}), ""});
  a.tensors[0].made_from = fmt::format("{}{}", kStatisticsMark, kProbeStatistics);
  b.tensors.push_back({"model.norm", f32_view({3}, {7, 5, 3}), ""});
  b.tensors[0].made_from = fmt::format("{}l1_norm, l2_norm, max", kStatisticsMark);
  std::vector<std::string> notes;
  summarise_both(a, b, notes);
  EXPECT_EQ(values_of(a.tensors[0].view), (Rows{3, 5}));
  EXPECT_EQ(values_of(b.tensors[0].view), (Rows{3, 5}));
}

TEST(Summaries, AnUnknownStatisticIsNotCompared) {
  Catalog whole, statistics;
  whole.tensors.push_back({"model.norm", f32_view({1, 2}, {3, -4}), ""});
  statistics.tensors.push_back({"model.norm", f32_view({3}, {9, 7, 3}), ""});
  statistics.tensors[0].made_from = fmt::format("{}dynamic_range, l1_norm, max", kStatisticsMark);
  std::vector<std::string> notes;
  summarise_both(whole, statistics, notes);
  EXPECT_EQ(values_of(whole.tensors[0].view), (Rows{7, 3}));
  EXPECT_EQ(values_of(statistics.tensors[0].view), (Rows{7, 3}));
}

}  // namespace
}  // namespace tensordiff
