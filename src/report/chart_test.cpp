#include "report/chart.h"

#include <gtest/gtest.h>

#include <limits>

namespace tensordiff {
namespace {

std::size_t count(std::string_view text, std::string_view what) {
  std::size_t found = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++found;
  return found;
}

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(DotChart, DrawsWhatHasAValue) {
  const doc::Chart chart = dot_chart("error", {{"zero", 0, doc::Look::good},
                                               {"small", 1e-6, doc::Look::close, "layer 0"},
                                               {"none", std::nullopt},
                                               {"huge", kInf, doc::Look::bad, "layer 1", true}});
  EXPECT_EQ(count(chart.body, "<circle"), 4U);  // Three values and the ring.
  EXPECT_EQ(count(chart.body, "class=\"mark\""), 1U);
  EXPECT_NE(chart.body.find("<title>small: 1e-06</title>"), std::string::npos);
  EXPECT_NE(chart.body.find(">layer 1</text>"), std::string::npos);
  EXPECT_EQ(count(chart.body, "nan"), 0U);
}

TEST(DotChart, KeepsTheLargestAndTheMarkedOfTooMany) {
  std::vector<ChartPoint> points;
  for (int i = 0; i < 10000; ++i) points.push_back({"p" + std::to_string(i), 1e-6});
  points[777].value = 0.5;
  points[778].marked = true;
  const doc::Chart chart = dot_chart("many", points);
  EXPECT_LT(count(chart.body, "<circle"), 3100U);
  EXPECT_NE(chart.body.find(">p778: "), std::string::npos);
  EXPECT_EQ(count(chart.body, "class=\"mark\""), 1U);
}

TEST(BarChart, ScalesToTheLargest) {
  const doc::Chart chart = bar_chart("largest", {{"<b>", 4, doc::Look::bad}, {"half", 2}});
  EXPECT_EQ(count(chart.body, "<rect"), 2U);
  EXPECT_NE(chart.body.find("width=\"610.0\""), std::string::npos) << chart.body;
  EXPECT_NE(chart.body.find("width=\"305.0\""), std::string::npos);
  EXPECT_EQ(chart.body.find("<b>"), std::string::npos);
}

TEST(HeatMap, HasAStepForEachDecade) {
  HeatMap map{{"query", "key"}, {"0", "1"}, {0.0, 1e-7, 0.5, std::nullopt}, "error"};
  const doc::Chart chart = heat_map("map", map);
  EXPECT_EQ(count(chart.body, "<rect"), 3U + 10U);
  EXPECT_NE(chart.body.find("<title>0 · key: error 0.5</title>"), std::string::npos);
  EXPECT_EQ(count(chart.body, "class=\"h8\""), 2U);  // 0.5 and the legend.
}

TEST(HeatMap, OrFromTheLeastToTheLargest) {
  HeatMap map{{"a"}, {"x", "y", "z"}, {-1.0, 0.0, 1.0}, "", false};
  const doc::Chart chart = heat_map("map", map);
  for (const std::string_view look : {"class=\"h0\"", "class=\"h5\"", "class=\"h9\""})
    EXPECT_EQ(count(chart.body, look), 2U) << look;
}

TEST(LineChart, DrawsASeriesEach) {
  const doc::Chart chart = line_chart("trend", {"s1", "s2", "s3"},
                                      {{"norm", {1, 10, 1000}}, {"other", {2, std::nullopt, 3}}});
  EXPECT_EQ(count(chart.body, "<path"), 2U);
  EXPECT_EQ(count(chart.body, "<circle"), 5U);
  EXPECT_NE(chart.body.find(">1e3</text>"), std::string::npos);
}

TEST(LineChart, IsLinearWhereValuesAreNearOrNegative) {
  const doc::Chart chart = line_chart("trend", {"s1", "s2"}, {{"loss", {-1, 3}}});
  EXPECT_NE(chart.body.find(">-1</text>"), std::string::npos) << chart.body;
  EXPECT_NE(chart.body.find(">3</text>"), std::string::npos);
}

TEST(HtmlEscape, LeavesNothingThatHasAMeaning) {
  EXPECT_EQ(html_escape("<a href=\"x\">'&'</a>"),
            "&lt;a href=&quot;x&quot;&gt;&#39;&amp;&#39;&lt;/a&gt;");
}

}  // namespace
}  // namespace tensordiff
