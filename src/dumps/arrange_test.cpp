// What a dump is compared as: outputs of modules, passes and facts.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include "dumps/layout.h"
#include "dumps/passes.h"
#include "formats/statistics.h"
#include "tensor/reader.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Texts = std::vector<std::string>;
using Rows = std::vector<float>;

// One column: the rows of a pass.
Tensor rows(std::string name, const Rows& values) {
  return {std::move(name), f32_view({values.size(), 1}, values), ""};
}

View integers_view(const std::vector<int64_t>& values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  return contiguous_view(DType::i64, {values.size()}, ByteSource(bytes_of(bytes))).value();
}

Tensor integers(std::string name, const std::vector<int64_t>& values) {
  return {std::move(name), integers_view(values), ""};
}

Rows values_of(const Tensor& tensor) { return values_of(tensor.view); }

Catalog arranged(std::vector<Tensor> tensors) {
  Catalog catalog;
  catalog.tensors = std::move(tensors);
  EXPECT_TRUE(arrange(catalog).ok());
  return catalog;
}

const Tensor* find(const Catalog& catalog, std::string_view known_as) {
  for (const Tensor& tensor : catalog.tensors)
    if (tensor.pairing_name() == known_as) return &tensor;
  return nullptr;
}

Texts names_in(const Catalog& catalog) {
  Texts names;
  for (const Tensor& tensor : catalog.tensors)
    names.push_back(tensor.known_as.empty()
                        ? tensor.name
                        : fmt::format("{} as {}", tensor.name, tensor.known_as));
  return names;
}

TEST(Arrange, HiddenAndResidualAreTheirSum) {
  const Catalog catalog =
      arranged({rows("model.embed_tokens", {1, 1}), rows("model.layers.0.0", {1, 2}),
                rows("model.layers.0.1", {10, 20})});
  EXPECT_EQ(names_in(catalog),
            (Texts{"model.embed_tokens", "model.layers.0.0 as model.layers.0.hidden_part",
                   "model.layers.0", "model.layers.0.1 as model.layers.0.residual_part"}));
  EXPECT_EQ(values_of(*find(catalog, "model.layers.0")), (Rows{11, 22}));
  EXPECT_EQ(catalog.layout, "module-hooks");
}

// The norm of a sum is not the sum of the norms.
TEST(Arrange, StatisticsAreNotAddedUp) {
  std::vector<Tensor> tensors;
  const auto add = [&](const char* name, const Rows& values) {
    tensors.push_back({name, f32_view({4}, values), ""});
    tensors.back().made_from = fmt::format("{}{}", kStatisticsMark, kProbeStatistics);
  };
  add("model.layers.0.0", {1, 2, 3, 4}), add("model.layers.0.1", {10, 20, 30, 40});
  add("model.layers.1.input_layernorm.0", {5, 6, 7, 8});
  add("model.layers.1.input_layernorm.1", {11, 21, 31, 41});
  const Catalog catalog = arranged(std::move(tensors));
  EXPECT_EQ(values_of(*find(catalog, "model.layers.0")), (Rows{11, 21, 31, 41}));
}

TEST(Arrange, WhatAModelGivesIsTheFirstFieldOfItsDataclass) {
  const Catalog catalog =
      arranged({rows("transformer.h.0.0", {1, 2}), rows("transformer.h.0.1", {3, 4}),
                rows("transformer.last_hidden_state", {5, 6})});
  EXPECT_EQ(values_of(*find(catalog, "transformer")), (Rows{5, 6}));
}

TEST(Arrange, ANormGivesTheStreamBeside) {
  const Catalog catalog = arranged({rows("model.layers.0.post_attention_layernorm.0", {1}),
                                    rows("model.layers.0.post_attention_layernorm.1", {2}),
                                    rows("model.layers.1.input_layernorm.0", {3}),
                                    rows("model.layers.1.input_layernorm.1", {4}),
                                    rows("model.norm.0", {5}), rows("model.norm.1", {6})});
  EXPECT_EQ(values_of(*find(catalog, "model.layers.0.post_attention_layernorm")), Rows{1});
  EXPECT_EQ(values_of(*find(catalog, "model.layers.0.resid_mid")), Rows{2});
  EXPECT_EQ(values_of(*find(catalog, "model.layers.0")), Rows{4});  // Before layer 1.
  EXPECT_EQ(values_of(*find(catalog, "model.norm")), Rows{5});
  EXPECT_EQ(values_of(*find(catalog, "model.layers.1")), Rows{6});
}

// One RotaryEmbedding for all layers: the hook writes all names at once, over and over.
TEST(Arrange, OfASharedRotaryOnlyTheLastLayerIsKept) {
  std::vector<Tensor> tensors = {rows("model.layers.0.input_layernorm", {1})};
  for (const char* layer : {"0", "1"})
    for (const char* output : {"0", "1"})
      tensors.push_back(
          rows(fmt::format("model.layers.{}.self_attn.rotary_emb.{}", layer, output), {7}));
  tensors.push_back(rows("model.layers.0.self_attn.attn", {1}));
  tensors.push_back(rows("model.layers.1.input_layernorm", {1}));
  tensors.push_back(rows("model.layers.1.self_attn.attn", {1}));
  const Catalog catalog = arranged(std::move(tensors));
  EXPECT_EQ(find(catalog, "model.layers.0.self_attn.q_rope"), nullptr);
  EXPECT_NE(find(catalog, "model.layers.1.self_attn.q_rope"), nullptr);
  EXPECT_NE(find(catalog, "model.layers.1.self_attn.k_rope"), nullptr);
}

// It is compared behind the projections of its layer, not where the hook wrote it.
TEST(Arrange, ASharedRotaryStandsInItsLayer) {
  std::vector<Tensor> tensors;
  const auto add = [&](const char* name) { tensors.push_back(rows(name, {1})); };
  add("model.layers.0.input_layernorm"), add("model.layers.0.self_attn.qkv_proj");
  add("model.layers.0.self_attn.rotary_emb.0"), add("model.layers.0.self_attn.rotary_emb.1");
  add("model.layers.1.self_attn.rotary_emb.0"), add("model.layers.1.self_attn.rotary_emb.1");
  add("model.layers.1.input_layernorm"), add("model.layers.1.self_attn.qkv_proj");
  add("model.layers.1.self_attn.o_proj");
  const Texts names = names_in(arranged(std::move(tensors)));
  ASSERT_EQ(names.size(), 7u);
  EXPECT_EQ(names[3], "model.layers.1.self_attn.qkv_proj");
  EXPECT_EQ(names[4], "model.layers.1.self_attn.rotary_emb.0 as model.layers.1.self_attn.q_rope");
  EXPECT_EQ(names[6], "model.layers.1.self_attn.o_proj");
}

// Modules of Hugging Face give cosines and sines, those of engines query and key.
TEST(Arrange, CosinesAndSinesAreNoQueries) {
  const Catalog catalog =
      arranged({rows("model.layers.0.input_layernorm", {1, 1}),
                rows("model.layers.0.self_attn.rotary_emb.0", {0.6F, 1}),
                rows("model.layers.0.self_attn.rotary_emb.1", {0.8F, 0}),
                rows("model.rotary_emb.0", {1, 0}), rows("model.rotary_emb.1", {0, 1})});
  EXPECT_EQ(names_in(catalog),
            (Texts{"model.layers.0.input_layernorm",
                   "model.layers.0.self_attn.rotary_emb.0 as model.layers.0.rotary_cos",
                   "model.layers.0.self_attn.rotary_emb.1 as model.layers.0.rotary_sin",
                   "model.rotary_emb.0 as rotary_cos", "model.rotary_emb.1 as rotary_sin"}));
}

TEST(Arrange, PassesAreJoinedAlongTheirTokens) {
  const auto pass = [](int number, const Rows& values, const std::vector<int64_t>& positions) {
    const std::string start = fmt::format("Pass{:05d}.model.", number);
    return std::vector<Tensor>{rows(start + "embed_tokens", values),
                               rows(start + "layers.0.mlp", values),
                               integers(start + "forward_batch_info.positions", positions)};
  };
  // Two sequences of two and one tokens, and then the next of each.
  std::vector<Tensor> tensors = pass(0, {1, 2, 10}, {0, 1, 0});
  for (Tensor& tensor : pass(1, {3, 11}, {2, 1})) tensors.push_back(std::move(tensor));
  const Catalog catalog = arranged(std::move(tensors));
  EXPECT_EQ(values_of(*find(catalog, "model.layers.0.mlp")), (Rows{1, 2, 3, 10, 11}));
  ASSERT_EQ(catalog.tokens.size(), 5u);
  EXPECT_EQ(catalog.tokens[2].position, 2);
  EXPECT_EQ(catalog.tokens[4].sequence, 1);
  EXPECT_EQ(catalog.tensors.size(), 2u);  // Facts are no tensors.
}

// [tokens, 1, hidden], as Megatron has it; a pass of one token may be either.
TEST(Arrange, TokensMayStandBeforeABatchOfOne) {
  const auto of = [](std::string name, const Rows& values) {
    return Tensor{std::move(name), f32_view({values.size(), 1, 1}, values), ""};
  };
  const Catalog catalog = arranged(
      {of("step_0.model.embed_tokens", {1, 2, 3}), of("step_0.model.layers.0.mlp", {4, 5, 6}),
       of("step_1.model.embed_tokens", {7}), of("step_1.model.layers.0.mlp", {8})});
  ASSERT_TRUE(find(catalog, "model.layers.0.mlp"));
  EXPECT_EQ(values_of(*find(catalog, "model.layers.0.mlp")), (Rows{4, 5, 6, 8}));
  EXPECT_EQ(catalog.tokens.size(), 4U);
}

TEST(Arrange, LogitsAreOfTheLastTokenOfEachSequence) {
  const Catalog catalog = arranged({rows("Pass00000.model.embed_tokens", {1, 2, 3}),
                                    rows("Pass00000.model.layers.0.mlp", {1, 2, 3}),
                                    integers("Pass00000.model.positions", {0, 1, 0}),
                                    rows("Pass00000.lm_head", {20, 30})});
  const Tensor* logits = find(catalog, "lm_head");
  ASSERT_TRUE(logits && logits->tokens);
  EXPECT_EQ(*logits->tokens, (std::vector<uint64_t>{1, 2}));
}

TEST(Arrange, RanksStandBeforeTheName) {
  std::vector<Tensor> tensors;
  for (const char* rank : {"0", "1"})
    for (const char* name : {"model.embed_tokens", "model.layers.0.mlp"})
      tensors.push_back(
          rows(fmt::format("TP{0}_PP0_Rank{0}_pid20{0}/Pass00000.{1}", rank, name), {1}));
  EXPECT_EQ(names_in(arranged(std::move(tensors))),
            (Texts{"rank_0/model.embed_tokens", "rank_0/model.layers.0.mlp",
                   "rank_1/model.embed_tokens", "rank_1/model.layers.0.mlp"}));
}

TEST(Arrange, NoneLeavesADumpAsItIs) {
  Catalog catalog;
  catalog.tensors = {rows("model.layers.0.0", {1}), rows("model.layers.0.1", {1})};
  EXPECT_TRUE(arrange(catalog, "none").ok());
  EXPECT_EQ(names_in(catalog), (Texts{"model.layers.0.0", "model.layers.0.1"}));
  EXPECT_FALSE(arrange(catalog, "nonsense").ok());
}

// Lengths count what is cached: sequence 0 ends at position 4 and sequence 1 goes on with 5.
TEST(Passes, LengthsTellSequencesApartThatPositionsDoNot) {
  const RunTokens run = tokens_of({{0, {{}, {3, 4, 5, 6}, {5, 7}, 0}}});
  ASSERT_EQ(run.tokens.size(), 4u);
  EXPECT_EQ(run.tokens[1].sequence, 0);
  EXPECT_EQ(run.tokens[2].sequence, 1);
  EXPECT_EQ(run.tokens[2].position, 5);
}

// Two processes share eight tokens: the first has the first and the last quarter.
TEST(Passes, SharesOfAStepAreJoinedByPosition) {
  PassFacts first{{}, {0, 1, 6, 7}, {}, 4, {0, 2}}, second{{}, {2, 3, 4, 5}, {}, 4, {1, 2}};
  const RunTokens run = tokens_of({{0, first}, {1, second}});
  ASSERT_EQ(run.tokens.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(run.tokens[i].sequence, 0);
    EXPECT_EQ(run.tokens[i].position, static_cast<int32_t>(i));
    EXPECT_EQ(run.rows[i].pass, i < 2 || i > 5 ? 0 : 1);
  }
  EXPECT_EQ(run.rows[6].row, 2u);
}

TEST(Passes, AShareTakesItsOwnOfThePositionsOfAll) {
  PassFacts facts{{}, {0, 1, 2, 3, 4, 5, 6, 7}, {}, 4, {0, 2}};
  take_share(facts);
  EXPECT_EQ(facts.positions, (std::vector<int64_t>{0, 1, 6, 7}));
}

TEST(Passes, RowsOfPaddingAreNoTokens) {
  // Four tokens, and three rows that a CUDA graph added.
  const RunTokens run = tokens_of({{0, {{}, {0, 1, 2, 3, 0, 0, 0}, {}, 7}}});
  EXPECT_EQ(run.tokens.size(), 4u);
  EXPECT_EQ(run.rows_of.at(0), 7u);
}

TEST(Passes, AChunkContinuesTheSequenceThatWasContinuedLast) {
  // A warm-up of two tokens, a prompt of two, and its next chunk.
  const RunTokens run =
      tokens_of({{0, {{}, {0, 1}, {}, 0}}, {1, {{}, {0, 1}, {}, 0}}, {2, {{}, {2, 3}, {}, 0}}});
  ASSERT_EQ(run.tokens.size(), 6u);
  EXPECT_EQ(run.tokens[5].sequence, 1);
  EXPECT_EQ(run.rows[5].pass, 2);
}

}  // namespace
}  // namespace tensordiff
