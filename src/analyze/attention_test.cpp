// Questions about attention, embeddings and layers as representations.

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "analyze/analysis.h"
#include "analyze/attention_heads.h"
#include "analyze/test_models.h"

namespace tensordiff {
namespace {

constexpr uint64_t kWidth = 32, kHeads = 4, kKvHeads = 2, kHeadSize = 8;

// The parts of one layer of grouped-query attention.
struct Weights {
  std::vector<float> q = noise(kHeads * kHeadSize * kWidth, 1);
  std::vector<float> k = noise(kKvHeads * kHeadSize * kWidth, 2);
  std::vector<float> v = noise(kKvHeads * kHeadSize * kWidth, 3);
  std::vector<float> o = noise(kWidth * kHeads * kHeadSize, 4);
};

Model attention(const Weights& weights, bool with_config = true) {
  Model model;
  const std::string layer = "model.layers.0.self_attn.";
  model.add(layer + "q_proj.weight", {kHeads * kHeadSize, kWidth}, weights.q);
  model.add(layer + "k_proj.weight", {kKvHeads * kHeadSize, kWidth}, weights.k);
  model.add(layer + "v_proj.weight", {kKvHeads * kHeadSize, kWidth}, weights.v);
  model.add(layer + "o_proj.weight", {kWidth, kHeads * kHeadSize}, weights.o);
  if (with_config)
    model.scalar("config.num_attention_heads", kHeads)
        .scalar("config.num_key_value_heads", kKvHeads);
  return model;
}

// Rows of W_Q and columns of W_O of one head, times a factor.
void scale_head(Weights& weights, uint64_t head, float factor) {
  for (uint64_t i = 0; i < kHeadSize * kWidth; ++i)
    weights.q[head * kHeadSize * kWidth + i] *= factor;
  for (uint64_t row = 0; row < kWidth; ++row)
    for (uint64_t i = 0; i < kHeadSize; ++i)
      weights.o[row * kHeads * kHeadSize + head * kHeadSize + i] *= factor;
}

// planted: one head changed
TEST(AttentionAnalysis, FindsTheHeadThatChanged) {
  Weights tuned;
  scale_head(tuned, 2, 1.5F);
  const Answer answer = answer_to(analyses::attention_analysis, attention({}), attention(tuned));
  EXPECT_EQ(text_of(answer, "most_changed_head"), "2");
  EXPECT_EQ(text_of(answer, "changed_heads"), "1");
  EXPECT_EQ(text_of(answer, "head_size"), "8");
  EXPECT_EQ(text_of(answer, "change_k"), "0");
  ASSERT_EQ(answer.charts.size(), 1);
  EXPECT_EQ(answer.charts[0].values[0], 0);
  EXPECT_GT(answer.charts[0].values[2], 0.2);
}

// Two heads of queries share one of keys: both change with it.
// edge: heads that share keys and values
TEST(AttentionAnalysis, KnowsSharedKeys) {
  Weights tuned;
  for (uint64_t i = 0; i < kHeadSize * kWidth; ++i) tuned.k[i] *= 2;
  const Answer answer = answer_to(analyses::attention_analysis, attention({}), attention(tuned));
  EXPECT_EQ(text_of(answer, "changed_heads"), "2");
}

// unknown: heads without their number
TEST(AttentionAnalysis, IsUnknownWithoutTheNumberOfHeads) {
  const Answer answer =
      answer_to(analyses::attention_analysis, attention({}, false), attention({}, false));
  EXPECT_EQ(text_of(answer, "heads"), "unknown");
  EXPECT_NE(answer.missing.at(0).find("number of attention heads"), std::string::npos);
  const Model mlp = Model().noise("fc.weight", {4, 4}, 1);
  EXPECT_EQ(text_of(answer_to(analyses::attention_analysis, mlp, mlp), "heads"), "unknown");
}

// GPT-2 has query, key and value side by side, inputs first.
TEST(AttentionAnalysis, SplitsFusedProjections) {
  std::vector<float> before = noise(16 * 48, 1), after = before;
  for (std::size_t row = 0; row < 16; ++row)
    for (std::size_t i = 0; i < 8; ++i) after[row * 48 + 8 + i] *= 2;  // Head 1 of the query.
  const auto model = [](const std::vector<float>& values) {
    return Model().add("h.0.attn.c_attn.weight", {16, 48}, values).scalar("config.n_head", 2);
  };
  const Answer answer = answer_to(analyses::attention_analysis, model(before), model(after));
  EXPECT_EQ(text_of(answer, "most_changed_head"), "1");
  EXPECT_EQ(text_of(answer, "changed_heads"), "1");
  EXPECT_EQ(text_of(answer, "change_v"), "0");
}

// planted: heads of different norms
TEST(HeadImportance, FollowsTheNorms) {
  Weights tuned;
  scale_head(tuned, 3, 10);
  const Answer answer = answer_to(analyses::head_importance, attention({}), attention(tuned));
  EXPECT_EQ(text_of(answer, "most_important_head"), "3");
  EXPECT_GT(number_of(answer, "heads_in_use_a"), 0.95);
  EXPECT_LT(number_of(answer, "heads_in_use_b"), 0.9);
  const Answer same = answer_to(analyses::head_importance, attention({}), attention({}));
  EXPECT_DOUBLE_EQ(number_of(same, "rank_correlation"), 1);
}

// unknown: heads without their number
TEST(HeadImportance, IsUnknownWithoutHeads) {
  const Answer answer =
      answer_to(analyses::head_importance, attention({}, false), attention({}, false));
  EXPECT_EQ(text_of(answer, "most_important_head"), "unknown");
}

// planted: two heads changed places
TEST(AttentionPatternDiff, FindsMovedHeads) {
  Weights moved;
  const auto size = static_cast<std::ptrdiff_t>(kHeadSize * kWidth);
  std::swap_ranges(moved.q.begin(), moved.q.begin() + size, moved.q.begin() + size);
  const Answer answer =
      answer_to(analyses::attention_pattern_diff, attention({}), attention(moved));
  EXPECT_EQ(text_of(answer, "source"), "weights");
  EXPECT_EQ(text_of(answer, "moved"), "2");
  EXPECT_EQ(cell(list_of(answer, "moved_heads"), 0, "head_b"), "0");
  EXPECT_EQ(cell(list_of(answer, "moved_heads"), 0, "head_a"), "1");
  const Answer same = answer_to(analyses::attention_pattern_diff, attention({}), attention({}));
  EXPECT_EQ(text_of(same, "moved"), "0");
  EXPECT_NEAR(number_of(same, "largest"), 0, 1e-9);
}

// edge: stored maps are used instead of weights
TEST(AttentionPatternDiff, ReadsMaps) {
  // Two heads of two rows: the second head looks elsewhere.
  const std::vector<float> before = {1, 0, 0.5F, 0.5F, 1, 0, 1, 0};
  const std::vector<float> after = {1, 0, 0.5F, 0.5F, 0, 1, 0, 1};
  const auto model = [](const std::vector<float>& map) {
    return Model().add("layers.0.attn_weights", {1, 2, 2, 2}, map);
  };
  const Answer answer = answer_to(analyses::attention_pattern_diff, model(before), model(after));
  EXPECT_EQ(text_of(answer, "source"), "attention_maps");
  EXPECT_DOUBLE_EQ(number_of(answer, "distance"), 0.5);
  EXPECT_DOUBLE_EQ(number_of(answer, "largest"), 1);
  EXPECT_EQ(cell(list_of(answer, "by_distance"), 0, "head"), "1");
}

// unknown: neither maps nor heads are there
TEST(AttentionPatternDiff, IsUnknownWithoutMapsAndHeads) {
  const Answer answer =
      answer_to(analyses::attention_pattern_diff, attention({}, false), attention({}, false));
  EXPECT_EQ(text_of(answer, "distance"), "unknown");
  EXPECT_EQ(answer.missing.size(), 1);
}

// planted: some tokens moved
TEST(EmbeddingAnalysis, FindsTheTokensThatMoved) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / "tensordiff_tokens";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer.json") << R"({"model": {"vocab": {"the": 0, "cat": 7}}})";
  std::vector<float> table = noise(40 * 8, 1), moved = table;
  for (std::size_t i = 0; i < 8; ++i) moved[7 * 8 + i] *= -1;
  Model a = Model().add("model.embed_tokens.weight", {40, 8}, table);
  Model b = Model().add("model.embed_tokens.weight", {40, 8}, moved);
  b.catalog.beside = [&](std::string_view name) { return map_file((folder / name).string()); };
  const Answer answer = answer_to(analyses::embedding_analysis, a, b);
  EXPECT_EQ(text_of(answer, "rows_moved"), "1");
  EXPECT_DOUBLE_EQ(number_of(answer, "largest_drift"), 2);
  EXPECT_EQ(cell(list_of(answer, "most_moved"), 0, "row"), "7");
  EXPECT_EQ(cell(list_of(answer, "most_moved"), 0, "token"), "cat");
  EXPECT_LT(number_of(answer, "neighbours_kept"), 1);
  EXPECT_GT(number_of(answer, "neighbours_kept"), 0.8);
  EXPECT_TRUE(answer.missing.empty());
  std::filesystem::remove_all(folder);
}

// unknown: no embedding table
TEST(EmbeddingAnalysis, IsUnknownWithoutATable) {
  const Model model = Model().noise("fc.weight", {40, 8}, 1);
  EXPECT_EQ(text_of(answer_to(analyses::embedding_analysis, model, model), "table"), "unknown");
  const Model same = Model().noise("embed_tokens.weight", {40, 8}, 1);
  const Answer answer = answer_to(analyses::embedding_analysis, same, same);
  EXPECT_EQ(text_of(answer, "rows_moved"), "0");
  EXPECT_EQ(text_of(answer, "neighbours_kept"), "1");
  EXPECT_EQ(answer.missing.size(), 1);
}

Model layers_with(std::initializer_list<unsigned> seeds) {
  Model model;
  int64_t depth = 0;
  for (const unsigned seed : seeds)
    model.noise("layers." + std::to_string(depth++) + ".mlp.w", {20, 30}, seed);
  return model;
}

// planted: layers that changed places
TEST(SimilarityMatrix, FindsLayersThatChangedPlaces) {
  const Answer answer =
      answer_to(analyses::similarity_matrix, layers_with({1, 2, 3}), layers_with({1, 3, 2}));
  EXPECT_EQ(text_of(answer, "like_another_in_all"), "2");
  EXPECT_EQ(cell(list_of(answer, "like_another"), 0, "layer_b"), "1");
  EXPECT_EQ(cell(list_of(answer, "like_another"), 0, "layer_a"), "2");
  ASSERT_EQ(answer.charts.size(), 2);
  EXPECT_NEAR(answer.charts[0].values[0], 1, 1e-9);
  EXPECT_NEAR(answer.charts[1].values[0], 1, 1e-9);
  EXPECT_LT(answer.charts[0].values[4], 0.5);
}

// unknown: a single matrix has nothing to be like
TEST(SimilarityMatrix, IsOneOnTheDiagonalOfTheSameAndUnknownForOneMatrix) {
  const Answer same =
      answer_to(analyses::similarity_matrix, layers_with({1, 2}), layers_with({1, 2}));
  EXPECT_NEAR(number_of(same, "diagonal_cosine"), 1, 1e-9);
  EXPECT_NEAR(number_of(same, "diagonal_cka"), 1, 1e-9);
  EXPECT_EQ(text_of(same, "like_another_in_all"), "0");
  const Answer one = answer_to(analyses::similarity_matrix, layers_with({1}), layers_with({1}));
  EXPECT_EQ(text_of(one, "diagonal_cosine"), "unknown");
}

// Sixty rows around four centres; `turn` says which rows lie where.
std::vector<float> clustered(std::size_t turn) {
  std::vector<float> rows = times(noise(60 * 16, 1), 0.1F);
  for (std::size_t i = 0; i < 60; ++i) rows[i * 16 + (turn == 0 ? i % 4 : (i / turn) % 4)] += 5;
  return rows;
}

// planted: four clusters, kept and mixed
TEST(ClusteringChange, ComparesClustersOfRows) {
  const Model a = Model().add("w", {60, 16}, clustered(0));
  const Answer same = answer_to(analyses::clustering_change, a, a);
  EXPECT_EQ(text_of(same, "with_clusters"), "1");
  EXPECT_DOUBLE_EQ(number_of(same, "agreement"), 1);
  const Answer other =
      answer_to(analyses::clustering_change, a, Model().add("w", {60, 16}, clustered(4)));
  EXPECT_LT(number_of(other, "agreement"), 0.5);
}

// unknown: noise has no clusters to keep
TEST(ClusteringChange, SaysWhereThereAreNoClusters) {
  const Model noise = Model().noise("w", {190, 60}, 1);
  const Answer answer = answer_to(analyses::clustering_change, noise, noise);
  EXPECT_EQ(text_of(answer, "agreement"), "unknown");
  EXPECT_EQ(cell(list_of(answer, "matrices"), 0, "clusters"), "0");
}

}  // namespace
}  // namespace tensordiff
