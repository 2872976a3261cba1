#include "analyze/trend.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "analyze/test_models.h"

namespace tensordiff {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

Trend trend_of(const std::vector<Model>& models) {
  std::vector<Catalog> checkpoints;
  for (const Model& model : models) {
    checkpoints.push_back(model.catalog);
    read_places(checkpoints.back());
  }
  return measure_trend(checkpoints, {}).value();
}

TEST(Trend, MeasuresUpdatesAndAngles) {
  const Trend trend = trend_of({Model().add("w", {2}, {3, 4}), Model().add("w", {2}, {4, 4}),
                                Model().add("w", {2}, {4, 6}), Model().add("w", {2}, {4, 4})});
  const std::vector<TrendPoint>& points = trend.groups[0].points;
  ASSERT_EQ(points.size(), 4U);
  EXPECT_EQ(points[0].norm, 5);
  EXPECT_EQ(points[0].update, std::nullopt);
  EXPECT_EQ(points[1].update, 0.2);
  EXPECT_EQ(points[1].cosine, std::nullopt);
  EXPECT_DOUBLE_EQ(*points[2].update, 2 / std::sqrt(32));
  EXPECT_EQ(points[2].cosine, 0);   // At a right angle,
  EXPECT_EQ(points[3].cosine, -1);  // and back again.
}

TEST(Trend, GroupsByLayer) {
  Model a, b;
  for (Model* model : {&a, &b}) {
    model->noise("model.embed.weight", {4, 4}, 1);
    model->noise("model.layers.0.mlp.weight", {4, 4}, 2);
    model->noise("model.layers.0.norm.weight", {4}, 3);
    model->noise("model.layers.1.mlp.weight", {4, 4}, model == &a ? 4 : 5);
  }
  const Trend trend = trend_of({a, b});
  ASSERT_EQ(trend.groups.size(), 4U);
  EXPECT_EQ(trend.groups[0].name, "all");
  EXPECT_EQ(trend.groups[0].tensors, 4U);
  EXPECT_EQ(trend.groups[1].name, "embed");
  EXPECT_EQ(trend.groups[2].name, "layer 0");
  EXPECT_EQ(trend.groups[2].tensors, 2U);
  EXPECT_EQ(trend.groups[2].points[1].update, 0);
  EXPECT_GT(*trend.groups[3].points[1].update, 0.5);
}

TEST(Trend, CountsWhatIsNotFiniteAndLeavesItOut) {
  const Trend trend =
      trend_of({Model().add("w", {3}, {1, 2, 2}), Model().add("w", {3}, {2, kNan, 2})});
  EXPECT_EQ(trend.groups[0].points[1].nonfinite, 1U);
  EXPECT_DOUBLE_EQ(*trend.groups[0].points[1].update, 1 / std::sqrt(5));
  EXPECT_EQ(trend.course, Course::diverging);
}

TEST(Trend, SaysWhatItLeavesOut) {
  const Trend trend = trend_of({Model().noise("w", {4}, 1).noise("x", {4}, 1).noise("z", {2}, 1),
                                Model().noise("w", {4}, 1).noise("y", {4}, 1).noise("z", {3}, 1)});
  EXPECT_EQ(trend.notes, (std::vector<std::string>{"x is not in every checkpoint: left out",
                                                   "z changes its shape: left out",
                                                   "y is not in every checkpoint: left out"}));
  EXPECT_EQ(trend.groups[0].tensors, 1U);
}

TEST(Trend, ReadsStepAndLossWhereTheyAreStored) {
  const Trend trend = trend_of({Model().noise("w", {4}, 1).scalar("step", 10).scalar("loss", 2.5),
                                Model().noise("w", {4}, 1)});
  EXPECT_EQ(trend.steps[0].step, 10);
  EXPECT_EQ(trend.steps[0].loss, 2.5);
  EXPECT_EQ(trend.steps[1].step, std::nullopt);
  EXPECT_EQ(trend.groups[0].tensors, 1U);
}

// A tensor larger than what one task reads gives the sums of the whole.
TEST(Trend, ReadsLargeTensorsInPieces) {
  const uint64_t size = (uint64_t{1} << 20) + 77;
  const Trend trend = trend_of({Model().add("w", {size}, std::vector<float>(size, 1)),
                                Model().add("w", {size}, std::vector<float>(size, 1.5))});
  EXPECT_DOUBLE_EQ(*trend.groups[0].points[1].update, 0.5);
  EXPECT_DOUBLE_EQ(*trend.groups[0].points[0].norm, std::sqrt(static_cast<double>(size)));
}

TEST(Trend, NeedsSomethingInCommon) {
  const std::vector<Catalog> strangers = {Model().noise("x", {4}, 1).catalog,
                                          Model().noise("y", {4}, 1).catalog};
  EXPECT_EQ(measure_trend(strangers, {}).error().message(),
            "the checkpoints have no tensor in common");
  EXPECT_FALSE(measure_trend({strangers[0]}, {}).ok());
}

TEST(Trend, SaysWhetherUpdatesDieDown) {
  const auto course = [](const std::vector<float>& values) {
    std::vector<Model> run;
    for (const float value : values) run.push_back(Model().add("w", {2}, {value, 1}));
    return trend_of(run).course;
  };
  EXPECT_EQ(course({1, 1.2F, 1.25F, 1.26F}), Course::converging);
  EXPECT_EQ(course({1, 1.2F, 1, 1.2F}), Course::oscillating);
  EXPECT_EQ(course({1, 1, 1}), Course::converged);
  EXPECT_EQ(course({1, 1.01F, 1.02F, 1.5F}), Course::diverging);
}

}  // namespace
}  // namespace tensordiff
