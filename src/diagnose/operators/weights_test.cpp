#include "diagnose/operators/weights.h"

#include <gtest/gtest.h>

#include "diagnose/toys/toy_model.h"

namespace tensordiff {
namespace {

// Row i, column j holds 10 i + j.
Tensor counted(std::string name, uint64_t rows, uint64_t columns) {
  Values values;
  for (uint64_t i = 0; i < rows; ++i)
    for (uint64_t j = 0; j < columns; ++j) values.push_back(static_cast<double>(10 * i + j));
  return {std::move(name), view_of({rows, columns}, values, DType::f32), ""};
}

double at(const View& view, uint64_t row, uint64_t column) {
  return Reader::open(view).value().value(row * view.shape[1] + column);
}

TEST(Weights, AreReadAsOutByInHoweverTheyAreStored) {
  Catalog catalog;
  catalog.tensors = {counted("model.layers.3.self_attn.o_proj.weight", 2, 4),
                     counted("transformer.h.4.attn.c_proj.weight", 4, 2),
                     counted("model.layers.5.self_attn.o_proj.weight", 3, 3)};
  read_places(catalog);
  const Weights weights(catalog);
  EXPECT_EQ(weights.layers(), (std::vector<int64_t>{3, 4, 5}));
  const auto linear = weights.matrices(3, Projection::attention_output, 2, 4);
  ASSERT_EQ(linear.size(), 1U);
  EXPECT_EQ(at(linear[0], 1, 3), 13);
  const auto conv = weights.matrices(4, Projection::attention_output, 2, 4);
  ASSERT_EQ(conv.size(), 1U);
  EXPECT_EQ(at(conv[0], 1, 3), 31);
  // A square one may be either.
  EXPECT_EQ(weights.matrices(5, Projection::attention_output, 3, 3).size(), 2U);
  EXPECT_TRUE(weights.matrices(5, Projection::attention_output, 3, 4).empty());
  EXPECT_TRUE(weights.matrices(6, Projection::attention_output, 3, 3).empty());
}

TEST(Weights, AreCutOutOfFusedOnes) {
  Catalog catalog;
  catalog.tensors = {counted("model.layers.0.self_attn.qkv_proj.weight", 8, 3),
                     counted("model.layers.0.mlp.gate_up_proj.weight", 6, 4),
                     {"model.layers.0.self_attn.qkv_proj.bias",
                      view_of({8}, {0, 1, 2, 3, 4, 5, 6, 7}, DType::f32), ""}};
  read_places(catalog);
  const Weights weights(catalog);
  // Four rows of queries, two of keys, two of values.
  EXPECT_EQ(at(weights.matrices(0, Projection::query, 4, 3).at(0), 0, 0), 0);
  EXPECT_EQ(at(weights.matrices(0, Projection::key, 2, 3).at(0), 0, 0), 40);
  EXPECT_EQ(at(weights.matrices(0, Projection::value, 2, 3).at(0), 0, 0), 60);
  EXPECT_EQ(weights.bias(0, Projection::key, 2), (std::vector<double>{4, 5}));
  EXPECT_EQ(at(weights.matrices(0, Projection::up, 3, 4).at(0), 0, 1), 31);
  EXPECT_EQ(weights.inner_size(0, 4), 3U);
  EXPECT_EQ(weights.inner_size(1, 4), 0U);
}

TEST(Weights, LeaveOutWhatCannotBeRead) {
  Catalog catalog;
  catalog.tensors = {broken_tensor("model.layers.0.mlp.up_proj.weight", "cut short")};
  read_places(catalog);
  EXPECT_TRUE(Weights(catalog).empty());
  catalog.tensors.push_back(counted("something.else", 2, 2));
  EXPECT_EQ(Weights(catalog).named()->size(), 1U);
  EXPECT_TRUE(Weights(catalog).layers().empty());
}

}  // namespace
}  // namespace tensordiff
