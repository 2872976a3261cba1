#include "convert/rope_convention.h"

#include <gtest/gtest.h>

#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

Catalog model(const std::string& name, std::vector<Metadata> metadata) {
  Catalog catalog;
  catalog.tensors.push_back({name, noise_view({32, 32}, 1), ""});
  catalog.metadata = std::move(metadata);
  return catalog;
}

const std::vector<Metadata> kConfig = {{"config.json: num_attention_heads", "4"},
                                       {"config.json: hidden_size", "32"}};

TEST(RopeConvention, IsThatOfBothFormats) {
  const Catalog halves = model("model.layers.0.self_attn.q_proj.weight", kConfig);
  const Catalog meta = model("layers.0.attention.wq.weight", {});
  const Catalog gguf = model("blk.0.attn_q.weight", {{"general.architecture", "llama"}});
  for (const Catalog* neighbours : {&meta, &gguf}) {
    const std::optional<ImpliedRows> implied = implied_rope_rows(halves, *neighbours);
    ASSERT_TRUE(implied);
    EXPECT_EQ(implied->rows.order, RowOrder::rope);
    EXPECT_EQ(implied->rows.side, 'a');
    EXPECT_EQ(implied->rows.head, 8U);
    EXPECT_EQ(implied_rope_rows(*neighbours, halves)->rows.side, 'b');
  }
}

// llama.cpp leaves the rows of these as Hugging Face has them: turned ones are a mistake.
TEST(RopeConvention, IsTheSameWhereTheConverterKeepsTheRows) {
  const Catalog halves = model("model.layers.0.self_attn.q_proj.weight", kConfig);
  for (const std::string name : {"qwen2", "gemma2", "command-r", "llama4"}) {
    const std::optional<ImpliedRows> implied =
        implied_rope_rows(halves, model("blk.0.attn_q.weight", {{"general.architecture", name}}));
    ASSERT_TRUE(implied) << name;
    EXPECT_EQ(implied->rows, Rows()) << name;
    EXPECT_EQ(implied->reason,
              "A is in Hugging Face's names, whose RoPE turns halves; B is a GGUF of '" + name +
                  "', which keeps the rows of Hugging Face");
  }
  const Catalog meta = model("layers.0.attention.wq.weight", {});
  const Catalog gguf = model("blk.0.attn_q.weight", {{"general.architecture", "llama"}});
  EXPECT_EQ(implied_rope_rows(meta, gguf)->rows, Rows());
}

TEST(RopeConvention, IsUnknownWhereOneFormatDoesNotSay) {
  const Catalog halves = model("model.layers.0.self_attn.q_proj.weight", kConfig);
  EXPECT_FALSE(implied_rope_rows(halves, halves));
  EXPECT_FALSE(
      implied_rope_rows(halves, model("blk.0.attn_q.weight", {{"general.architecture", "new"}})));
  EXPECT_FALSE(implied_rope_rows(halves, model("blocks.0.attn.W_Q", {})));
  // That is said.
  const Catalog unlisted = model("blk.0.attn_q.weight", {{"general.architecture", "new"}});
  EXPECT_NE(open_rope_order(halves, unlisted), "");
  EXPECT_EQ(open_rope_order(halves, halves), "");
}

TEST(RopeConvention, TakesTheLargestHeadThatFitsWhereNobodySays) {
  Catalog halves = model("model.layers.0.self_attn.q_proj.weight", {});
  halves.tensors.push_back({"model.layers.0.self_attn.k_proj.weight", noise_view({16, 32}, 2), ""});
  read_places(halves);
  const std::optional<ImpliedRows> implied =
      implied_rope_rows(halves, model("layers.0.attention.wq.weight", {}));
  ASSERT_TRUE(implied);
  EXPECT_EQ(implied->rows.head, 16U);
}

}  // namespace
}  // namespace tensordiff
