#include "dumps/experts.h"

#include <gtest/gtest.h>

#include "naming/naming.h"
#include "tensor/reader.h"
#include "tensor/test_views.h"

namespace tensordiff {
namespace {

using Rows = std::vector<float>;

View integers_view(const Shape& shape, const std::vector<int64_t>& values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(int64_t));
  return contiguous_view(DType::i64, shape, ByteSource(bytes_of(bytes))).value();
}

TEST(Experts, AreASetWithWeights) {
  Catalog catalog;
  catalog.tensors = {{"layers.0.mlp.topk_ids", integers_view({2, 2}, {5, 1, 0, 3}), ""},
                     {"layers.0.mlp.topk_weights", f32_view({2, 2}, {0.7F, 0.3F, 0.6F, 0.4F}), ""},
                     {"layers.1.mlp.topk_weights", f32_view({2, 2}, {0.7F, 0.3F, 0.6F, 0.4F}), ""}};
  read_places(catalog);
  order_experts(catalog);
  EXPECT_EQ(values_of(catalog.tensors[0].view), (Rows{1, 5, 0, 3}));
  EXPECT_EQ(values_of(catalog.tensors[1].view), (Rows{0.3F, 0.7F, 0.6F, 0.4F}));
  EXPECT_EQ(values_of(catalog.tensors[2].view), (Rows{0.7F, 0.3F, 0.6F, 0.4F}));
}

TEST(Experts, OfLlamaCpp) {
  Catalog catalog;
  catalog.tensors = {{"ffn_moe_topk-3", integers_view({1, 2}, {2, 0}), ""},
                     {"ffn_moe_weights-3", f32_view({1, 2, 1}, {0.9F, 0.1F}), ""}};
  read_places(catalog);
  order_experts(catalog);
  EXPECT_EQ(values_of(catalog.tensors[0].view), (Rows{0, 2}));
  EXPECT_EQ(values_of(catalog.tensors[1].view), (Rows{0.1F, 0.9F}));
}

// What is no choice of experts stays as it is.
TEST(Experts, OtherIntegersStay) {
  Catalog catalog;
  catalog.tensors = {{"layers.0.mlp.counts", integers_view({1, 2}, {5, 1}), ""},
                     {"layers.0.mlp.topk_ids", integers_view({2}, {5, 1}), ""}};
  read_places(catalog);
  order_experts(catalog);
  EXPECT_EQ(values_of(catalog.tensors[0].view), (Rows{5, 1}));
  EXPECT_EQ(values_of(catalog.tensors[1].view), (Rows{5, 1}));
}

}  // namespace
}  // namespace tensordiff
