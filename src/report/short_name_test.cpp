#include "report/short_name.h"

#include <gtest/gtest.h>

#include "report/style.h"

namespace tensordiff {
namespace {

TEST(ShortName, KeepsTheLayerAndTheLastPart) {
  const std::string_view name = "model.layers.17.self_attn.q_proj.weight";
  EXPECT_EQ(shorten_name(name, 39), name);
  EXPECT_EQ(shorten_name(name, 34), "…layers.17.self_attn.q_proj.weight");
  EXPECT_EQ(shorten_name(name, 30), "model.layers.17.…q_proj.weight");
  EXPECT_EQ(shorten_name(name, 26), "…layers.17.…q_proj.weight");
  EXPECT_EQ(shorten_name(name, 20), "…17.…q_proj.weight");
  EXPECT_EQ(least_columns(name), 18u);
  EXPECT_EQ(shorten_name("params/layers_3/attention/query/kernel", 24), "…layers_3/…query/kernel");
  for (std::size_t width = 3; width < 60; ++width)
    EXPECT_LE(columns(shorten_name(name, width)), width);
}

TEST(ShortName, KeepsTheNumberOfAnExpert) {
  EXPECT_EQ(shorten_name("model.layers.1.mlp.experts.7.w1.weight", 24), "…layers.1.…7.w1.weight");
}

TEST(ShortName, CutsTheMiddleWhereThereIsNoLayer) {
  EXPECT_EQ(shorten_name("encoder.pooler.dense.activation", 20), "…dense.activation");
  EXPECT_EQ(shorten_name("a.b.c.dddddddddd", 9), "a.b.…dddd");
}

TEST(ShortName, WritesWhatBothNamesHaveOnce) {
  const std::string_view pair =
      "model.layers.3.self_attn.k_proj.weight → blk.3.self_attn.attn_k.weight";
  EXPECT_EQ(shorten_name(pair, 28), "…3.…k_proj → …attn_k.weight");
  EXPECT_EQ(least_columns(pair), 27u);
  EXPECT_EQ(shorten_name("model.layers.3.k_proj.weight → blk.4.attn_k.weight", 30),
            "…3.k_proj → …4.attn_k.weight");
  // Where there is too little room, A keeps what tells the step.
  EXPECT_EQ(
      shorten_name("model.layers.1.mlp.gate_proj → model.layers.1.mlp.gate_up_proj[gate]", 27),
      "…1.…gate_proj → …proj[gate]");
  // Layers at the start stay where they differ.
  EXPECT_EQ(shorten_name("1_post_attn_pre_resid → 3_post_attn_pre_resid", 32),
            "1_post_attn_pre_resid → 3_p…esid");
  for (std::size_t width = 3; width < 80; ++width)
    EXPECT_LE(columns(shorten_name(pair, width)), width);
}

TEST(ShortName, NeverCutsTheMarkOfTheFirstDivergence) {
  EXPECT_EQ(shorten_name("▶ model.layers.1.self_attn.o_proj", 14), "▶ …1.…o_proj");
  EXPECT_EQ(least_columns("▶ model.layers.1.self_attn.o_proj"), 12u);
}

TEST(ShortName, TakesAnyText) {
  for (const std::string_view text : {"", ".", "...", "/", " → ", "▶ ", "▶  → ", "1", "_1", "x._"})
    for (std::size_t width = 0; width < 8; ++width)
      EXPECT_LE(columns(shorten_name(text, width)), std::max<std::size_t>(width, 0)) << text;
}

}  // namespace
}  // namespace tensordiff
