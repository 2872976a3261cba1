#include "report/trend_report.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/json.h"

namespace tensordiff {
namespace {

Trend sample() {
  Trend trend;
  trend.steps = {
      {"run/c1.pt", 100, 2.0, {}}, {"run/c2.pt", 200, 1.0, {}}, {"run/c3.pt", {}, {}, {}}};
  const auto point = [](double norm, std::optional<double> update, std::optional<double> cosine) {
    return TrendPoint{norm, update, cosine, 0};
  };
  const std::vector<TrendPoint> points = {point(10, {}, {}), point(11, 0.1, {}),
                                          point(12, 0.01, 0.0)};
  trend.groups = {{"all", 2, 20, points}, {"layer 0", 1, 10, points}, {"<b>", 1, 10, points}};
  trend.groups[2].points[2].nonfinite = 3;
  trend.course = Course::converging;
  trend.reason = "the last update is smaller";
  trend.notes = {"x changes its shape: left out"};
  return trend;
}

TEST(Sparkline, GoesByOrderOfMagnitude) {
  EXPECT_EQ(sparkline({1e-4, 1e-3, 1e-2, 1e-1}), "▁▃▆█");
  EXPECT_EQ(sparkline({1, std::nullopt, 1}), "▄·▄");
  EXPECT_EQ(sparkline({1, 10, std::numeric_limits<double>::infinity(), 0}), "▁█!▁");
  EXPECT_EQ(sparkline({1, 1.000001}), "▄▄");
  EXPECT_EQ(sparkline({}), "");
}

TEST(TrendText, HasARowForEachGroup) {
  const std::string text = trend_text(sample(), {});
  EXPECT_TRUE(
      text.starts_with("converging  the last update is smaller\n"
                       "3 checkpoints, 2 tensors in 2 groups, 20 elements\n"))
      << text;
  EXPECT_NE(text.find("layer 0  █▁"), std::string::npos) << text;
  EXPECT_NE(text.find("90°"), std::string::npos) << text;
  EXPECT_EQ(text.find("c2.pt (step 200)"), std::string::npos);
  RenderOptions verbose;
  verbose.verbose = true;
  EXPECT_NE(trend_text(sample(), verbose).find("c2.pt (step 200)"), std::string::npos);
}

TEST(TrendJson, HasARowForEachStepAndGroup) {
  const Json json = Json::parse(trend_json(sample())).value();
  EXPECT_EQ(json["schema"].string(), "tensordiff.trend/1");
  EXPECT_EQ(json["checkpoints"][0]["loss"].number(), 2);
  EXPECT_EQ(json["rows"].array().size(), 9U);
  EXPECT_EQ(json["rows"][4]["group"].string(), "layer 0");
  EXPECT_EQ(json["rows"][4]["update"].number(), 0.1);
  EXPECT_EQ(json["rows"][6]["angle_degrees"].number(), 90);
}

TEST(TrendCsv, HasARowForEachStepAndGroup) {
  const std::string text = trend_csv(sample());
  EXPECT_NE(text.find("\n2,run/c3.pt,<b>,0.01,0,90,12,3\n"), std::string::npos) << text;
}

TEST(TrendDocument, HasChartsAndATable) {
  const std::string page = doc::html_of(trend_document(sample()));
  for (const std::string_view wanted :
       {"Update size, ‖Δ‖ / ‖A‖", "Loss, as the checkpoints hold it", "&lt;b&gt;",
        "Update size by group and checkpoint", "x changes its shape: left out"})
    EXPECT_NE(page.find(wanted), std::string::npos) << wanted;
  EXPECT_EQ(page.find("<b>&lt;"), std::string::npos);
}

}  // namespace
}  // namespace tensordiff
