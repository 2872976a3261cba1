// A model against the same model in packings that quantising tools write: close where it is right,
// different where one layer holds another one's weights.

#include <algorithm>
#include <cmath>

#include "packed/test_packed.h"
#include "tensor/test_views.h"
#include "test_compare.h"

namespace tensordiff {
namespace {

using namespace test_packed;

constexpr std::size_t kOut = 32, kIn = 64, kGroup = 16;

std::string name_of_layer(int layer) {
  return "model.layers." + std::to_string(layer) + ".mlp.up_proj";
}
std::vector<float> weights_of(int layer) {
  return noise(kOut * kIn, static_cast<unsigned>(layer) + 1);
}

float largest_of(const std::vector<float>& values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

// GPTQ: groups of inputs, symmetric, as AutoGPTQ writes it.
void add_gptq(Catalog& catalog, const std::string& name, const std::vector<float>& weights) {
  std::vector<uint32_t> levels(kIn / 8 * kOut), zeros(kIn / kGroup * kOut / 8, 0x77777777);
  std::vector<float> scales(kIn / kGroup * kOut);
  for (std::size_t out = 0; out < kOut; ++out)
    for (std::size_t in = 0; in < kIn; ++in) {
      const std::size_t group = in / kGroup;
      const float* first = &weights[out * kIn + group * kGroup];
      const float scale = largest_of({first, first + kGroup}) / 7;
      scales[group * kOut + out] = scale;
      const long level = std::lround(weights[out * kIn + in] / scale) + 8;
      levels[in / 8 * kOut + out] |= static_cast<uint32_t>(level) << in % 8 * 4;
    }
  catalog.tensors.push_back(words(name + ".qweight", {kIn / 8, kOut}, levels));
  catalog.tensors.push_back(words(name + ".qzeros", {kIn / kGroup, kOut / 8}, zeros));
  catalog.tensors.push_back(floats(name + ".scales", {kIn / kGroup, kOut}, scales));
}

// int8 with a scale for each row, as bitsandbytes writes it.
void add_int8(Catalog& catalog, const std::string& name, const std::vector<float>& weights) {
  std::vector<uint8_t> levels(weights.size());
  std::vector<float> largest(kOut);
  for (std::size_t out = 0; out < kOut; ++out) {
    const float* row = &weights[out * kIn];
    largest[out] = largest_of({row, row + kIn});
    for (std::size_t in = 0; in < kIn; ++in)
      levels[out * kIn + in] =
          static_cast<uint8_t>(std::lround(row[in] / largest[out] * 127) & 0xff);
  }
  catalog.tensors.push_back(bytes(name + ".weight", {kOut, kIn}, levels, DType::i8));
  catalog.tensors.push_back(floats(name + ".SCB", {kOut}, largest));
}

using Add = void (*)(Catalog&, const std::string&, const std::vector<float>&);

Report compare_with(Add add, const std::vector<int>& layers_of_b) {
  Catalog a, b;
  for (int layer = 0; layer < 2; ++layer) {
    a.tensors.push_back(floats(name_of_layer(layer) + ".weight", {kOut, kIn}, weights_of(layer)));
    add(b, name_of_layer(layer), weights_of(layers_of_b[static_cast<std::size_t>(layer)]));
  }
  unpack(b);
  return compare_catalogs(std::move(a), std::move(b));
}

TEST(PackedWeights, AreCloseToWhatTheyWereMadeOf) {
  for (const Add add : {add_gptq, add_int8}) {
    const Report report = compare_with(add, {0, 1});
    ASSERT_EQ(report.pairs.size(), 2);
    for (const PairRow& row : report.pairs) {
      EXPECT_EQ(row.comparison.status, Status::close);
      EXPECT_FALSE(row.b.made_from.empty());
    }
    EXPECT_EQ(report.summary.verdict, Conclusion::close);
    EXPECT_TRUE(report.only_b.empty());
    EXPECT_FALSE(report.auxiliary_b.empty());
    EXPECT_TRUE(std::ranges::any_of(report.notes, [](const std::string& note) {
      return note.starts_with("B: 2 weights were dequantized from");
    }));
  }
}

TEST(PackedWeights, OfAnotherLayerAreDifferent) {
  for (const Add add : {add_gptq, add_int8}) {
    const Report report = compare_with(add, {1, 1});
    ASSERT_EQ(report.pairs.size(), 2);
    EXPECT_EQ(report.pairs[0].comparison.status, Status::different);
    EXPECT_EQ(report.summary.verdict, Conclusion::different);
  }
}

// Packed on both sides: equal to the last bit.
TEST(PackedWeights, AreIdenticalToThemselves) {
  Catalog a, b;
  add_gptq(a, name_of_layer(0), weights_of(0));
  add_gptq(b, name_of_layer(0), weights_of(0));
  unpack(a);
  unpack(b);
  const Report report = compare_catalogs(std::move(a), std::move(b));
  EXPECT_EQ(report.pairs.size(), 3);
  EXPECT_EQ(report.summary.verdict, Conclusion::same);
}

}  // namespace
}  // namespace tensordiff
