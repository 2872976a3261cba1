#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "match/test_catalogs.h"
#include "naming/naming.h"

namespace tensordiff {
namespace {

Catalog of(const std::vector<std::pair<std::string, View>>& tensors) {
  Catalog catalog;
  for (const auto& [name, view] : tensors) catalog.tensors.push_back({name, view, ""});
  read_places(catalog);
  return catalog;
}

// A matrix by its elements.
View matrix(uint64_t rows, uint64_t columns,
            const std::function<float(uint64_t row, uint64_t column)>& at) {
  std::vector<float> values;
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t column = 0; column < columns; ++column) values.push_back(at(row, column));
  return f32_view({rows, columns}, values);
}

// Rows of a matrix, by their numbers.
View rows_of(const View& view, const std::vector<uint64_t>& rows) {
  const std::vector<float> values = values_of(view);
  const uint64_t columns = view.shape[1];
  return matrix(rows.size(), columns, [&](uint64_t row, uint64_t column) {
    return values[rows[row] * columns + column];
  });
}

View rows_from(const View& view, uint64_t first, uint64_t count) {
  std::vector<uint64_t> rows(count);
  std::iota(rows.begin(), rows.end(), first);
  return rows_of(view, rows);
}

View turned(const View& view) {
  const std::vector<float> values = values_of(view);
  return matrix(view.shape[1], view.shape[0], [&](uint64_t row, uint64_t column) {
    return values[column * view.shape[1] + row];
  });
}

// Experts on one side, stacked on the other, in this order of the last layer.
Names stacked_pairs(const std::vector<uint64_t>& order) {
  std::vector<std::pair<std::string, View>> of_a, of_b;
  for (uint64_t layer = 0; layer < 3; ++layer) {
    const View whole = noise_view({24, 8}, static_cast<unsigned>(layer + 1));
    std::vector<uint64_t> rows;
    for (uint64_t i = 0; i < 3; ++i) {
      of_a.emplace_back(fmt::format("h.{}.some.{}.zap", layer, i), rows_from(whole, 8 * i, 8));
      for (uint64_t row = 0; row < 8; ++row) rows.push_back(8 * (layer == 2 ? order[i] : i) + row);
    }
    of_b.emplace_back(fmt::format("z.{}.all", layer), rows_of(whole, rows));
  }
  Names last;
  for (const std::string& pair : pairs_of(matchers::fused_value, of(of_a), of(of_b)))
    if (pair.starts_with("h.2.")) last.push_back(pair);
  return last;
}

TEST(FusedValue, HoldsTheOrderOfPartsToThatOfOtherLayers) {
  const Names in_order = {"h.2.some.0.zap=z.2.all[0]", "h.2.some.1.zap=z.2.all[1]",
                          "h.2.some.2.zap=z.2.all[2]"};
  EXPECT_EQ(stacked_pairs({0, 1, 2}), in_order);
  EXPECT_EQ(stacked_pairs({1, 0, 2}), in_order);  // To pair them by value would hide a mistake.
}

TEST(FusedValue, HoldsAFusedTensorToThePartsOfItsOwnLayer) {
  // Two experts of different layers changed places; the third layer tells how they are stacked.
  std::vector<std::pair<std::string, View>> of_a, of_b;
  Names expected;
  for (unsigned layer = 0; layer < 3; ++layer) {
    const View whole = noise_view({32, 8}, layer + 1);
    for (uint64_t i = 0; i < 4; ++i) {
      of_a.emplace_back(fmt::format("h.{}.some.{}.zap", layer, i), rows_from(whole, 8 * i, 8));
      expected.push_back(fmt::format("h.{0}.some.{1}.zap=z.{0}.all[{1}]", layer, i));
    }
    of_b.emplace_back(fmt::format("z.{}.all", layer), whole);
  }
  std::swap(of_a[3].second, of_a[6].second);
  Names pairs = pairs_of(matchers::fused_value, of(of_a), of(of_b));
  std::ranges::sort(pairs);
  EXPECT_EQ(pairs, expected);
}

TEST(FusedValue, FusesBiasesAsTheWeightsBesideThem) {
  const View whole = noise_view({16, 20}, 1), bias = noise_view({16}, 2);
  const std::vector<float> values = values_of(bias);
  const View first = f32_view({8}, {values.begin(), values.begin() + 8});
  const View second = f32_view({8}, {values.begin() + 8, values.end()});
  EXPECT_EQ(pairs_of(matchers::fused_value, of({{"zip.weight", whole}, {"zip.bias", bias}}),
                     of({{"foo.weight", rows_from(whole, 0, 8)},
                         {"bar.weight", rows_from(whole, 8, 8)},
                         {"foo.bias", first},
                         {"bar.bias", second}})),
            (Names{"zip.weight[0]=foo.weight", "zip.weight[1]=bar.weight", "zip.bias[0]=foo.bias",
                   "zip.bias[1]=bar.bias"}));
}

TEST(FusedValue, FindsPartsOfAnyWidthAlongAnyAxis) {
  const View whole = noise_view({16, 20}, 1);
  const View q = rows_from(whole, 0, 8), k = rows_from(whole, 8, 4), v = rows_from(whole, 12, 4);
  for (const bool flip : {false, true}) {
    const Catalog fused = of({{"zip", flip ? turned(whole) : whole}, {"zap", noise_view({9}, 9)}});
    const Catalog apart =
        of({{"foo", v}, {"bar", turned(q)}, {"other", noise_view({4, 20}, 2)}, {"baz", k}});
    EXPECT_EQ(pairs_of(matchers::fused_value, fused, apart),
              (Names{"zip[0]=bar", "zip[1]=baz", "zip[2]=foo"}));
    EXPECT_EQ(pairs_of(matchers::fused_value, apart, fused),
              (Names{"foo=zip[2]", "bar=zip[0]", "baz=zip[1]"}));
  }
}

TEST(FusedValue, FindsStackedExperts) {
  const View rows = noise_view({24, 10}, 1);
  const View stack = stored_as(rows, {3, 8, 10});
  const auto expert = [&](uint64_t i) { return rows_from(rows, 8 * i, 8); };
  EXPECT_EQ(pairs_of(matchers::fused_value, of({{"all", stack}}),
                     of({{"x", expert(2)}, {"y", expert(0)}, {"z", expert(1)}})),
            (Names{"all[0]=y", "all[1]=z", "all[2]=x"}));
}

// Four heads of six rows, of which the first three are one part and the others another.
TEST(FusedValue, FindsPartsThatAreInterleavedByHeads) {
  const View whole = noise_view({24, 10}, 1);
  const auto part = [&](uint64_t first) {
    std::vector<uint64_t> rows;
    for (uint64_t row = 0; row < 24; ++row)
      if (row % 6 / 3 == first) rows.push_back(row);
    return rows_of(whole, rows);
  };
  EXPECT_EQ(
      pairs_of(matchers::fused_value, of({{"all", whole}}), of({{"x", part(1)}, {"y", part(0)}})),
      (Names{"all[0]=y", "all[1]=x"}));
}

TEST(FusedValue, ReadsWhatItFoundAsARule) {
  const View first = noise_view({8, 20}, 1), second = noise_view({8, 20}, 2);
  // Layer 1 of b holds other values: only the rule can pair it.
  EXPECT_EQ(
      pairs_of(matchers::fused_value, of({{"m.0.zip", first}, {"m.1.zip", second}}),
               of({{"n.0.x", rows_from(first, 0, 4)},
                   {"n.0.y", rows_from(first, 4, 4)},
                   {"n.1.x", noise_view({4, 20}, 8)},
                   {"n.1.y", noise_view({4, 20}, 9)}})),
      (Names{"m.0.zip[0]=n.0.x", "m.0.zip[1]=n.0.y", "m.1.zip[0]=n.1.x", "m.1.zip[1]=n.1.y"}));
}

TEST(FusedValue, ReadsItAsARuleBehindANumberInTheNameOfTheModel) {
  const View first = noise_view({8, 20}, 1), second = noise_view({8, 20}, 2);
  EXPECT_EQ(pairs_of(matchers::fused_value, of({{"m.0.zip", first}, {"m.1.zip", second}}),
                     of({{"net2.n.0.x", rows_from(first, 0, 4)},
                         {"net2.n.0.y", rows_from(first, 4, 4)},
                         {"net2.n.1.x", noise_view({4, 20}, 8)},
                         {"net2.n.1.y", noise_view({4, 20}, 9)}})),
            (Names{"m.0.zip[0]=net2.n.0.x", "m.0.zip[1]=net2.n.0.y", "m.1.zip[0]=net2.n.1.x",
                   "m.1.zip[1]=net2.n.1.y"}));
}

TEST(FusedValue, PairsNothingByChance) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::vector<Named> parts;
    for (unsigned i = 0; i < 30; ++i)
      parts.push_back({fmt::format("p{}", i), {8, 16}, seed * 1000 + i});
    EXPECT_EQ(pairs_of(matchers::fused_value, catalog_of({{"w", {24, 16}, seed * 1000 + 999}}),
                       catalog_of(parts)),
              Names{})
        << "seed " << seed;
  }
}

}  // namespace
}  // namespace tensordiff
