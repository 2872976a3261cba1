// What names tell of modules inside each other, and of blocks.

#include "diagnose/graph/module_tree.h"

#include <gtest/gtest.h>

#include "naming/naming.h"

namespace tensordiff {
namespace {

std::vector<Site> named(const std::vector<std::string>& names) {
  std::vector<Site> sites;
  const std::vector<Place> places = read_places(names);
  for (const std::string& name : names) {
    Site site;
    site.a.name = name;
    site.a.place = places[sites.size()];
    sites.push_back(std::move(site));
  }
  return sites;
}

TEST(ModuleTree, KnowsWhatIsInsideWhat) {
  const ModuleTree tree(named({"layers.0.mlp.up", "layers.0.mlp", "layers.0"}));
  EXPECT_TRUE(tree.contains(tree.module_of(2), tree.module_of(0)));
  EXPECT_TRUE(tree.contains(tree.module_of(1), tree.module_of(0)));
  EXPECT_FALSE(tree.contains(tree.module_of(0), tree.module_of(1)));
}

// Numbers beside named modules are the outputs of the module around them; a list has numbers only.
TEST(ModuleTree, KnowsTheOutputsOfAModule) {
  const ModuleTree tree(
      named({"attn.q", "attn.0", "attn.1", "stem.0", "stem.1", "gate[0]", "gate@2"}));
  EXPECT_EQ(tree.module_of(1), tree.module_of(2));
  EXPECT_EQ(tree[tree.module_of(1)].outputs, (std::vector<std::size_t>{1, 2}));
  EXPECT_NE(tree.module_of(3), tree.module_of(4));
  EXPECT_EQ(tree.module_of(5), tree.module_of(6));
}

TEST(ModuleTree, FindsTheInnermostBlock) {
  const ModuleTree tree(
      named({"stages.0.layers.0.conv", "stages.0.layers.0.norm", "stages.0.layers.1.conv",
             "stages.0.layers.1.norm", "stages.1.layers.0.conv", "stages.1.layers.0.norm",
             "stages.1.layers.1.conv", "stages.1.layers.1.norm", "head.0.norm", "head.1.dense"}));
  EXPECT_EQ(tree[tree.block_of(0).value()].path, ".stages.0.layers.0");
  EXPECT_EQ(tree[tree.block_of(7).value()].path, ".stages.1.layers.1");
  EXPECT_FALSE(tree.block_of(8)) << "they contain other modules each";
}

TEST(ModuleTree, NumbersStagesByTheirLayers) {
  std::vector<Site> sites = named({"0_query", "0_output", "3_query", "3_output"});
  for (Site& site : sites) site.layer = site.a.place.layer_number();
  number_blocks(sites);
  EXPECT_EQ(sites[1].block, 0);
  EXPECT_EQ(sites[2].block, 3);
}

// Some of its modules contain others, and some do not.
TEST(ModuleTree, AListOfNumbersAloneHasNoOutputs) {
  const ModuleTree tree(named({"layers.0.conv", "layers.0", "layers.1", "layers.2.conv"}));
  EXPECT_EQ(tree[tree.module_of(2)].path, ".layers.1");
}

}  // namespace
}  // namespace tensordiff
