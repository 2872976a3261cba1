#include "dumps/hidden_states.h"

#include <gtest/gtest.h>

#include "dumps/test_layouts.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

using namespace test_layouts;

TEST(HiddenStates, HiddenStatesAreStreamsAndTheLastIsNormed) {
  Catalog catalog;
  for (const char* name : {"0", "1", "2"})
    catalog.tensors.push_back({name, noise_view({1, 4, 8}, 1), ""});
  EXPECT_EQ(recognised(catalog), &layouts::hidden_states);
  EXPECT_EQ(told(layouts::hidden_states, catalog),
            (Texts{"model.layers.0.resid_pre", "model.layers.0", "model.norm"}));
}

// A ModelOutput of transformers: caches are tuples, or objects of two kinds.
TEST(HiddenStates, AModelOutputHasOtherFieldsBesideItsHiddenStates) {
  Catalog catalog;
  for (const char* name : {"logits", "past_key_values.0.0", "past_key_values.value_cache.1",
                           "past_key_values.layers.1.keys", "hidden_states.0", "hidden_states.1"})
    catalog.tensors.push_back({name, noise_view({1, 4, 8}, 1), ""});
  EXPECT_EQ(recognised(catalog), &layouts::hidden_states);
  EXPECT_EQ(told(layouts::hidden_states, catalog),
            (Texts{"logits", "model.layers.0.self_attn.k_rope", "model.layers.1.self_attn.v_proj",
                   "model.layers.1.self_attn.k_rope", "model.layers.0.resid_pre", "model.norm"}));
}

// generate() gives a tuple for each pass.
TEST(HiddenStates, HiddenStatesOfGenerateAreATupleForEachPass) {
  Catalog catalog;
  for (const char* name : {"0.0", "0.1", "0.2", "1.0", "1.1", "1.2"})
    catalog.tensors.push_back({name, noise_view({1, name[0] == '0' ? 4U : 1U, 8}, 1), ""});
  EXPECT_EQ(recognised(catalog), &layouts::hidden_states);
  EXPECT_EQ(
      told(layouts::hidden_states, catalog),
      (Texts{"model.layers.0.resid_pre", "model.layers.0", "model.norm",
             "model.layers.0.resid_pre pass 1", "model.layers.0 pass 1", "model.norm pass 1"}));
}

// {layer: output} has the names of such a tuple; the other dump tells how many layers there are.
TEST(HiddenStates, OutputsOfLayersByNumberAreNoHiddenStates) {
  Catalog states;
  for (const char* name : {"0", "1"})
    states.tensors.push_back({name, noise_view({1, 4, 8}, 1), ""});
  std::optional<Catalog> other = named({"model.layers.0.mlp", "model.layers.1.mlp", "model.norm"});
  read_places(*other);
  ASSERT_TRUE(arrange(states, other, "").ok());
  EXPECT_EQ(states.tensors[0].pairing_name(), "model.layers.0");
  EXPECT_EQ(states.tensors[1].pairing_name(), "model.layers.1");
}

// Stacked by Hugging Face, and by vLLM's connector.
TEST(HiddenStates, StackedHiddenStatesAreOneForEachLayer) {
  Catalog stacked;
  stacked.tensors.push_back({"hidden_states", noise_view({3, 1, 4, 8}, 1), ""});
  EXPECT_EQ(recognised(stacked), &layouts::hidden_states);
  EXPECT_EQ(told(layouts::hidden_states, stacked),
            (Texts{"model.layers.0.resid_pre", "model.layers.0", "model.norm"}));
  Catalog connector;
  connector.tensors.push_back({"hidden_states", noise_view({4, 2, 8}, 1), ""});
  connector.tensors.push_back(integers("token_ids", 4));
  EXPECT_EQ(recognised(connector), &layouts::hidden_states);
  EXPECT_EQ(told(layouts::hidden_states, connector),
            (Texts{"model.layers.0", "model.layers.1", "token_ids fact"}));
}

}  // namespace
}  // namespace tensordiff
