// Each analysis at the edge of what it can tell: cases that a simpler rule gets wrong.

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analysis.h"
#include "analyze/layer_map.h"
#include "analyze/structure.h"
#include "analyze/test_models.h"

namespace tensordiff {
namespace {

// A gated transformer whose layer i holds the values of `from[i]`.
Model transformer(const std::vector<unsigned>& from, uint64_t vocabulary = 40) {
  Model model = Model().noise("model.embed_tokens.weight", {vocabulary, 16}, 1);
  for (std::size_t i = 0; i < from.size(); ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    for (const char* name : {"self_attn.q_proj", "self_attn.o_proj", "mlp.up_proj"})
      model.noise(layer + name + ".weight", {16, 16}, 100 + 10 * from[i]);
  }
  return model.noise("model.norm.weight", {16}, 3);
}

// edge: a weight in float16 that only rounding moved is still a change
TEST(ChangeSummary, CountsRoundingAsAChange) {
  const std::vector<float> w = noise(64, 1);
  const Model a = Model().add("w", {8, 8}, w);
  const Answer answer =
      answer_to(analyses::change_summary, a, Model().add("w", stored_in(DType::f16, w, {8, 8})));
  EXPECT_EQ(text_of(answer, "retyped"), "1");
  EXPECT_LT(number_of(answer, "magnitude"), 1e-3);
}

// edge: a change of rank 1 that is smaller than a thousandth of the weights
TEST(LowRankChange, FindsASmallChange) {
  const std::vector<float> w = noise(60 * 60, 1);
  const Model b = Model().add("w", {60, 60}, plus(w, times(low_rank_noise(60, 60, 1, 5), 5e-4F)));
  const Answer answer = answer_to(analyses::low_rank, Model().add("w", {60, 60}, w), b);
  EXPECT_EQ(text_of(answer, "rank_max"), "1");
}

// planted: stacked, dropped and repeated layers (depth up-scaling, passthrough merges)
TEST(ArchitectureComparison, MapsLayersByTheirValues) {
  const Model a = transformer({0, 1, 2, 3, 4, 5});
  const auto answer = [&](const std::vector<unsigned>& from) {
    return answer_to(analyses::architecture_comparison, a, transformer(from));
  };
  const Answer stacked = answer({0, 1, 2, 3, 2, 3, 4, 5});
  EXPECT_EQ(text_of(stacked, "layer_map"), "A 0-3, A 2-5");
  EXPECT_EQ(text_of(stacked, "layers_repeated"), "2-3");
  EXPECT_EQ(text_of(stacked, "layers_dropped"), "none");
  const Answer dropped = answer({0, 1, 4, 5});
  EXPECT_EQ(text_of(dropped, "layer_map"), "A 0-1, A 4-5");
  EXPECT_EQ(text_of(dropped, "layers_dropped"), "2-3");
  EXPECT_EQ(text_of(answer({0, 1, 2, 3, 4, 5}), "layer_map"), "each from its own");
  ASSERT_EQ(stacked.charts.size(), 1U);  // The map as a picture, B across.
  EXPECT_EQ(stacked.charts[0].x.size(), 8U);
  EXPECT_NEAR(stacked.charts[0].values[2 * 8 + 4], 1, 1e-6);
}

// edge: layers of another model are like none of A
TEST(ArchitectureComparison, MapsNoLayerToAStranger) {
  const Answer answer =
      answer_to(analyses::architecture_comparison, transformer({0, 1, 2}), transformer({7, 8, 9}));
  EXPECT_EQ(text_of(answer, "layer_map"), "unknown");
  const Answer mixed = answer_to(analyses::architecture_comparison, transformer({0, 1, 2}),
                                 transformer({0, 8, 9, 2}));
  EXPECT_EQ(text_of(mixed, "layer_map"), "A 0, 2 of none of A, A 2");
}

// edge: a head that is the embedding stored again is counted once
TEST(MemoryAnalysis, CountsATiedHeadOnce) {
  const Model a = transformer({0, 1});
  Model b = a;
  b.noise("lm_head.weight", {40, 16}, 1);
  const Answer memory = answer_to(analyses::memory_analysis, a, b);
  EXPECT_EQ(text_of(memory, "delta_bytes"), "0");
  Model untied = a;
  untied.noise("lm_head.weight", {40, 16}, 2);
  EXPECT_EQ(text_of(answer_to(analyses::memory_analysis, a, untied), "delta_bytes"), "2560");
}

// edge: a model without a stored head passes its embedding for each token
TEST(InferenceSpeed, CountsATiedHeadOnBothSides) {
  const Model a = transformer({0, 1});
  Model b = a;
  b.noise("lm_head.weight", {40, 16}, 1);
  const Answer answer = answer_to(analyses::inference_speed_estimate, a, b);
  EXPECT_DOUBLE_EQ(number_of(answer, "speedup"), 1);
}

// edge: a vocabulary that grew is compared as far as both sides have it
TEST(EmbeddingAnalysis, ComparesWhatAGrownVocabularyShares) {
  const std::vector<float> w = noise(40 * 16, 1);
  std::vector<float> grown = noise(48 * 16, 2);
  std::copy(w.begin(), w.end(), grown.begin());
  grown[5 * 16] += 1;
  const Answer answer =
      answer_to(analyses::embedding_analysis, Model().add("embed_tokens.weight", {40, 16}, w),
                Model().add("embed_tokens.weight", {48, 16}, grown));
  EXPECT_EQ(text_of(answer, "vocabulary"), "8 new rows; 40 compared");
  EXPECT_EQ(text_of(answer, "rows_moved"), "1");
  EXPECT_EQ(cell(list_of(answer, "most_moved"), 0, "row"), "5");
}

// edge: more layers on one side than on the other
TEST(SimilarityMatrix, ComparesDifferentDepths) {
  const Answer answer =
      answer_to(analyses::similarity_matrix, transformer({0, 1, 2}), transformer({0, 1, 1, 2}));
  ASSERT_EQ(answer.charts.size(), 2U);
  EXPECT_EQ(answer.charts[0].x.size(), 4U);
  EXPECT_EQ(answer.charts[0].y.size(), 3U);
  EXPECT_EQ(text_of(answer, "like_another_in_all"), "2");
}

// edge: 3 and 12 clusters are found as that many, whatever the most that is tried
TEST(ClusteringChange, ChoosesTheNumberOfClusters) {
  for (const std::size_t clusters : {3U, 12U}) {
    const auto rows_of = [&](unsigned seed) {
      std::vector<float> rows = times(noise(120 * 16, seed), 0.3F);
      for (std::size_t i = 0; i < 120; ++i) rows[i * 16 + i % clusters] += 5;
      return rows;
    };
    const Answer answer =
        answer_to(analyses::clustering_change, Model().add("w", {120, 16}, rows_of(1)),
                  Model().add("w", {120, 16}, rows_of(2)));
    EXPECT_EQ(cell(list_of(answer, "matrices"), 0, "clusters"), std::to_string(clusters));
    EXPECT_DOUBLE_EQ(number_of(answer, "agreement"), 1);
  }
}

// edge: a rate that only one side stores is unknown there, and has not changed
TEST(LearningRate, IsUnknownOnTheSideThatDoesNotStoreIt) {
  const Model a = Model().noise("w", {8, 8}, 1);
  Model b = Model().noise("w", {8, 8}, 2);
  b.scalar("optimizer.param_groups.0.lr", 0.01);
  const Answer answer = answer_to(analyses::learning_rate_analysis, a, b);
  EXPECT_EQ(text_of(answer, "lr_a"), "unknown");
  EXPECT_EQ(text_of(answer, "schedule"), "unknown");
}

// edge: a setting that only one side stores is not a change
TEST(HyperparameterImpact, DoesNotCountWhatOneSideStores) {
  Model a = Model().noise("w", {8, 8}, 1), b = Model().noise("w", {8, 8}, 2);
  a.scalar("optimizer.param_groups.0.eps", 1e-8);
  b.scalar("optimizer.param_groups.0.eps", 1e-8).scalar("optimizer.param_groups.0.lr", 0.01);
  const Answer answer = answer_to(analyses::hyperparameter_impact, a, b);
  EXPECT_EQ(text_of(answer, "changed"), "0");
  EXPECT_EQ(text_of(answer, "on_one_side"), "1");
}

// edge: zeros all over have no rank to use
TEST(ParamEfficiency, SurvivesZeros) {
  const Model zeros = Model().add("w", {8, 8}, std::vector<float>(64));
  const Answer answer = answer_to(analyses::param_efficiency_analysis, zeros, zeros);
  EXPECT_FALSE(std::isnan(number_of(answer, "sparsity_b")) &&
               text_of(answer, "rank_use_b").empty());
}

// edge: one retrained layer among rounded ones makes the quality unknown
TEST(PerformanceImpact, DoesNotJudgeAMixture) {
  const std::vector<float> w = noise(64 * 64, 1), v = noise(64 * 64, 2);
  const Model a = Model().add("w", {64, 64}, w).add("v", {64, 64}, v);
  const Model b = Model().add("w", {64, 64}, rounded(w, 64, 7)).add("v", {64, 64}, noise(4096, 3));
  EXPECT_EQ(text_of(answer_to(analyses::performance_impact_estimate, a, b), "quality_impact"),
            "unknown");
}

// edge: heads that are all alike share the importance of their layer
TEST(HeadImportance, SharesItAmongEqualHeads) {
  Model model;
  for (const char* name : {"q_proj", "k_proj", "v_proj", "o_proj"})
    model.add(std::string("model.layers.0.self_attn.") + name + ".weight", {16, 16},
              std::vector<float>(256, 0.5F));
  model.scalar("config.num_attention_heads", 4);
  EXPECT_DOUBLE_EQ(number_of(answer_to(analyses::head_importance, model, model), "heads_in_use_b"),
                   1);
}

// edge: a norm that moved by 1 % is no risk
TEST(RiskAssessment, IsLowWhereNormsMoveALittle) {
  std::vector<float> norm(64, 1.0F);
  const std::vector<float> w = noise(64 * 64, 1);
  const Model a = Model().add("layers.0.norm.weight", {64}, norm).add("w", {64, 64}, w);
  const Model b =
      Model().add("layers.0.norm.weight", {64}, times(norm, 1.01F)).add("w", {64, 64}, w);
  EXPECT_EQ(text_of(answer_to(analyses::risk_assessment, a, b), "level"), "low");
}

// edge: 8 bits are above the limit of noise, 3 bits below it
TEST(AlertOnDegradation, HoldsRoundingToItsLimit) {
  const std::vector<float> w = noise(64 * 64, 1);
  const Model a = Model().add("w", {64, 64}, w);
  const auto alarm = [&](int levels) {
    const Model b = Model().add("w", {64, 64}, rounded(w, 64, levels));
    return answer_to(analyses::alert_on_degradation, a, b).alarm.has_value();
  };
  EXPECT_FALSE(alarm(127));
  EXPECT_TRUE(alarm(3));
}

}  // namespace
}  // namespace tensordiff
