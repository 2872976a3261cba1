// Questions about training: progress, convergence, anomalies, gradients.

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analysis.h"
#include "analyze/anomalies.h"
#include "analyze/convergence.h"
#include "analyze/test_models.h"

namespace tensordiff {
namespace {

// Two layers that move by a tenth and by a hundredth.
Model layers(float first, float second) {
  const std::vector<float> w = noise(400, 1);
  return Model()
      .add("layers.0.w", {20, 20}, times(w, first))
      .add("layers.1.w", {20, 20}, times(w, second));
}

// planted: a loss that fell over 200 steps, two layers that moved by a tenth and a hundredth
TEST(LearningProgress, ReadsLossAndSteps) {
  const Model a = layers(1, 1).scalar("loss", 2.0).scalar("global_step", 100);
  const Model b = layers(1.1F, 1.01F).scalar("loss", 1.5).scalar("global_step", 300);
  const Answer answer = answer_to(analyses::learning_progress, a, b);
  EXPECT_EQ(text_of(answer, "trend"), "improving");
  const double magnitude = std::sqrt((0.01 + 0.0001) / 2);
  EXPECT_NEAR(number_of(answer, "magnitude"), magnitude, 1e-6);
  EXPECT_NEAR(number_of(answer, "speed"), magnitude / 200, 1e-8);
  EXPECT_NEAR(number_of(list_of(answer, "layers").rows.at(0)[1]), 0.1, 1e-6);
  EXPECT_NEAR(number_of(list_of(answer, "layers").rows.at(1)[1]), 0.01, 1e-6);
}

// edge: a loss that moved by less than a thousandth stands still
TEST(LearningProgress, TellsWorseFromBetterByTheKindOfMeasure) {
  const auto trend = [](const char* name, double before, double after) {
    return text_of(answer_to(analyses::learning_progress, layers(1, 1).scalar(name, before),
                             layers(1.1F, 1).scalar(name, after)),
                   "trend");
  };
  EXPECT_EQ(trend("val_loss", 1, 2), "degrading");
  EXPECT_EQ(trend("accuracy", 0.5, 0.7), "improving");
  EXPECT_EQ(trend("accuracy", 0.7, 0.5), "degrading");
  EXPECT_EQ(trend("loss", 1, 1.0005), "stable");
  const Answer frozen =
      answer_to(analyses::learning_progress, layers(1, 1).noise("embed.weight", {4, 4}, 1),
                layers(1.1F, 1).noise("embed.weight", {4, 4}, 1));
  EXPECT_EQ(text_of(frozen, "frozen_layers"), "1");
  EXPECT_EQ(text_of(frozen, "frozen_beside"), "embed.weight");
}

// unknown: trend and speed without a stored loss and steps
TEST(LearningProgress, KnowsNoTrendWithoutALoss) {
  const Answer answer = answer_to(analyses::learning_progress, layers(1, 1), layers(1.1F, 1));
  EXPECT_EQ(text_of(answer, "trend"), "unknown");
  EXPECT_EQ(text_of(answer, "speed"), "unknown");
  EXPECT_EQ(answer.missing.size(), 2);
}

std::string convergence(const Model& a, const Model& b) {
  return text_of(answer_to(analyses::convergence_analysis, a, b), "status");
}

// edge: one update, however small, is no convergence; NaN and doubled weights are a divergence
TEST(ConvergenceAnalysis, DoesNotJudgeOneUpdateByItsSize) {
  EXPECT_EQ(convergence(layers(1, 1), layers(1, 1)), "unknown");
  EXPECT_EQ(convergence(layers(1, 1), layers(1.00001F, 1.00001F)), "unknown");
  EXPECT_EQ(convergence(layers(1, 1), layers(1.1F, 1.1F)), "unknown");
  EXPECT_EQ(convergence(layers(1, 1), layers(3, 3)), "diverging");
  std::vector<float> broken = noise(400, 1);
  broken[7] = NAN;
  EXPECT_EQ(convergence(layers(1, 1).noise("x", {400}, 1), layers(1, 1).add("x", {400}, broken)),
            "diverging");
}

// planted: a stored loss that rises, falls or stands still, and many steps that move nothing
TEST(ConvergenceAnalysis, UsesStoredLossAndSteps) {
  const auto status = [](double before, double after, float move) {
    return convergence(layers(1, 1).scalar("loss", before),
                       layers(move, move).scalar("loss", after));
  };
  EXPECT_EQ(status(1.2, 2.6, 1.001F), "worsening");
  EXPECT_EQ(status(2.6, 1.2, 1.001F), "improving");
  EXPECT_EQ(status(1.2, 1.2001, 1.001F), "converged");
  EXPECT_EQ(status(1.2, 1.2001, 1.1F), "moving");
  EXPECT_EQ(convergence(layers(1, 1).scalar("step", 100), layers(1.00001F, 1).scalar("step", 900)),
            "converged");
  EXPECT_EQ(convergence(layers(1, 1).scalar("step", 100), layers(1.00001F, 1).scalar("step", 101)),
            "unknown");
  const Answer answer = answer_to(analyses::convergence_analysis, layers(1, 1).scalar("loss", 1.2),
                                  layers(1.1F, 1).scalar("loss", 2.6));
  EXPECT_EQ(text_of(answer, "measure_b"), "2.6");
  EXPECT_EQ(text_of(answer, "action").find("continue"), std::string::npos);
}

TEST(ConvergenceAnalysis, SeesMomentumThatTurnedAround) {
  const std::vector<float> m = noise(400, 3);
  const Model a = layers(1, 1).add("optimizer.state.0.exp_avg", {20, 20}, m);
  const Model b = layers(1.1F, 1).add("optimizer.state.0.exp_avg", {20, 20}, times(m, -1));
  const Answer answer = answer_to(analyses::convergence_analysis, a, b);
  EXPECT_EQ(text_of(answer, "status"), "oscillating");
  EXPECT_NEAR(number_of(answer, "direction"), -1, 1e-9);
}

// unknown: the direction without stored momentum, and the status of two checkpoints alone
TEST(ConvergenceAnalysis, KnowsNoDirectionWithoutMomentum) {
  const Answer answer = answer_to(analyses::convergence_analysis, layers(1, 1), layers(1.1F, 1));
  EXPECT_EQ(text_of(answer, "direction"), "unknown");
  EXPECT_EQ(answer.missing.size(), 2);
  const Model zeros = Model().add("w", {2}, {0, 0});
  EXPECT_EQ(convergence(zeros, zeros), "unknown");
}

// edge: a loss that stands still over one step is no convergence, and one that is NaN diverges
TEST(ConvergenceAnalysis, NeedsMoreThanOneStep) {
  const auto checkpoint = [](double loss, double step) {
    return Model()
        .add("w", {4}, {1, 2, 3, 4 + static_cast<float>(step) * 1e-6F})
        .scalar("loss", loss)
        .scalar("global_step", step);
  };
  const auto status = [&](double loss, double step) {
    return text_of(
        answer_to(analyses::convergence_analysis, checkpoint(1.2, 1000), checkpoint(loss, step)),
        "status");
  };
  EXPECT_EQ(status(1.2, 1001), "unknown");
  EXPECT_EQ(status(1.2, 2000), "converged");
  EXPECT_EQ(status(std::nan(""), 2000), "diverging");
  const Answer alarm = answer_to(analyses::alert_on_degradation, checkpoint(1.2, 1000),
                                 checkpoint(std::nan(""), 1001));
  EXPECT_TRUE(alarm.alarm.has_value());
}

// One rule for two checkpoints and for many.
TEST(Convergence, FollowsItsRules) {
  const auto course = [](const std::vector<double>& sizes, const std::vector<double>& cosines) {
    return judge_convergence({sizes, cosines, false, 1}).course;
  };
  EXPECT_EQ(course({}, {}), Course::unknown);
  EXPECT_EQ(course({0.1}, {}), Course::unknown);
  EXPECT_EQ(course({0.005}, {}), Course::unknown);
  EXPECT_EQ(course({0.1, 0.01, 5e-5}, {0.5}), Course::converged);
  EXPECT_EQ(course({0.1, 0.05, 0.02}, {0.5, 0.5}), Course::converging);
  EXPECT_EQ(course({0.1, 0.1, 0.1}, {0.5, 0.5}), Course::moving);
  EXPECT_EQ(course({0.1, 0.1, 0.1}, {-0.9, -0.9}), Course::oscillating);
  EXPECT_EQ(course({0.1, 0.1, 0.5}, {0.5, 0.5}), Course::diverging);
  EXPECT_EQ(judge_convergence({{}, {}, true, 1}).course, Course::diverging);
  EXPECT_EQ(judge_convergence({{}, {}, false, 3}).course, Course::diverging);
  const std::vector<double> sizes = {0.1, 0.05, 5e-5}, rising = {1.2, 1, 1.3, 2.6};
  EXPECT_EQ(judge_convergence({sizes, {}, false, 1, rising}).course, Course::worsening);
}

// The anomaly of one tensor w, with another that stays as it is.
Answer anomalies(const std::vector<float>& before, const std::vector<float>& after) {
  const Model a = Model().add("w", {40, 30}, before).noise("other", {40, 30}, 9);
  const Model b = Model().add("w", {40, 30}, after).noise("other", {40, 30}, 9);
  return answer_to(analyses::anomaly_detection, a, b);
}

// unknown: nothing is found where nothing changed, which does not say that the model is good
TEST(AnomalyDetection, FindsNothingInTheSameModel) {
  const std::vector<float> w = noise(1200, 1);
  const Answer answer = anomalies(w, w);
  EXPECT_EQ(text_of(answer, "type"), "none");
  EXPECT_EQ(text_of(answer, "severity"), "none");
  EXPECT_EQ(text_of(answer, "affected"), "0");
  EXPECT_TRUE(list_of(answer, "anomalies_found").rows.empty());
}

// edge: norms that moved by 1 %, biases that grew from about zero, training: no anomaly
TEST(AnomalyDetection, NorInOrdinaryTraining) {
  const std::vector<float> w = noise(1200, 1);
  std::vector<float> norm(1200), bias = times(noise(1200, 4), 1e-5F);
  for (std::size_t i = 0; i < norm.size(); ++i) norm[i] = 1 + 1e-4F * w[i];
  EXPECT_EQ(text_of(anomalies(norm, times(norm, 1.01F)), "type"), "none");
  EXPECT_EQ(text_of(anomalies(bias, times(noise(1200, 5), 1e-3F)), "type"), "none");
  EXPECT_EQ(text_of(anomalies(w, plus(w, times(noise(1200, 2), 0.05F))), "type"), "none");
}

// planted: NaN, exploding, vanishing, dead rows and columns, collapsed and shifted weights
TEST(AnomalyDetection, FindsEachKind) {
  const std::vector<float> w = noise(1200, 1);
  std::vector<float> broken = w, dead = w, shifted = w, columns = w;
  for (std::size_t i = 0; i < columns.size(); i += 30) columns[i] = columns[i + 7] = 0;
  broken[100] = INFINITY;
  std::fill_n(dead.begin(), 30 * 5, 0.0F);
  for (float& value : shifted) value = value * 0.9F + 2;
  const auto found = [&](const std::vector<float>& after) {
    const Answer answer = anomalies(w, after);
    const Listing& list = list_of(answer, "anomalies_found");
    return cell(list, 0, "tensor") + " " + text_of(answer, "type") + " " +
           text_of(answer, "severity");
  };
  EXPECT_EQ(found(broken), "w nonfinite critical");
  EXPECT_EQ(found(times(w, 1000)), "w exploding critical");
  EXPECT_EQ(found(times(w, 20)), "w exploding warning");
  EXPECT_EQ(found(times(w, 0.001F)), "w vanishing critical");
  EXPECT_EQ(found(dead), "w dead_rows critical");
  EXPECT_EQ(found(columns), "w dead_columns warning");
  EXPECT_EQ(found(std::vector<float>(1200, 0.5F)), "w collapsed critical");
  EXPECT_EQ(found(shifted), "w shifted warning");
}

TEST(AnomalyDetection, FindsSaturatedTypes) {
  std::string low(1200, 1), high(1200, 127);
  const auto bytes = [](const std::string& values) {
    return contiguous_view(DType::i8, {40, 30}, ByteSource(bytes_of(values))).value();
  };
  for (std::size_t i = 0; i < 1000; ++i) low[i] = high[i] = static_cast<char>(i % 50);
  const Answer answer = answer_to(analyses::anomaly_detection, Model().add("q", bytes(low)),
                                  Model().add("q", bytes(high)));
  bool saturated = false;
  for (const auto& row : list_of(answer, "anomalies_found").rows)
    saturated |= row[1] == Datum("saturated") && row[2] == Datum("critical");
  EXPECT_TRUE(saturated);
}

// planted: gradients that vanish on their way to the first layer
TEST(GradientAnalysis, UsesRealGradients) {
  const Model weights = layers(1, 1);
  Model b = weights;
  b.add("layers.0.w.grad", {20, 20}, times(noise(400, 5), 1e-6F));
  b.add("layers.1.w.grad", {20, 20}, noise(400, 6));
  const Answer answer = answer_to(analyses::gradient_analysis, weights, b);
  EXPECT_EQ(text_of(answer, "source"), "gradients");
  EXPECT_EQ(text_of(answer, "status"), "vanishing");
  EXPECT_NEAR(number_of(answer, "flow"), 1e-6, 2e-7);
  EXPECT_EQ(cell(list_of(answer, "tensors"), 0, "tensor"), "layers.1.w.grad");
}

// edge: only the moments of the optimizer are stored; they are named after their parameters
TEST(GradientAnalysis, UsesMomentsAndNamesTheirParameters) {
  const std::vector<float> m(400, 0.5F), v(400, 0.25F);
  Model model = layers(1, 1);
  model.add("optimizer.state.0.exp_avg", {20, 20}, m);
  model.add("optimizer.state.0.exp_avg_sq", {20, 20}, v);
  model.add("optimizer.state.1.exp_avg", {20, 20}, times(m, -1));
  model.add("optimizer.state.1.exp_avg_sq", {20, 20}, v);
  const Answer answer = answer_to(analyses::gradient_analysis, model, model);
  EXPECT_EQ(text_of(answer, "source"), "optimizer_moments");
  EXPECT_EQ(text_of(answer, "status"), "even");
  EXPECT_NEAR(number_of(answer, "steadiness"), 1, 1e-6);
  EXPECT_NEAR(number_of(answer, "norm"), 0.5 * std::sqrt(800), 1e-6);
  EXPECT_EQ(cell(list_of(answer, "tensors"), 0, "tensor"), "layers.0.w");
}

// unknown: steadiness without moments; the update stands in for gradients and is called so
TEST(GradientAnalysis, SaysThatTheUpdateOnlyStandsIn) {
  const Answer answer = answer_to(analyses::gradient_analysis, layers(1, 1), layers(1.1F, 1));
  EXPECT_EQ(text_of(answer, "source"), "update_as_stand_in");
  EXPECT_EQ(text_of(answer, "steadiness"), "unknown");
  EXPECT_EQ(answer.missing.size(), 3);  // One layer alone moved, so there is no flow either.
  EXPECT_EQ(text_of(answer_to(analyses::gradient_analysis, layers(1, 1), layers(1, 1)), "status"),
            "none");
}

// edge: layers that were frozen did not move, which is no vanishing gradient
TEST(GradientAnalysis, DoesNotCallFrozenLayersVanishing) {
  Model a, b;
  for (unsigned i = 0; i < 3; ++i) {
    const std::string name = "layers." + std::to_string(i) + ".weight";
    a.noise(name, {8, 8}, i);
    b.add(name, {8, 8}, i == 0 ? noise(64, i) : plus(noise(64, i), times(noise(64, 9), 0.01F)));
  }
  EXPECT_EQ(text_of(answer_to(analyses::gradient_analysis, a, b), "status"), "even");
}

}  // namespace
}  // namespace tensordiff
