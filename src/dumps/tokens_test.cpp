#include "dumps/tokens.h"

#include <gtest/gtest.h>

#include "align/view.h"
#include "naming/naming.h"
#include "tensor/reader.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Rows = std::vector<float>;

// One feature a token; the embedding tells which it is.
Catalog run_of(const Shape& shape, const Rows& values) {
  Catalog catalog;
  for (const char* name : {"model.embed_tokens", "model.layers.0.mlp"})
    catalog.tensors.push_back({name, f32_view(shape, values), ""});
  read_places(catalog);
  return catalog;
}

TEST(Tokens, APackedBatchIsAPaddedOneWithoutItsPadding) {
  Catalog padded = run_of({2, 3, 1}, {1, 2, 3, 99, 4, 5});
  Catalog packed = run_of({5, 1}, {1, 2, 3, 4, 5});
  std::vector<std::string> notes;
  line_up_tokens(padded, packed, notes);
  EXPECT_EQ(values_of(padded.tensors[1].view), (Rows{1, 2, 3, 4, 5}));
  EXPECT_EQ(values_of(packed.tensors[1].view), (Rows{1, 2, 3, 4, 5}));
  EXPECT_EQ(notes.size(), 1u);
}

// Gemma's embedding is scaled inside the module in one program, and behind it in the other.
TEST(Tokens, AScaledEmbeddingTellsTheSameTokens) {
  const auto run = [](const Rows& values, float factor) {
    Rows scaled = values;
    for (float& value : scaled) value *= factor;
    return run_of({values.size() / 2, 2}, scaled);
  };
  Catalog a = run({1, 2, 2, -1, 3, 1}, 8), b = run({5, -4, 1, 2, 2, -1, 3, 1}, 1);
  std::vector<std::string> notes;
  line_up_tokens(a, b, notes);
  EXPECT_EQ(values_of(b.tensors[1].view), (Rows{1, 2, 2, -1, 3, 1}));
}

TEST(Tokens, IdsThatAreNearAreOthers) {
  Catalog a = run_of({3, 1}, {1, 2, 3}), b = run_of({5, 1}, {9, 9, 1, 2, 3});
  a.tokens = {{0, 0, 1000}, {0, 1, 1001}, {0, 2, 1002}};
  b.tokens = {{0, 0, 1003}, {0, 1, 999}, {1, 0, 1000}, {1, 1, 1001}, {1, 2, 1002}};
  std::vector<std::string> notes;
  line_up_tokens(a, b, notes);
  EXPECT_EQ(values_of(b.tensors[1].view), (Rows{1, 2, 3}));
}

// Positions have one row for all sequences.
TEST(Tokens, WhatABatchHasOnceStandsForEachSequence) {
  Catalog padded = run_of({2, 3, 1}, {1, 2, 3, 4, 5, 99});
  padded.tensors.push_back({"model.wpe", f32_view({1, 3, 1}, {10, 20, 30}), ""});
  Catalog packed = run_of({5, 1}, {1, 2, 3, 4, 5});
  std::vector<std::string> notes;
  line_up_tokens(padded, packed, notes);
  EXPECT_EQ(values_of(padded.tensors[2].view), (Rows{10, 20, 30, 10, 20}));
}

TEST(Tokens, AWarmUpIsLeftOut) {
  Catalog a = run_of({1, 3, 1}, {1, 2, 3});
  Catalog b = run_of({5, 1}, {7, 7, 1, 2, 3});
  std::vector<std::string> notes;
  line_up_tokens(a, b, notes);
  EXPECT_EQ(values_of(b.tensors[1].view), (Rows{1, 2, 3}));
}

// Rows that are out of order are a mistake to be found, not a layout.
TEST(Tokens, TheSameNumberOfTokensStaysAsItIs) {
  Catalog a = run_of({3, 1}, {1, 2, 3});
  Catalog b = run_of({3, 1}, {2, 1, 3});
  std::vector<std::string> notes;
  line_up_tokens(a, b, notes);
  EXPECT_EQ(values_of(b.tensors[1].view), (Rows{2, 1, 3}));
  EXPECT_TRUE(notes.empty());
}

// The streams of layers come as two summands, and the embedding from all ranks.
TEST(Tokens, SumsAndCopiesOfRanksAreLinedUp) {
  Catalog padded = run_of({2, 3, 1}, {1, 2, 3, 99, 4, 5});
  Catalog packed = run_of({5, 1}, {1, 2, 3, 4, 5});
  packed.tensors[0].shards = {packed.tensors[0].view, packed.tensors[0].view};
  packed.tensors[1].view =
      summed(std::vector<View>{packed.tensors[1].view, packed.tensors[1].view});
  padded.tensors[1].view =
      summed(std::vector<View>{padded.tensors[1].view, padded.tensors[1].view});
  std::vector<std::string> notes;
  line_up_tokens(padded, packed, notes);
  EXPECT_EQ(values_of(padded.tensors[1].view), (Rows{2, 4, 6, 8, 10}));
  EXPECT_EQ(values_of(packed.tensors[1].view), (Rows{2, 4, 6, 8, 10}));
}

// Where the embedding was not dumped, the input of the first layer tells the same.
TEST(Tokens, TheInputOfTheFirstLayerStandsForTheEmbedding) {
  Catalog padded = run_of({2, 3, 1}, {1, 2, 3, 99, 4, 5});
  Catalog packed = run_of({5, 1}, {1, 2, 3, 4, 5});
  packed.tensors[0].name = "layers.0.layer_input";
  read_places(packed);
  std::vector<std::string> notes;
  line_up_tokens(padded, packed, notes);
  EXPECT_EQ(values_of(padded.tensors[1].view), (Rows{1, 2, 3, 4, 5}));
}

TEST(Tokens, OtherTokensAreNotLinedUp) {
  Catalog a = run_of({1, 3, 1}, {1, 2, 3});
  Catalog b = run_of({4, 1}, {5, 6, 7, 8});
  std::vector<std::string> notes;
  line_up_tokens(a, b, notes);
  EXPECT_EQ(a.tensors[1].view.shape, (Shape{1, 3, 1}));
  EXPECT_TRUE(notes.empty());
}

TEST(Tokens, ATensorOfTheLastTokenIsComparedWithThatRow) {
  Tensor all{"lm_head", f32_view({1, 3, 2}, {1, 2, 3, 4, 5, 6}), ""};
  Tensor last{"logits", f32_view({1, 2}, {5, 6}), ""};
  last.tokens = std::make_shared<const std::vector<uint64_t>>(std::vector<uint64_t>{2});
  TokenViews views{{all.view}, {last.view, last.view}};  // On two ranks.
  keep_common_tokens(all, last, 3, views);
  EXPECT_EQ(values_of(views.a[0]), (Rows{5, 6}));
  EXPECT_EQ(views.a[0].shape, (Shape{1, 2}));
  EXPECT_EQ(views.b.size(), 2u);
}

}  // namespace
}  // namespace tensordiff
