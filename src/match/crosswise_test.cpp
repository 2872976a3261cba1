#include "match/crosswise.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "match/test_catalogs.h"

namespace tensordiff {
namespace {

constexpr unsigned kLayers = 3;

// Outputs of a block with its norms behind attention and MLP, as BERT has them.
Catalog reference() {
  std::vector<Named> tensors;
  for (unsigned layer = 0; layer < kLayers; ++layer) {
    const std::string at = fmt::format("encoder.layer.{}.", layer);
    tensors.push_back({at + "attention.output.LayerNorm", {20, 8}, 10 * layer + 1});
    tensors.push_back({at + "output.LayerNorm", {20, 8}, 10 * layer + 2});
  }
  return catalog_of(tensors);
}

// The same by names that count the first norm as that of the MLP. `seeds` gives the values.
Catalog port(const std::function<std::pair<unsigned, unsigned>(unsigned layer)>& seeds) {
  std::vector<Named> tensors;
  for (unsigned layer = 0; layer < kLayers; ++layer) {
    const auto [norm, output] = seeds(layer);
    tensors.push_back({fmt::format("layers.{}.mlp_norm", layer), {20, 8}, norm});
    tensors.push_back({fmt::format("layers.{}.output", layer), {20, 8}, output});
  }
  return catalog_of(tensors);
}

Names paired(const Catalog& a, const Catalog& b) {
  Matching matching = match(a, b).value();
  Names text = pairs_text(matching, a, b);
  std::ranges::sort(text);
  return text;
}

Names crosswise() {
  Names text;
  for (unsigned layer = 0; layer < kLayers; ++layer)
    text.push_back(
        fmt::format("encoder.layer.{0}.attention.output.LayerNorm=layers.{0}.mlp_norm", layer));
  for (unsigned layer = 0; layer < kLayers; ++layer)
    text.push_back(fmt::format("encoder.layer.{0}.output.LayerNorm=layers.{0}.output", layer));
  std::ranges::sort(text);
  return text;
}

TEST(Crosswise, FollowsTheValuesInAllLayers) {
  const Catalog b = port([](unsigned layer) { return std::pair(10 * layer + 1, 10 * layer + 2); });
  EXPECT_EQ(paired(reference(), b), crosswise());
  EXPECT_EQ(match(reference(), b).value().notes,
            Names{"by their values 'encoder.layer.#.output.LayerNorm' is 'layers.#.output' and "
                  "'encoder.layer.#.attention.output.LayerNorm' is 'layers.#.mlp_norm', though the "
                  "names of the first and the last mean the same"});
}

// In one layer the values may be wrong: it is paired like the others, and told.
TEST(Crosswise, GoesByMostLayers) {
  const Catalog b = port([](unsigned layer) {
    return layer == 1 ? std::pair(77U, 78U) : std::pair(10 * layer + 1, 10 * layer + 2);
  });
  EXPECT_EQ(paired(reference(), b), crosswise());
}

// What nobody else holds stays where its name has put it.
TEST(Crosswise, LeavesAMistakeWhereItIs) {
  const Catalog b = port([](unsigned layer) { return std::pair(10 * layer + 5, 10 * layer + 6); });
  for (const std::string& pair : paired(reference(), b))
    EXPECT_NE(pair.find(".output.LayerNorm=layers"), std::string::npos) << pair;
  EXPECT_NE(paired(reference(), b), crosswise());
}

}  // namespace
}  // namespace tensordiff
