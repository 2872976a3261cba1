#include "diagnose/graph/edges.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/toys/toy_steps.h"

namespace tensordiff {
namespace {

constexpr std::size_t kValues = 16 * 24;

Held same(const std::string& name, unsigned seed) {
  const Values values = random_values(kValues, seed);
  return {name, values, values};
}

Held other(const std::string& name, unsigned seed) {
  return {name, random_values(kValues, seed), random_values(kValues, seed + 1000)};
}

// The output of attention whose queries, keys and values agree, where RoPE's tables differ.
std::vector<Held> turned_otherwise(const std::string& table) {
  return {same("model.embed_tokens", 1),
          other(table + ".0", 2),
          other(table + ".1", 3),
          same("model.layers.0.input_layernorm", 4),
          same("model.layers.0.self_attn.q_proj", 5),
          same("model.layers.0.self_attn.k_proj", 6),
          same("model.layers.0.self_attn.v_proj", 7),
          other("model.layers.0.self_attn.o_proj", 8)};
}

std::vector<std::string> inputs_of_last(const std::vector<Held>& held) {
  const Run run = make_run(sites_of(held), {});
  std::vector<std::string> names;
  for (const std::size_t input : run.sites.back().inputs) names.push_back(run.sites[input].a.name);
  return names;
}

TEST(Edges, AttentionReadsTheTablesThatAModelComputesOnce) {
  EXPECT_EQ(inputs_of_last(turned_otherwise("model.rotary_emb")),
            (std::vector<std::string>{
                "model.rotary_emb.0", "model.rotary_emb.1", "model.layers.0.self_attn.q_proj",
                "model.layers.0.self_attn.k_proj", "model.layers.0.self_attn.v_proj"}));
}

TEST(Edges, AttentionReadsNoTableOfAnotherTower) {
  const std::vector<std::string> inputs = inputs_of_last(turned_otherwise("vision.rotary_emb"));
  EXPECT_EQ(inputs.size(), 3) << inputs.front();
}

// The second convolution of the first list reads the first of the second.
TEST(Edges, ListsMayTakeTurns) {
  const std::vector<Held> held = {
      same("net.pre", 1),
      same("net.blocks.0.convs1.0", 2),
      other("net.blocks.0.convs2.0", 3),
      other("net.blocks.0.convs1.1", 4),
      other("net.blocks.0.convs2.1", 5),
      other("net.blocks.0", 6),
  };
  const tensordiff::Run run = make_run(sites_of(held), {});
  EXPECT_EQ(std::ranges::count(run.sites[3].inputs, 2U), 1);
}

// Its activation is a function and no module.
TEST(Edges, AnMlpReadsAGateThatIsNoModule) {
  EXPECT_EQ(
      inputs_of_last({same("model.layers.0.ffn_norm", 1), same("model.layers.0.feed_forward.w1", 2),
                      same("model.layers.0.feed_forward.w3", 3),
                      same("model.layers.0.feed_forward.w2", 4)}),
      (std::vector<std::string>{"model.layers.0.feed_forward.w1",
                                "model.layers.0.feed_forward.w3"}));
}

TEST(Edges, AnMlpReadsWhatDropoutAtRestGives) {
  std::vector<Held> held = {same("blocks.0.norm2", 1), same("blocks.0.mlp.fc1", 2),
                            same("blocks.0.mlp.act", 3), same("blocks.0.mlp.drop1", 3),
                            same("blocks.0.mlp.fc2", 4)};
  held[3].b = random_values(kValues, 77);
  const std::vector<std::string> inputs = inputs_of_last(held);
  EXPECT_EQ(std::ranges::count(inputs, "blocks.0.mlp.drop1"), 1);
  EXPECT_EQ(alarms(held), "blocks.0.mlp.drop1 ");
}

TEST(Edges, AttentionOnlyCarriesAnotherTable) {
  const std::vector<Held> held = turned_otherwise("model.rotary_emb");
  const Insight insight = diagnose(sites_of(held), {});
  ASSERT_TRUE(insight.first);
  EXPECT_EQ(held[insight.first->pair].name, "model.rotary_emb.0");
  for (const Divergence& next : insight.next) EXPECT_EQ(held[next.pair].name, "model.rotary_emb.1");
}

// Its values are known by name; what it weighs them with has a name of its own.
TEST(Edges, AttentionReadsWhatHasNoKnownName) {
  const std::vector<std::string> inputs =
      inputs_of_last({same("blocks.0.norm1", 1), other("blocks.0.attn.weigh", 2),
                      same("blocks.0.attn.v", 3), other("blocks.0.attn.proj", 4)});
  EXPECT_EQ(std::ranges::count(inputs, "blocks.0.attn.weigh"), 1);
  EXPECT_EQ(std::ranges::count(inputs, "blocks.0.attn.v"), 1);
}

// A Sequential: a convolution reads the activation in front of it, which contains nothing.
TEST(Edges, AListMayHoldLeavesAndContainers) {
  const std::vector<std::string> inputs =
      inputs_of_last({same("net.0.conv", 1), other("net.1", 2), other("net.2.conv", 3)});
  EXPECT_EQ(std::ranges::count(inputs, "net.1"), 1);
}

}  // namespace
}  // namespace tensordiff
