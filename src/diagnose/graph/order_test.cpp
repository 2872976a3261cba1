// Which steps feed which, by names and by the order of capture.

#include <gtest/gtest.h>

#include <algorithm>

#include "diagnose/graph/edges.h"
#include "diagnose/graph/extent.h"
#include "diagnose/graph/last_calls.h"
#include "diagnose/site.h"
#include "diagnose/toys/toy_values.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Names = std::vector<std::string>;

tensordiff::Run captured(const Names& names) {
  std::vector<Site> sites;
  const std::vector<Place> places = read_places(names);
  for (const std::string& name : names) {
    Site site;
    site.index = site.capture = sites.size();
    site.a.name = site.b.name = name;
    site.a.place = site.b.place = places[sites.size()];
    site.views.a = site.views.b = noise_view({4, 8}, static_cast<unsigned>(sites.size()));
    site.comparison.status = Status::equal;
    sites.push_back(std::move(site));
  }
  return make_run(std::move(sites), {});
}

Names order_of(const tensordiff::Run& run) {
  Names names;
  for (const Site& site : run.sites) names.push_back(site.a.name);
  return names;
}

Names inputs_of(const tensordiff::Run& run, const std::string& name) {
  Names names;
  for (const Site& site : run.sites)
    if (site.a.name == name)
      for (const std::size_t input : site.inputs) names.push_back(run.sites[input].a.name);
  return names;
}

TEST(Order, AProjectionReadsWhatAttentionDoesWhereHeadsAreMissing) {
  Names names = {"layers.0.input_layernorm", "layers.0.attn.q_proj", "layers.0.attn.k_proj",
                 "layers.0.attn.v_proj", "layers.0.attn.o_proj"};
  EXPECT_EQ(inputs_of(captured(names), "layers.0.attn.o_proj"),
            Names({"layers.0.attn.q_proj", "layers.0.attn.k_proj", "layers.0.attn.v_proj"}));
  names.insert(names.end() - 1, "layers.0.attn.heads_out");
  EXPECT_EQ(inputs_of(captured(names), "layers.0.attn.o_proj"), Names({"layers.0.attn.heads_out"}));
}

// What is inside a module that was dumped itself no longer counts. A module may add what came
// before it.
TEST(Order, AModuleReadsThoseInsideItAndWhatCameBefore) {
  const tensordiff::Run run =
      captured({"layers.0.attn.o_proj", "layers.0.attn", "layers.0.mlp.up_proj",
                "layers.0.mlp.down_proj", "layers.0.mlp", "layers.0", "layers.1.mlp.down_proj"});
  EXPECT_EQ(inputs_of(run, "layers.0.attn"), Names({"layers.0.attn.o_proj"}));
  EXPECT_EQ(inputs_of(run, "layers.0.mlp"),
            Names({"layers.0.attn", "layers.0.mlp.up_proj", "layers.0.mlp.down_proj"}));
  EXPECT_EQ(inputs_of(run, "layers.0"), Names({"layers.0.attn", "layers.0.mlp"}));
  EXPECT_EQ(inputs_of(run, "layers.1.mlp.down_proj"), Names({"layers.0"}));
}

// A block may add what attention gives and what the MLP gives at once.
TEST(Order, ABlockReadsBothOfItsBranches) {
  EXPECT_EQ(inputs_of(captured({"0_post_attn_pre_resid", "0_post_mlp", "0_output"}), "0_output"),
            Names({"0_post_attn_pre_resid", "0_post_mlp"}));
}

TEST(Order, AnMlpReadsTheNormBeforeIt) {
  const std::string up = "layers.0.mlp.up_proj";
  EXPECT_EQ(inputs_of(captured({"layers.0.input_layernorm", "layers.0.attn.o_proj", up}), up),
            Names({"layers.0.input_layernorm"}));
  EXPECT_EQ(inputs_of(captured({"layers.0.attn.o_proj", "layers.0.sa_layer_norm", up}), up),
            Names({"layers.0.sa_layer_norm"}));
  const std::string norm = "layers.0.pre_feedforward_layernorm";
  const std::string behind = "layers.0.post_attention_layernorm";
  EXPECT_EQ(inputs_of(captured({"layers.0.self_attn.o_proj", behind, norm}), norm),
            Names({"layers.0.self_attn.o_proj", behind}));
}

// As in OLMo 2, where norms stand behind both branches.
TEST(Order, AnMlpReadsTheStreamWithTheNormedBranch) {
  Names names;
  for (const char* layer : {"model.layers.0", "model.layers.1"}) {
    for (const char* step : {".self_attn.o_proj", ".post_attention_layernorm", ".mlp.up_proj",
                             ".mlp.down_proj", ".post_feedforward_layernorm", ""})
      names.push_back(std::string(layer) + step);
  }
  EXPECT_EQ(inputs_of(captured(names), "model.layers.1.mlp.up_proj"),
            Names({"model.layers.0", "model.layers.1.post_attention_layernorm"}));
}

// The activation of a gate fires before the projection that it is multiplied with.
TEST(Order, IsThatOfCaptureForALlama) {
  Names names;
  for (const char* layer : {"model.layers.0", "model.layers.1"}) {
    for (const char* step :
         {".input_layernorm", ".self_attn.q_proj", ".self_attn.k_proj", ".self_attn.v_proj",
          ".self_attn.o_proj", ".self_attn", ".post_attention_layernorm", ".mlp.gate_proj",
          ".mlp.act_fn", ".mlp.up_proj", ".mlp.down_proj", ".mlp", ""})
      names.push_back(std::string(layer) + step);
  }
  const tensordiff::Run run = captured(names);
  EXPECT_EQ(order_of(run), names);
  EXPECT_EQ(inputs_of(run, "model.layers.1.input_layernorm"), Names({"model.layers.0"}));
  EXPECT_EQ(inputs_of(run, "model.layers.0.mlp.act_fn"), Names({"model.layers.0.mlp.gate_proj"}));
}

TEST(Order, IsThatOfCaptureForABert) {
  Names names;
  for (const char* layer : {"encoder.layer.0", "encoder.layer.1"}) {
    for (const char* step : {".attention.self.query", ".attention.self.key",
                             ".attention.self.value", ".attention.self", ".attention.output.dense",
                             ".attention.output.LayerNorm", ".attention.output", ".attention",
                             ".intermediate.dense", ".intermediate.intermediate_act_fn",
                             ".intermediate", ".output.dense", ".output.LayerNorm", ".output", ""})
      names.push_back(std::string(layer) + step);
  }
  const tensordiff::Run run = captured(names);
  EXPECT_EQ(order_of(run), names);
  EXPECT_EQ(inputs_of(run, "encoder.layer.1.attention.self.query"), Names({"encoder.layer.0"}));
}

// Every block of a network with an encoder and a decoder, or with stages, is one of its own.
TEST(Order, KeepsListsOfBlocksApart) {
  const Names names = {"encoder.block.0.layer.0.q",
                       "encoder.block.0.layer.1.wi",
                       "encoder.block.1.layer.0.q",
                       "encoder.block.1.layer.1.wi",
                       "encoder",
                       "decoder.block.0.layer.0.q",
                       "decoder.block.0.layer.1.k",
                       "decoder.block.1.layer.0.q",
                       "decoder.block.1.layer.1.k",
                       "decoder"};
  const tensordiff::Run run = captured(names);
  EXPECT_EQ(order_of(run), names);
  EXPECT_EQ(run.sites[0].block, run.sites[1].block);
  EXPECT_EQ(*run.sites[0].block + 1, run.sites[2].block);
  EXPECT_NE(run.sites[0].block, run.sites[5].block);
  EXPECT_GT(*run.sites[5].block, *run.sites[3].block + 1);
  // Cross attention may read all that the encoder gave.
  EXPECT_EQ(inputs_of(run, "decoder.block.0.layer.1.k"),
            Names({"encoder", "decoder.block.0.layer.0.q"}));
}

// A module that is called again has one entry: where it was called first, with what it gave last.
TEST(Order, PutsALastCallBeforeTheContainerThatGivesTheSame) {
  const Names names = {"layer1.0.bn1", "layer1.0.relu",  "layer1.0.conv2", "layer1.0.bn2",
                       "layer1.0",     "layer1.1.conv1", "layer1.1.bn1",   "layer1.1"};
  std::vector<Site> sites;
  const std::vector<Place> places = read_places(names);
  for (const std::string& name : names) {
    Site site;
    site.index = site.capture = sites.size();
    site.a.name = site.b.name = name;
    site.a.place = site.b.place = places[sites.size()];
    site.views.a = site.views.b = noise_view({4, 8}, static_cast<unsigned>(sites.size()));
    site.comparison.status = Status::equal;
    const double own = name == "layer1.0" ? 1 : static_cast<double>(sites.size());
    site.comparison.a.min = -own, site.comparison.a.max = own;
    sites.push_back(std::move(site));
  }
  const tensordiff::Run run = make_run(std::move(sites), {});
  EXPECT_EQ(order_of(run), Names({"layer1.0.bn1", "layer1.0.conv2", "layer1.0.bn2", "layer1.0.relu",
                                  "layer1.0", "layer1.1.conv1", "layer1.1.bn1", "layer1.1"}));
  EXPECT_EQ(run.sites[4].copy_of, 3U);
}

// The order of a block in which one module, `act`, is called twice, where A has these values of it
// and of the norm behind the first call.
Names order_of_block(const std::vector<uint64_t>& shape, const Values& norm, const Values& act,
                     const Values& behind = {}) {
  std::vector<Site> sites;
  for (const char* name :
       {"block.norm1", "block.act", "block.conv1", "block.norm2", "block.conv2"}) {
    Site site;
    site.index = site.capture = sites.size();
    site.a.name = site.b.name = name;
    site.views.a = site.views.b = noise_view(shape, static_cast<unsigned>(sites.size()));
    site.comparison.status = Status::equal;
    sites.push_back(std::move(site));
  }
  sites[3].views.a = view_of(shape, norm, DType::f32);
  sites[1].views.a = view_of(shape, act, DType::f32);
  if (!behind.empty()) sites[2].views.a = view_of(shape, behind, DType::f32);
  move_last_calls(sites);
  Names order;
  for (const Site& site : sites) order.push_back(site.a.name);
  return order;
}

const Names kActLast = {"block.norm1", "block.conv1", "block.norm2", "block.act", "block.conv2"};
const Names kAsCaptured = {"block.norm1", "block.act", "block.conv1", "block.norm2", "block.conv2"};

TEST(Order, PutsALastCallBehindWhatItIsAFunctionOf) {
  const Values norm = random_values(32, 7);
  Values relu = norm;
  for (double& value : relu) value = std::max(value, 0.0);
  EXPECT_EQ(order_of_block({4, 8}, norm, relu), kActLast);
  EXPECT_EQ(order_of_block({4, 8}, norm, random_values(32, 8)), kAsCaptured);
}

// A layer scale, which is no module, is in between: features last, or channels of an image.
TEST(Order, PutsALastCallBehindWhatItIsAMultipleOf) {
  const Values norm = random_values(8 * 32, 7), factors = random_values(8 * 32, 8);
  Values of_features = norm, of_channels = norm, of_elements = norm;
  for (std::size_t i = 0; i < norm.size(); ++i) {
    of_features[i] *= factors[i % 32];
    of_channels[i] *= factors[i / 4 % 32];
    of_elements[i] *= factors[i];
  }
  EXPECT_EQ(order_of_block({8, 32}, norm, of_features), kActLast);
  EXPECT_EQ(order_of_block({2, 32, 4}, norm, of_channels), kActLast);
  EXPECT_EQ(order_of_block({8, 32}, norm, of_elements), kAsCaptured);
  // A multiple goes both ways: of a step and the one right behind it, the first was first.
  EXPECT_EQ(order_of_block({8, 32}, norm, of_features, of_features), kAsCaptured);
}

TEST(Order, KnowsTheTokensOfARun) {
  const tensordiff::Run run = captured({"layers.0.q", "layers.0", "layers.1.q", "layers.1"});
  EXPECT_EQ(extent_of(run.sites).tokens, 4U);
}

Extent extent_of_shapes(const std::vector<Shape>& shapes) {
  std::vector<Site> sites;
  for (const Shape& shape : shapes) {
    Site site;
    site.a.name = site.b.name = "step";
    site.views.a = site.views.b = noise_view(shape, static_cast<unsigned>(sites.size()));
    site.comparison.status = Status::equal;
    sites.push_back(std::move(site));
  }
  return extent_of(sites);
}

// Two towers share nothing but the number of sequences.
TEST(Order, TakesNoBatchForTokens) {
  const Extent towers = extent_of_shapes({{2, 9, 8}, {2, 9, 16}, {2, 9, 8}, {2, 5, 8}, {2, 5, 16}});
  EXPECT_EQ(towers.tokens, 0U);
  EXPECT_EQ(towers.batch, 2U);
  const Extent maps = extent_of_shapes({{2, 8, 4, 4}, {2, 16, 4, 4}, {2, 16, 2, 2}, {2, 32, 2, 2}});
  EXPECT_EQ(maps.tokens, 0U);
  EXPECT_EQ(maps.batch, 2U);
  // Tokens that stand first have nothing but features behind them, or all the same.
  EXPECT_EQ(extent_of_shapes({{9, 8}, {9, 4, 2}, {9, 2, 2}, {9, 8}}).tokens, 9U);
  EXPECT_EQ(extent_of_shapes({{9, 2, 8}, {9, 2, 16}, {9, 2, 8}}).tokens, 9U);
}

// In the order of the alphabet containers may stand behind what they contain, by chance.
TEST(Order, IsNotThatOfAFileThatBeginsWithTheEnd) {
  const Names names = {"lm_head",
                       "model.h.0.attn.c_attn",
                       "model.h.0.attn.c_proj",
                       "model.h.0.attn",
                       "model.h.0.ln_1",
                       "model.h.0.mlp.act",
                       "model.h.0.mlp",
                       "model.h.0",
                       "model.h.1.attn.c_attn",
                       "model.h.1.attn",
                       "model.h.1.ln_1",
                       "model.h.1"};
  EXPECT_EQ(order_of(captured(names)).back(), "lm_head");
}

TEST(Order, EachTowerHasTokensOfItsOwn) {
  const View view = noise_view({2, 5, 8}, 1);
  const TokenView tokens = by_tokens(view, {.batch = 2});
  EXPECT_EQ(tokens.batch, 2U);
  EXPECT_EQ(tokens.tokens, 5U);
  EXPECT_EQ(tokens.features, 8U);
  EXPECT_EQ(tokens.axis, 1U);
}

TEST(Order, KnowsRolesAsAHint) {
  EXPECT_EQ(sources_of(Role::query), (std::vector<std::vector<Role>>{{Role::attention_norm}}));
  EXPECT_TRUE(sources_of(Role::other).empty());
}

// One activation that all blocks call is named in the first and holds what it gave in the last.
TEST(Order, PutsAModuleThatBlocksShareWhereItWasCalledLast) {
  const auto order_of = [](const std::string& source) {
    std::vector<Site> sites = captured({"h.0.fc", "h.0.act", "h.0.proj", "h.0", "h.1.fc",
                                        "h.1.proj", "h.1", "h.2.fc", "h.2.proj", "h.2"})
                                  .sites;
    Values of;
    for (Site& site : sites) {
      const Values values = random_values(32, static_cast<unsigned>(&site - sites.data()) + 20);
      if (site.a.name == source) of = values;
      site.views.a = view_of({4, 8}, values, DType::f32);
    }
    for (double& value : of) value = std::max(value, 0.0);
    const auto act = std::ranges::find(sites, "h.0.act", [](const Site& s) { return s.a.name; });
    act->views.a = view_of({4, 8}, of, DType::f32);
    move_last_calls(sites);
    Names order;
    for (const Site& site : sites) order.push_back(site.a.name);
    return order;
  };
  EXPECT_EQ(order_of("h.2.fc"), (Names{"h.0.fc", "h.0.proj", "h.0", "h.1.fc", "h.1.proj", "h.1",
                                       "h.2.fc", "h.0.act", "h.2.proj", "h.2"}));
  EXPECT_EQ(order_of("h.0.fc")[1], "h.0.act");
}

}  // namespace
}  // namespace tensordiff
