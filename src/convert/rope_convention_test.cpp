#include "convert/rope_convention.h"

#include <gtest/gtest.h>

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
    const std::optional<Rows> rows = implied_rope_rows(halves, *neighbours);
    ASSERT_TRUE(rows);
    EXPECT_EQ(rows->order, RowOrder::rope);
    EXPECT_EQ(rows->side, 'a');
    EXPECT_EQ(rows->head, 8U);
    EXPECT_EQ(implied_rope_rows(*neighbours, halves)->side, 'b');
  }
}

TEST(RopeConvention, IsUnknownWhereOneFormatDoesNotSay) {
  const Catalog halves = model("model.layers.0.self_attn.q_proj.weight", kConfig);
  EXPECT_FALSE(implied_rope_rows(halves, halves));
  EXPECT_FALSE(
      implied_rope_rows(halves, model("blk.0.attn_q.weight", {{"general.architecture", "qwen2"}})));
  EXPECT_FALSE(implied_rope_rows(halves, model("blocks.0.attn.W_Q", {})));
  // Nobody says how large a head is.
  EXPECT_FALSE(implied_rope_rows(model("model.layers.0.self_attn.q_proj.weight", {}),
                                 model("layers.0.attention.wq.weight", {})));
}

}  // namespace
}  // namespace tensordiff
