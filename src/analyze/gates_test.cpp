// Questions that decide something: settings, readiness, regressions, alerts, risk.

#include "analyze/gates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analysis.h"
#include "analyze/hyperparameters.h"
#include "analyze/test_models.h"

namespace tensordiff {
namespace {

Model network(float factor = 1) {
  return Model()
      .add("layers.0.weight", {20, 20}, times(noise(400, 1), factor))
      .add("layers.1.weight", {20, 20}, times(noise(400, 2), factor));
}

// What the gate says: "passed" or "failed"; "" where there is none.
std::string gate(const Answer& answer, std::string_view name) {
  const Listing& gates = list_of(answer, "gates");
  for (std::size_t i = 0; i < gates.rows.size(); ++i)
    if (cell(gates, i, "gate") == name)
      return cell(gates, i, "passed") == "true" ? "passed" : "failed";
  return "";
}

// planted: a learning rate was changed, a counter does not count
TEST(HyperparameterImpact, ListsWhatDiffers) {
  const auto checkpoint = [](double rate, float factor) {
    return network(factor)
        .scalar("optimizer.param_groups.0.lr", rate)
        .scalar("optimizer.param_groups.0.eps", 1e-8)
        .scalar("optimizer.param_groups.0.params.0", rate)
        .scalar("global_step", rate);
  };
  const Answer answer =
      answer_to(analyses::hyperparameter_impact, checkpoint(0.001, 1), checkpoint(0.0001, 1.5F));
  EXPECT_EQ(text_of(answer, "changed"), "1");
  EXPECT_EQ(text_of(answer, "compared"), "2");
  EXPECT_NEAR(number_of(answer, "magnitude"), 0.5, 1e-6);
  EXPECT_EQ(cell(list_of(answer, "settings"), 0, "name"), "optimizer.param_groups.0.lr");
  EXPECT_NEAR(number_of(list_of(answer, "settings").rows.at(0)[3]), 0.1, 1e-9);
}

// planted: config.json says another size, which counts once
TEST(HyperparameterImpact, ListsWhatTheConfigurationSays) {
  const auto model = [](float factor, const std::string& size) {
    Model result = network(factor);
    result.catalog.metadata = {{"config.json: size", size}};  // As formats/ adds it.
    result.catalog.beside = [size](std::string_view) -> Result<Bytes> {
      return bytes_of("{\"size\": " + size + "}");
    };
    return result;
  };
  const Answer answer = answer_to(analyses::hyperparameter_impact, model(1, "64"), model(2, "128"));
  EXPECT_EQ(text_of(answer, "changed"), "1");
  EXPECT_EQ(text_of(answer, "compared"), "1");
  EXPECT_EQ(cell(list_of(answer, "settings"), 0, "name"), "config.size");
  EXPECT_EQ(number_of(list_of(answer, "settings").rows.at(0)[3]), 2);
}

// unknown: no settings are stored
TEST(HyperparameterImpact, IsUnknownWhereNoSettingsAreStored) {
  const Answer answer = answer_to(analyses::hyperparameter_impact, network(), network(2));
  EXPECT_EQ(text_of(answer, "changed"), "unknown");
  EXPECT_EQ(answer.missing.size(), 1);
}

// planted: a rate that decayed, and the way it went in 20 steps
TEST(LearningRate, FollowsTheScheduleAndMeasuresSteps) {
  Model a = Model().add("layers.0.w", {100}, std::vector<float>(100, 1.0F));
  Model b = Model().add("layers.0.w", {100}, std::vector<float>(100, 1.02F));
  a.scalar("optimizer.param_groups.0.lr", 0.01).scalar("step", 10);
  b.scalar("optimizer.param_groups.0.lr", 0.001).scalar("step", 30);
  const Answer answer = answer_to(analyses::learning_rate_analysis, a, b);
  EXPECT_EQ(text_of(answer, "schedule"), "decayed");
  EXPECT_NEAR(number_of(answer, "effective_update"), 0.02, 1e-6);
  // 20 steps at a rate of 0.001 that all went the same way.
  EXPECT_NEAR(number_of(answer, "update_in_rates"), 1, 1e-4);
}

// unknown: no rate is stored
TEST(LearningRate, IsUnknownWhereNoneIsStored) {
  const Answer answer = answer_to(analyses::learning_rate_analysis, network(), network(2));
  EXPECT_EQ(text_of(answer, "schedule"), "unknown");
  EXPECT_EQ(text_of(answer, "update_in_rates"), "unknown");
}

// edge: the same model passes every check
TEST(DeploymentReadiness, PassesTheSameModel) {
  const Answer answer = answer_to(analyses::deployment_readiness, network(), network());
  EXPECT_EQ(text_of(answer, "ready"), "true");
  EXPECT_EQ(text_of(answer, "failed"), "0");
  EXPECT_FALSE(answer.alarm);
}

// planted: one failure for each check
TEST(DeploymentReadiness, FailsEachGateForItsReason) {
  std::vector<float> broken = noise(400, 2);
  broken[3] = NAN;
  Model b = Model().add("layers.1.weight", {20, 20}, broken).noise("more", {100, 100}, 4);
  b.noise("optimizer.state.0.exp_avg", {20, 20}, 5);
  b.catalog.problems = {{"data.pkl", "posix.system was not run"}};
  const Answer answer = answer_to(analyses::deployment_readiness, network(), b);
  EXPECT_EQ(text_of(answer, "ready"), "false");
  for (const char* name :
       {"safe", "finite", "complete", "nothing_unknown", "healthy", "lean", "fits"})
    EXPECT_EQ(gate(answer, name), "failed") << name;
  EXPECT_EQ(gate(answer, "readable"), "passed");
  EXPECT_EQ(gate(answer, "same_shapes"), "passed");
  EXPECT_TRUE(answer.alarm);
}

// unknown: no weights
TEST(DeploymentReadiness, IsUnknownWithoutWeights) {
  EXPECT_EQ(text_of(answer_to(analyses::deployment_readiness, {}, {}), "ready"), "unknown");
}

// unknown: no weights
TEST(RegressionTest, IsUnknownWithoutWeights) {
  EXPECT_EQ(text_of(answer_to(analyses::regression_test, {}, {}), "passed"), "unknown");
}

// planted: a change within and beyond the limits
TEST(RegressionTest, HoldsLimits) {
  AnalyzeOptions options;
  EXPECT_EQ(text_of(answer_to(analyses::regression_test, network(), network(1.05F)), "passed"),
            "true");
  const Answer far = answer_to(analyses::regression_test, network(), network(1.5F));
  EXPECT_EQ(text_of(far, "passed"), "false");
  EXPECT_EQ(gate(far, "rel_l2"), "failed");
  EXPECT_EQ(gate(far, "cosine"), "passed");
  EXPECT_TRUE(far.alarm);
  options.thresholds = {{"rel_l2", 0.6}};
  EXPECT_EQ(
      text_of(answer_to(analyses::regression_test, network(), network(1.5F), options), "passed"),
      "true");
}

// edge: farther from A than in an earlier report, but for the slack
TEST(RegressionTest, HoldsToABaseline) {
  const auto baseline = [](double then) {
    AnalyzeOptions options;
    options.baseline = fmt::format(
        R"({{"schema": "tensordiff.report/1", "pairs": [{{"name_a": "layers.0.weight",
            "status": "close", "diff": {{"rel_l2": {}}}}}]}})",
        then);
    return text_of(answer_to(analyses::regression_test, network(), network(1.05F), options),
                   "passed");
  };
  EXPECT_EQ(baseline(0.05), "true");
  EXPECT_EQ(baseline(0.01), "false");
}

TEST(RegressionTest, RefusesABaselineThatIsNone) {
  AnalyzeOptions options;
  options.baseline = "[1, 2";
  const Answer answer = answer_to(analyses::regression_test, network(), network(), options);
  EXPECT_EQ(gate(answer, "baseline"), "failed");
  EXPECT_EQ(text_of(answer_to(analyses::regression_test, {}, {}), "passed"), "unknown");
}

// planted: a loss that rose, and limits around it
TEST(AlertOnDegradation, WatchesTheLoss) {
  const auto degraded = [](const char* measure, double before, double after) {
    const Answer answer =
        answer_to(analyses::alert_on_degradation, network().scalar(measure, before),
                  network(1.01F).scalar(measure, after));
    EXPECT_EQ(answer.alarm.has_value(), text_of(answer, "degraded") == "true");
    return text_of(answer, "degraded");
  };
  EXPECT_EQ(degraded("val_loss", 1.0, 1.2), "true");
  EXPECT_EQ(degraded("val_loss", 1.0, 1.01), "false");
  EXPECT_EQ(degraded("accuracy", 0.9, 0.7), "true");
  EXPECT_EQ(degraded("accuracy", 0.7, 0.9), "false");
}

// unknown: no loss is stored, and no alarm is raised
TEST(AlertOnDegradation, KnowsNoLossWhereNoneIsStored) {
  const Answer answer = answer_to(analyses::alert_on_degradation, network(), network());
  EXPECT_EQ(text_of(answer, "loss_change"), "unknown");
  EXPECT_EQ(text_of(answer, "degraded"), "false");
  EXPECT_EQ(gate(answer_to(analyses::alert_on_degradation, network(), network(1000)), "critical"),
            "failed");
}

// planted: reasons of each level
TEST(RiskAssessment, NamesTheGravestReason) {
  const auto risk = [](const Model& b) {
    const Answer answer = answer_to(analyses::risk_assessment, network(), b);
    return text_of(answer, "level") + ": " + text_of(answer, "reason");
  };
  EXPECT_EQ(risk(network()), "low: none");
  EXPECT_EQ(risk(network(1.2F)), "medium: the weights changed much");
  EXPECT_EQ(risk(network(1.7F)), "high: the weights changed much");
  EXPECT_EQ(risk(network(1000)), "critical: exploding");
  EXPECT_EQ(risk(network().noise("layers.2.weight", {3, 3}, 1)),
            "medium: weights that A does not have");
}

// unknown: quality without a stored loss
TEST(RiskAssessment, SaysThatQualityIsNotPartOfItWithoutALoss) {
  const Answer answer = answer_to(analyses::risk_assessment, network(), network());
  EXPECT_EQ(answer.missing.size(), 1);
  EXPECT_EQ(text_of(answer_to(analyses::risk_assessment, {}, {}), "level"), "unknown");
  const Answer worse = answer_to(analyses::risk_assessment, network().scalar("loss", 1),
                                 network().scalar("loss", 2));
  EXPECT_EQ(text_of(worse, "level"), "high");
  EXPECT_TRUE(worse.missing.empty());
}

}  // namespace
}  // namespace tensordiff
