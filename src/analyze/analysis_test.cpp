#include "analyze/analysis.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "analyze/facts.h"
#include "analyze/test_models.h"

namespace tensordiff {
namespace {

TEST(Analyses, HaveNamesAndFlagsThatBelongTogether) {
  std::set<std::string_view> names;
  for (const Analysis* analysis : analyses::kAll) {
    EXPECT_TRUE(names.insert(analysis->name).second) << analysis->name;
    std::string flag = "--" + std::string(analysis->name);
    std::ranges::replace(flag, '_', '-');
    EXPECT_EQ(analysis->flag, flag);
    EXPECT_TRUE(analysis->question.ends_with('?')) << analysis->name;
    EXPECT_FALSE(analysis->definition.empty()) << analysis->name;
  }
}

TEST(Analyses, AnswerWhatWasAskedInTheOrderOfTheList) {
  const Model model = Model().noise("w", {4, 4}, 1);
  AnalyzeOptions options;
  options.wanted = {&analyses::memory_analysis, &analyses::change_summary};
  const std::unique_ptr<Compared> all = compared(model, model, options);
  const std::vector<Answer> answers = analyze(*all->study);
  ASSERT_EQ(answers.size(), 2);
  EXPECT_EQ(answers[0].name, "change_summary");
  EXPECT_EQ(answers[1].name, "memory_analysis");
}

// An empty model has no answer, and must not bring anything down.
TEST(Analyses, SurviveModelsWithoutTensors) {
  AnalyzeOptions options;
  options.wanted.assign(std::begin(analyses::kAll), std::end(analyses::kAll));
  const std::unique_ptr<Compared> all = compared({}, {}, options);
  EXPECT_EQ(analyze(*all->study).size(), std::size(analyses::kAll));
}

TEST(Analyses, NamesAreTurnedIntoTags) {
  EXPECT_EQ(camel_case("memory_analysis"), "MemoryAnalysis");
  EXPECT_EQ(camel_case("low_rank"), "LowRank");
}

TEST(Answer, SaysWhatIsMissingOnce) {
  Answer answer;
  answer.unknown("trend", "a loss").unknown("speed", "a loss").field("count", 3);
  EXPECT_EQ(text_of(answer, "trend"), "unknown");
  EXPECT_EQ(answer.missing, std::vector<std::string>{"a loss"});
  EXPECT_EQ(answer.find("nothing"), nullptr);
}

TEST(Answer, TextOfData) {
  EXPECT_EQ(datum_text({}), "none");
  EXPECT_EQ(datum_text(std::optional<double>()), "none");
  EXPECT_EQ(datum_text(0.05432), "0.05432");
  EXPECT_EQ(datum_text("text"), "text");
  EXPECT_EQ(datum_text(uint64_t{7}), "7");
  EXPECT_EQ(datum_text(true), "true");
}

TEST(Answer, KeepsTheFirstRowsAndCountsTheRest) {
  Listing list{"rows", {"n"}, {}, 0};
  for (std::size_t i = 0; i < kListingRowsMax + 5; ++i) list.add({i});
  EXPECT_EQ(list.rows.size(), kListingRowsMax);
  EXPECT_EQ(list.rows_in_all, kListingRowsMax + 5);
}

TEST(Facts, AreScalarsAndMetadata) {
  Model model = Model().noise("w", {2, 2}, 1).scalar("trainer.global_step", 70).scalar("loss", 0.5);
  model.catalog.metadata = {{"epoch", "3"}, {"format", "pt"}};
  const Facts facts = Facts::of(model.catalog);
  EXPECT_EQ(facts.all().size(), 3);
  EXPECT_EQ(facts.named("epoch"), 3);
  const Progress progress = progress_of(facts);
  EXPECT_EQ(progress.step->value, 70);
  EXPECT_EQ(progress.loss->value, 0.5);
  EXPECT_EQ(progress.score, nullptr);
}

TEST(Facts, TellTheModelByNumbersOfTheCheckpoint) {
  Model model;
  model.scalar("args.n_head", 4).scalar("optimizer.state.0.dim", 7);
  const Facts facts = Facts::of(model.catalog);
  EXPECT_EQ(facts.model().heads, 4U);
  EXPECT_EQ(facts.model().hidden, std::nullopt);
  model.catalog.metadata = {{"config.json: num_attention_heads", "8"}};
  EXPECT_EQ(Facts::of(model.catalog).model().heads, 8U);
}

TEST(Facts, ComeFromFilesBesideTheModel) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "tensordiff_facts";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "config.json") << R"({"num_hidden_layers": 2, "num_attention_heads": 4,
      "num_key_value_heads": 2, "hidden_size": 32, "max_position_embeddings": 100})";
  std::ofstream(folder / "trainer_state.json")
      << R"({"global_step": 20, "log_history": [{"loss": 2.0, "step": 10}, {"loss": 1.5}]})";
  Model model;
  model.catalog.beside = [&](std::string_view name) { return map_file((folder / name).string()); };
  const Facts facts = Facts::of(model.catalog);
  EXPECT_EQ(facts.named("trainer_state.loss"), 1.5);
  EXPECT_EQ(facts.named("trainer_state.global_step"), 20);
  EXPECT_EQ(facts.config()["hidden_size"].number(), 32);
  // A loss that is no number any more, as Python writes it; text keeps its words.
  std::ofstream(folder / "trainer_state.json")
      << R"({"global_step": 30, "best": "NaN \"Infinity", "log_history": [{"loss": NaN}]})";
  const Facts broken = Facts::of(model.catalog);
  EXPECT_TRUE(std::isnan(broken.named("trainer_state.loss").value_or(0)));
  EXPECT_EQ(broken.named("trainer_state.global_step"), 30);
  std::filesystem::remove_all(folder);
}

TEST(Study, KnowsWhatATensorIsFor) {
  EXPECT_EQ(purpose_of("model.fc1.weight", {2, 2}), Purpose::weight);
  EXPECT_EQ(purpose_of("optimizer.state.0.exp_avg", {2, 2}), Purpose::optimizer);
  EXPECT_EQ(purpose_of("optimizer.param_groups.0.lr", {}), Purpose::scalar);
  EXPECT_EQ(purpose_of("fc1.weight.grad", {2, 2}), Purpose::gradient);
  EXPECT_EQ(purpose_of("epoch", {}), Purpose::scalar);
}

TEST(Study, FindsTheDepthAndThePattern) {
  const auto pattern = [](const char* name) { return pattern_of(name, read_place(name)); };
  EXPECT_EQ(pattern("features.3.weight"), "features.*.weight");
  EXPECT_EQ(pattern("model.layers.12.mlp.experts.3.up_proj"),
            "model.layers.*.mlp.experts.3.up_proj");
  EXPECT_EQ(pattern("fc.weight"), "fc.weight");
}

// planted: one of two layers grew by half, one weight was removed
TEST(ChangeSummary, CountsAndMeasures) {
  const std::vector<float> w = noise(16, 1);
  const Model a =
      Model().add("layers.0.w", {4, 4}, w).add("layers.1.w", {4, 4}, w).noise("old", {3}, 2);
  const Model b = Model().add("layers.0.w", {4, 4}, times(w, 1.5F)).add("layers.1.w", {4, 4}, w);
  const Answer answer = answer_to(analyses::change_summary, a, b);
  EXPECT_EQ(text_of(answer, "changed"), "1");
  EXPECT_EQ(text_of(answer, "unchanged"), "1");
  EXPECT_EQ(text_of(answer, "removed"), "1");
  // Half of one of two equal tensors: 0.5 / sqrt(2).
  EXPECT_NEAR(number_of(answer, "magnitude"), 0.5 / std::sqrt(2), 1e-6);
  EXPECT_DOUBLE_EQ(number_of(answer, "share_of_elements"), 0.5);
  EXPECT_EQ(cell(list_of(answer, "largest"), 0, "tensor"), "layers.0.w");
  ASSERT_EQ(answer.charts.size(), 1);
  EXPECT_NEAR(answer.charts[0].values[0], 0.5, 1e-6);
  EXPECT_EQ(answer.charts[0].values[1], 0);
}

// unknown: the magnitude of weights that are all zero
TEST(ChangeSummary, KnowsNoMagnitudeWithoutWeights) {
  const Model zeros = Model().add("w", {2}, {0, 0});
  const Answer answer = answer_to(analyses::change_summary, zeros, zeros);
  EXPECT_EQ(text_of(answer, "magnitude"), "unknown");
  EXPECT_FALSE(answer.missing.empty());
}

// planted: a weight and optimizer state were added
TEST(MemoryAnalysis, CountsBytesByDtype) {
  const Model a = Model().noise("w", {10, 10}, 1);
  const Model b = Model()
                      .noise("w", {10, 10}, 1)
                      .noise("v", {10}, 2)
                      .noise("optimizer.state.0.exp_avg", {10, 10}, 3);
  const Answer answer = answer_to(analyses::memory_analysis, a, b);
  EXPECT_EQ(text_of(answer, "delta_bytes"), "40");
  EXPECT_EQ(text_of(answer, "bytes_b"), "440");
  EXPECT_EQ(text_of(answer, "beside_the_model_b"), "400");
  EXPECT_EQ(text_of(answer, "training_bytes"), "1760");
  EXPECT_EQ(cell(list_of(answer, "dtypes"), 0, "bytes_b"), "840");
}

// unknown: keys and values without a config
TEST(MemoryAnalysis, KnowsNoCacheWithoutAConfig) {
  const Model model = Model().noise("w", {10, 10}, 1);
  const Answer answer = answer_to(analyses::memory_analysis, model, model);
  EXPECT_EQ(text_of(answer, "kv_cache_bytes_per_token"), "unknown");
  EXPECT_EQ(answer.missing.size(), 1);
}

}  // namespace
}  // namespace tensordiff
