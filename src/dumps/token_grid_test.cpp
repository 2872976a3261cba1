#include "dumps/token_grid.h"

#include <gtest/gtest.h>

#include "dumps/passes.h"
#include "dumps/tokens.h"
#include "naming/naming.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

// A dump of an embedding and a layer.
Catalog run_of(const Shape& shape) {
  Catalog catalog;
  for (const char* name : {"embed_tokens", "layers.0.mlp"})
    catalog.tensors.push_back({name, noise_view(shape, 1), ""});
  read_places(catalog);
  return catalog;
}

// "sequence:position/pass" of each.
std::string text_of(const std::vector<RunToken>& tokens) {
  std::string text;
  for (const RunToken& token : tokens)
    text += std::to_string(token.sequence) + ":" + std::to_string(token.position) + "/" +
            std::to_string(token.pass) + (token.placed ? " " : "? ");
  return text;
}

TEST(TokenGrid, ShapesTellSequencesAndPositions) {
  const Catalog batch = run_of({2, 3, 8});
  EXPECT_EQ(text_of(common_tokens(batch, batch)), "0:0/0 0:1/0 0:2/0 1:0/0 1:1/0 1:2/0 ");
  const Catalog turned = run_of({3, 1, 8});  // The sequence comes first.
  EXPECT_EQ(text_of(common_tokens(turned, turned)), "0:0/0 0:1/0 0:2/0 ");
}

// Ranks that hold a part of the sequence each tell nothing of what is whole on all of them.
TEST(TokenGrid, PartsOfTheSequenceAreNoTokensOfTheRun) {
  Catalog ranks = run_of({3, 8});
  const View first = ranks.tensors[0].view;
  ranks.tensors[0].shards = {first, noise_view({3, 8}, 2)};
  EXPECT_FALSE(grid_of(ranks, TokenKey::stream));
  ranks.tensors[0].shards = {first, first};
  EXPECT_TRUE(grid_of(ranks, TokenKey::stream));
}

TEST(TokenGrid, PassesOfOneSideAreThoseOfBoth) {
  const Catalog whole = run_of({1, 3, 8});
  Catalog parts = run_of({3, 8});
  parts.tokens = {{0, 0}, {0, 1}, {0, 2}};
  keep_passes({{0, 0, 4, true}, {0, 2, 5, true}}, parts);
  EXPECT_EQ(text_of(common_tokens(whole, parts)), "0:0/4 0:1/4 0:2/5 ");
  EXPECT_EQ(text_of(common_tokens(parts, whole)), "0:0/4 0:1/4 0:2/5 ");
}

// Each pass is a sequence of its own where nothing tells more, until the other side does.
TEST(TokenGrid, PositionsComeFromTheSideThatHasThem) {
  Catalog parts = run_of({3, 8});
  parts.tokens = {{0, 0}, {0, 1}, {1, 0}};
  keep_passes({{0, 0, 0, false}, {1, 0, 1, false}}, parts);
  EXPECT_EQ(text_of(common_tokens(parts, parts)), "0:0/0? 0:1/0? 1:0/1? ");
  EXPECT_EQ(text_of(common_tokens(run_of({1, 3, 8}), parts)), "0:0/0 0:1/0 0:2/1 ");
}

}  // namespace
}  // namespace tensordiff
