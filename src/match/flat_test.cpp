// Parameters in the flat ones of FSDP.

#include <algorithm>

#include "match/flat_name.h"
#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

// The values of some tensors one after the other, with padding where there is a number.
Tensor row_of(const std::string& name, const Catalog& parts, const std::vector<int>& order,
              std::size_t padding) {
  std::vector<float> values;
  for (const int part : order) {
    if (part < 0) {
      values.insert(values.end(), static_cast<std::size_t>(-part), 42.0F);
      continue;
    }
    const std::vector<float> more = values_of(parts.tensors[static_cast<std::size_t>(part)].view);
    values.insert(values.end(), more.begin(), more.end());
  }
  values.insert(values.end(), padding, 0.0F);
  return {name, f32_view({values.size()}, values), ""};
}

Catalog model() {
  Catalog catalog = catalog_of({{"layers.0.attn.weight", {8, 8}, 1},
                                {"layers.0.mlp.weight", {8, 4}, 2},
                                {"layers.0.norm.weight", {8}, 3},
                                {"embed.weight", {16, 8}, 4},
                                {"norm.weight", {8}, 5}});
  // Norms of a fresh model hold nothing but ones.
  catalog.tensors[2].view = f32_view({8}, std::vector<float>(8, 1));
  catalog.tensors[4].view = f32_view({8}, std::vector<float>(8, 1));
  return catalog;
}

TEST(Flat, CutsRowsByTheValuesOfTheOtherSide) {
  const Catalog a = model();
  Catalog b;
  b.tensors.push_back(row_of("layers.0._fsdp_wrapped_module._flat_param", a, {2, 1, 0}, 0));
  b.tensors.push_back(row_of("_flat_param", a, {3, 4}, 3));
  const Names expected = {
      "layers.0.attn.weight=layers.0._fsdp_wrapped_module._flat_param[attn.weight]",
      "layers.0.mlp.weight=layers.0._fsdp_wrapped_module._flat_param[mlp.weight]",
      "layers.0.norm.weight=layers.0._fsdp_wrapped_module._flat_param[norm.weight]",
      "embed.weight=_flat_param[embed.weight]",
      "norm.weight=_flat_param[norm.weight]",
  };
  EXPECT_EQ(pairs_of(matchers::flat, a, b), expected);
  const Result<Matching> flipped = match(b, a);
  ASSERT_TRUE(flipped.ok());
  EXPECT_EQ(flipped.value().pairs.size(), 5);
  const auto norm =
      std::ranges::find_if(flipped.value().pairs, [](const Pair& pair) { return pair.b == 4; });
  ASSERT_NE(norm, flipped.value().pairs.end());
  EXPECT_EQ(norm->section_a->elements, (std::vector<uint64_t>{128, 8, 3}));
  EXPECT_EQ(norm->section_a->index, 1);
}

TEST(Flat, StepsOverPaddingAndOneTensorThatIsNotTheSame) {
  Catalog a = model();
  Catalog b;
  b.tensors.push_back(row_of("layers.0._flat_param", a, {0, -2, 1, -1, 2}, 1));
  b.tensors.push_back(row_of("_flat_param", a, {3, 4}, 0));
  EXPECT_EQ(pairs_of(matchers::flat, a, b).size(), 5);
  a.tensors[1].view = noise_view({8, 4}, 99);
  b.tensors[0] = row_of("layers.0._flat_param", model(), {0, 1, 2}, 0);
  EXPECT_EQ(pairs_of(matchers::flat, a, b).size(), 5);
}

TEST(Flat, SaysWhereTheOtherSideDoesNotTell) {
  const Catalog a = model();
  Catalog b;
  b.tensors.push_back({"other.flat_param", noise_view({200}, 7), ""});
  MatchOptions options;
  options.strategies = {"flat"};
  const Matching matching = match(a, b, options).value();
  EXPECT_TRUE(matching.pairs.empty());
  ASSERT_EQ(matching.notes.size(), 1);
  EXPECT_EQ(matching.notes[0],
            "'other.flat_param' holds several parameters, and the other side does not tell which");
}

TEST(FlatName, IsThatOfTheModule) {
  EXPECT_EQ(module_of_flat("a.b._flat_param"), "a.b.");
  EXPECT_EQ(module_of_flat("_flat_param"), "");
  EXPECT_EQ(module_of_flat("a._fsdp_wrapped_module.flat_param_0"), "a.");
  EXPECT_EQ(module_of_flat("a.weight"), std::nullopt);
  EXPECT_EQ(module_of_flat(""), std::nullopt);
}

}  // namespace
}  // namespace tensordiff
