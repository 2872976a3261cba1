// What names mean beside the other names of their side.

#include "match/meaning.h"

#include <numeric>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

// The role of the first name among all of them, with its parameter; "" where it is left open.
std::string role_among(const Names& names) {
  std::vector<std::size_t> all(names.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<Place> places = read_places(names);
  for (const auto& [meaning, tensor] : meanings_of(places, all).tensors) {
    if (tensor != 0) continue;
    const std::string_view half[] = {"", "fc half", "gate half"};
    const std::string role(meaning.half == Meaning::Half::none
                               ? name_of(meaning.role)
                               : half[static_cast<int>(meaning.half)]);
    return meaning.parameter == Param::none
               ? role
               : fmt::format("{} {}", role, name_of(meaning.parameter));
  }
  return "";
}

TEST(Meanings, OfANormDependOnWhichOthersThereAre) {
  const std::string norm = "model.layers.0.post_attention_layernorm.weight";
  EXPECT_EQ(role_among({norm, "model.layers.0.input_layernorm.weight"}), "MLP norm weight");
  EXPECT_EQ(role_among({norm, "model.layers.0.input_layernorm.weight",
                        "model.layers.0.pre_feedforward_layernorm.weight"}),
            "norm behind attention weight");
  const std::string after = "bert.encoder.layer.0.attention.output.LayerNorm.weight";
  EXPECT_EQ(role_among({after, "bert.encoder.layer.0.output.LayerNorm.weight"}),
            "attention norm weight");
  EXPECT_EQ(role_among({after, "bert.encoder.layer.0.ln_1.weight"}),
            "norm behind attention weight");
}

TEST(Meanings, OfAGateDependOnExpertsAndOnWhatStandsBesideIt) {
  const std::string gate = "layers.0.mlp.gate.weight";
  EXPECT_EQ(role_among({gate, "layers.0.mlp.up.weight"}), "gate weight");
  EXPECT_EQ(role_among({gate, "layers.0.mlp.experts.0.up_proj.weight"}), "router weight");
  EXPECT_EQ(role_among({gate, "layers.0.mlp.fc.weight"}), "gate half weight");
  EXPECT_EQ(role_among({"layers.0.mlp.fc.weight", gate}), "fc half weight");
  EXPECT_EQ(role_among({"layers.0.mlp.fc.weight"}), "up weight");
}

TEST(Meanings, WithoutAParameterAreWeightsAmongWeights) {
  EXPECT_EQ(role_among({"cls_token", "norm.weight", "norm.bias"}), "class token weight");
  EXPECT_EQ(role_among({"cls_token", "norm.scale", "blocks.0.attn"}), "class token");
  EXPECT_EQ(role_among({"cls_token", "blocks.0.attn"}), "class token");
}

TEST(Meanings, TellTheNormsOfT5Apart) {
  EXPECT_EQ(role_among({"decoder.block.0.layer.1.layer_norm.weight"}),
            "cross attention norm weight");
  EXPECT_EQ(role_among({"encoder.block.0.layer.1.layer_norm.weight"}), "MLP norm weight");
}

// Blocks of blocks: the number of the inner block alone says nothing, also where it comes once.
TEST(Meanings, OfBlocksThatAreCountedTwiceAreLeftOpen) {
  const Names names = {"stages.0.layers.0.norm1.weight", "stages.1.layers.0.norm1.weight",
                       "stages.1.layers.1.norm1.weight", "norm.weight"};
  std::vector<std::size_t> all(names.size());
  std::iota(all.begin(), all.end(), 0);
  const std::vector<Place> places = read_places(names);
  EXPECT_EQ(meanings_of(places, all).tensors.size(), 2);
  EXPECT_EQ(meanings_of(places, all, names).tensors.size(), 1);
}

}  // namespace
}  // namespace tensordiff
