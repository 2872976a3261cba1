// Dumps that show a part of each tensor beside dumps that hold all of it.

#include "dumps/excerpt.h"

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "formats/statistics.h"
#include "formats/test_files.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using namespace test_files;
using Rows = std::vector<float>;

// As llama.cpp prints a vector of nine.
Catalog printed() {
  return formats::eval_callback
      .open(input("common_debug_cb_eval: l_out-0 = (f32) ADD(, }) = {9, 2, 1, 1}\n[\n[\n"
                  "[ 0.0, 1.0, 2.0, ..., 6.0, 7.0, 8.0 ],\n[ 9.0, 10.0, 11.0, ..., 15.0, 16.0, "
                  "17.0 ],\n],\n]\nsum = 1\n"))
      .value();
}

Rows upwards(std::size_t count) {
  Rows values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

TEST(Excerpt, LogsAreComparedInWhatTheyShow) {
  Catalog whole, log = printed();
  whole.tensors.push_back({"model.layers.0", f32_view({1, 2, 9}, upwards(18)), ""});
  whole.tensors.push_back({"model.layers.1", f32_view({1, 2, 9}, upwards(18)), ""});
  read_places(whole), read_places(log);
  EXPECT_EQ(log.tensors[0].view.shape, (Shape{2, 9}));
  std::vector<std::string> notes;
  keep_what_is_shown(whole, log, notes);
  const Rows shown = {0, 1, 2, 6, 7, 8, 9, 10, 11, 15, 16, 17};
  EXPECT_EQ(values_of(log.tensors[0].view), shown);
  EXPECT_EQ(values_of(whole.tensors[0].view), shown);
  EXPECT_EQ(whole.tensors[1].view.shape, (Shape{1, 2, 9}));
  ASSERT_EQ(notes.size(), 1U);
}

TEST(Excerpt, ABatchOfOneMayStandBehindTheTokens) {
  Catalog whole, log = printed();
  whole.tensors.push_back({"model.layers.0", f32_view({2, 1, 9}, upwards(18)), ""});
  read_places(whole), read_places(log);
  std::vector<std::string> notes;
  keep_what_is_shown(whole, log, notes);
  EXPECT_EQ(values_of(whole.tensors[0].view), (Rows{0, 1, 2, 6, 7, 8, 9, 10, 11, 15, 16, 17}));
}

// One token and head of eight features: llama.cpp has 0 and 4 side by side.
TEST(Excerpt, QueriesAreReadInTheOrderThatFits) {
  Catalog log =
      formats::eval_callback
          .open(input("common_debug_cb_eval: Kcur-0 = (f32) ROPE(, }) = {8, 1, 2, 1}\n[\n[\n"
                      "[ 0.0, 4.0, 1.0, ..., 6.0, 3.0, 7.0 ],\n],\n[\n"
                      "[ 8.0, 12.0, 9.0, ..., 14.0, 11.0, 15.0 ],\n],\n]\nsum = 1\n"))
          .value();
  Catalog whole;
  whole.tensors.push_back({"model.layers.0.self_attn.k_rope", f32_view({2, 8}, upwards(16)), ""});
  read_places(whole), read_places(log);
  log.tensors[0].place.step = Role::key_final;  // As the layout of llama.cpp has it.
  std::vector<std::string> notes;
  keep_what_is_shown(whole, log, notes);
  EXPECT_EQ(values_of(whole.tensors[0].view), values_of(log.tensors[0].view));
}

TEST(Excerpt, TwoLogsAreComparedInWhatBothShow) {
  Catalog a = printed(), b = printed();
  read_places(a), read_places(b);
  std::vector<std::string> notes;
  keep_what_is_shown(a, b, notes);
  EXPECT_EQ(a.tensors[0].view.shape, (Shape{2, 6}));
  EXPECT_EQ(b.tensors[0].view.shape, (Shape{2, 6}));
}

TEST(Excerpt, APrintedPartHasNoStatistics) {
  Catalog log = printed(), statistics;
  statistics.tensors.push_back({"l_out-0", f32_view({4}, {3, -4, -0.5F, 5}), ""});
  statistics.tensors[0].made_from = fmt::format("{}{}", kStatisticsMark, kProbeStatistics);
  std::vector<std::string> notes;
  keep_what_is_shown(log, statistics, notes);
  EXPECT_TRUE(log.tensors.empty());
}

TEST(Excerpt, WholeDumpsStayAsTheyAre) {
  Catalog a, b;
  a.tensors.push_back({"model.norm", f32_view({1, 2}, {3, -4}), ""});
  b.tensors.push_back({"model.norm", f32_view({1, 2}, {3, -4}), ""});
  std::vector<std::string> notes;
  keep_what_is_shown(a, b, notes);
  EXPECT_EQ(a.tensors[0].view.shape, (Shape{1, 2}));
  EXPECT_TRUE(notes.empty());
}

}  // namespace
}  // namespace tensordiff
