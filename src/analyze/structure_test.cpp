// Questions about structure and cost: architecture, efficiency, rank, what changed, speed,
// quantization.

#include "analyze/structure.h"

#include <gtest/gtest.h>

#include <cmath>

#include "analyze/analysis.h"
#include "analyze/roofline.h"
#include "analyze/test_models.h"

namespace tensordiff {
namespace {

Model transformer(uint64_t layers, uint64_t vocabulary) {
  Model model = Model().noise("model.embed_tokens.weight", {vocabulary, 16}, 1);
  for (uint64_t i = 0; i < layers; ++i) {
    const std::string layer = "model.layers." + std::to_string(i) + ".";
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                             "self_attn.o_proj", "mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"})
      model.noise(layer + name + ".weight", {16, 16}, static_cast<unsigned>(i) + 2);
  }
  return model;
}

// planted: an MLP against a transformer
TEST(ArchitectureComparison, TellsFamiliesApart) {
  const Model network = Model().noise("fc1.weight", {8, 4}, 1).noise("fc2.weight", {2, 8}, 2);
  const Answer answer = answer_to(analyses::architecture_comparison, network, transformer(2, 50));
  EXPECT_EQ(text_of(answer, "type1"), "mlp");
  EXPECT_EQ(text_of(answer, "type2"), "transformer, gated mlp");
  EXPECT_EQ(text_of(answer, "vocabulary_b"), "50");
  EXPECT_EQ(text_of(answer, "width_b"), "16");
  EXPECT_EQ(text_of(answer, "layers_b"), "2");
}

TEST(ArchitectureComparison, ListsWhatIsAddedAndReshaped) {
  const Answer answer =
      answer_to(analyses::architecture_comparison, transformer(2, 50), transformer(4, 50));
  EXPECT_EQ(text_of(answer, "layers_added"), "2-3");
  EXPECT_EQ(text_of(answer, "layers_removed"), "none");
  EXPECT_EQ(text_of(answer, "differences_in_all"), "14");
  EXPECT_EQ(cell(list_of(answer, "differences"), 0, "difference"), "added");
}

TEST(ArchitectureComparison, KnowsOtherFamiliesByTheirTensors) {
  const auto family = [](Model model) {
    read_places(model.catalog);
    return name_of(structure_of(model.catalog, Facts()).family);
  };
  EXPECT_EQ(family(Model().noise("conv1.weight", {4, 3, 3, 3}, 1)), "convolutional");
  EXPECT_EQ(family(Model().noise("lstm.weight_ih_l0", {8, 4}, 1)), "recurrent");
  EXPECT_EQ(
      family(transformer(1, 9).noise("model.layers.0.mlp.experts.0.up_proj.weight", {4, 4}, 1)),
      "transformer, mixture of experts");
}

// unknown: heads without a config, the family of vectors
TEST(ArchitectureComparison, KnowsNoHeadsWithoutAConfigAndNoFamilyOfVectors) {
  const Answer answer =
      answer_to(analyses::architecture_comparison, transformer(1, 9), transformer(1, 9));
  EXPECT_EQ(text_of(answer, "heads_a"), "none");
  EXPECT_EQ(answer.missing.size(), 1);
  const Model vectors = Model().noise("x", {8}, 1);
  EXPECT_EQ(text_of(answer_to(analyses::architecture_comparison, vectors, vectors), "type1"),
            "unknown");
}

// planted: a matrix of rank 2 and one with a repeated row
TEST(ParamEfficiency, SeesRankAndDuplicates) {
  std::vector<float> tied = noise(32 * 32, 1);
  for (std::size_t i = 0; i < 32; ++i) tied[32 + i] = tied[i];
  const Model a = Model().noise("w", {32, 32}, 1).noise("v", {32, 32}, 2);
  const Model b = Model().add("w", {32, 32}, low_rank_noise(32, 32, 2, 5)).add("v", {32, 32}, tied);
  const Answer answer = answer_to(analyses::param_efficiency_analysis, a, b);
  EXPECT_EQ(text_of(answer, "wasteful"), "1");
  EXPECT_EQ(cell(list_of(answer, "matrices"), 0, "tensor"), "w");
  EXPECT_LE(number_of(list_of(answer, "matrices").rows[0][2]), 2.01 / 32);
  EXPECT_EQ(text_of(answer, "duplicate_rows_a"), "0");
  EXPECT_EQ(cell(list_of(answer, "matrices"), 1, "tensor"), "v");
  EXPECT_EQ(cell(list_of(answer, "matrices"), 1, "duplicate_rows_b"), "1");
  EXPECT_GT(number_of(answer, "rank_use_a"), 0.5);
}

// unknown: vectors
TEST(ParamEfficiency, KnowsNothingOfVectors) {
  const Model vectors = Model().noise("bias", {8}, 1);
  const Answer answer = answer_to(analyses::param_efficiency_analysis, vectors, vectors);
  EXPECT_EQ(text_of(answer, "rank_use_b"), "unknown");
}

// planted: a change of rank 4 in a matrix that is sampled
TEST(LowRankChange, FindsAPlantedRank) {
  // Large enough to be sampled.
  const std::vector<float> w = noise(300 * 400, 1);
  const Model a = Model().add("w", {300, 400}, w).noise("frozen", {40, 40}, 3);
  const Model b = Model()
                      .add("w", {300, 400}, plus(w, times(low_rank_noise(300, 400, 4, 7), 0.01F)))
                      .noise("frozen", {40, 40}, 3);
  const Answer answer = answer_to(analyses::low_rank, a, b);
  EXPECT_EQ(text_of(answer, "verdict"), "low rank");
  EXPECT_EQ(text_of(answer, "rank_max"), "4");
  EXPECT_EQ(text_of(answer, "changed_matrices_in_all"), "1");
  EXPECT_FALSE(answer.notes.empty());
}

// unknown: noise and unchanged matrices have no rank to tell
TEST(LowRankChange, FindsNoneInNoiseNorInTheSame) {
  const std::vector<float> w = noise(60 * 60, 1);
  const Model a = Model().add("w", {60, 60}, w);
  const Model b = Model().add("w", {60, 60}, plus(w, noise(3600, 2)));
  EXPECT_EQ(text_of(answer_to(analyses::low_rank, a, b), "verdict"), "full rank");
  EXPECT_EQ(text_of(answer_to(analyses::low_rank, a, a), "verdict"), "no matrix changed");
}

// planted: a rank of 64 in a matrix that is sampled, which takes a larger sample
TEST(LowRankChange, FindsHigherRanksOrSaysHowFarItLooked) {
  constexpr std::size_t kSide = 340;
  const std::vector<float> w = noise(kSide * kSide, 1);
  const Model a = Model().add("w", {kSide, kSide}, w);
  const auto answer = [&](const std::vector<float>& change) {
    return answer_to(analyses::low_rank, a, Model().add("w", {kSide, kSide}, plus(w, change)));
  };
  EXPECT_EQ(text_of(answer(times(low_rank_noise(kSide, kSide, 64, 5), 0.01F)), "rank_max"), "64");
  EXPECT_EQ(text_of(answer(times(noise(kSide * kSide, 5), 0.01F)), "verdict"),
            "no low rank: more than 160 tested");
}

// planted: half the bytes on a device that is bound by memory
TEST(InferenceSpeed, IsTheRoofline) {
  const std::vector<float> w = noise(64 * 64, 1);
  const Model a = Model().add("fc.weight", {64, 64}, w);
  const Model b = Model().add("fc.weight", as_bf16(w, {64, 64}));
  AnalyzeOptions options;
  options.device = "1e12:1e9";  // So much arithmetic that memory is what counts.
  const Answer answer = answer_to(analyses::inference_speed_estimate, a, b, options);
  EXPECT_DOUBLE_EQ(number_of(answer, "tokens_per_second_a"), 1e9 / (64 * 64 * 4));
  EXPECT_DOUBLE_EQ(number_of(answer, "speedup"), 2);
  EXPECT_EQ(text_of(answer, "bound_a"), "memory");
  EXPECT_EQ(number_of(answer, "flops_per_token_a"), 2 * 64 * 64);
  options.device = "1e3:1e12";
  EXPECT_EQ(text_of(answer_to(analyses::inference_speed_estimate, a, b, options), "bound_a"),
            "arithmetic");
}

// unknown: convolutions and devices that are not known
TEST(InferenceSpeed, IsUnknownForConvolutionsAndForUnknownDevices) {
  const Model model = Model().noise("conv.weight", {4, 3, 3, 3}, 1);
  const Answer answer = answer_to(analyses::inference_speed_estimate, model, model);
  EXPECT_EQ(text_of(answer, "tokens_per_second_b"), "unknown");
  AnalyzeOptions options;
  options.device = "abacus";
  const Answer lost = answer_to(analyses::inference_speed_estimate, model, model, options);
  EXPECT_EQ(text_of(lost, "device"), "unknown");
  EXPECT_NE(lost.missing.at(0).find("h200"), std::string::npos);
  EXPECT_FALSE(find_device("-1:5"));
}

// planted: bf16 costs next to nothing, 3 bits cost much
TEST(PerformanceImpact, JudgesRoundingByItsNoise) {
  const std::vector<float> w = noise(64 * 256, 1);
  const Model a = Model().add("fc.weight", {64, 256}, w);
  const Model half = Model().add("fc.weight", as_bf16(w, {64, 256}));
  const Answer answer = answer_to(analyses::performance_impact_estimate, a, half);
  EXPECT_EQ(text_of(answer, "quality_impact"), "negligible");
  EXPECT_DOUBLE_EQ(number_of(answer, "speedup"), 2);
  const Model coarse = Model().add("fc.weight", {64, 256}, rounded(w, 256, 3));
  EXPECT_EQ(text_of(answer_to(analyses::performance_impact_estimate, a, coarse), "quality_impact"),
            "large");
}

// unknown: what retraining does to quality
TEST(PerformanceImpact, CannotKnowWhatRetrainingDoes) {
  const Model a = Model().noise("fc.weight", {64, 64}, 1),
              b = Model().noise("fc.weight", {64, 64}, 2);
  EXPECT_EQ(text_of(answer_to(analyses::performance_impact_estimate, a, b), "quality_impact"),
            "unknown");
  EXPECT_EQ(text_of(answer_to(analyses::performance_impact_estimate, a, a), "quality_impact"),
            "none");
}

}  // namespace
}  // namespace tensordiff
