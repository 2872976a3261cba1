#include "digest/linear_hash.h"

#include <gtest/gtest.h>

#include "tensor/test_views.h"

namespace tensordiff {
namespace {

LinearHash hash_of(const View& view) {
  const Result<Hashed> hashed = hash_values(view);
  EXPECT_TRUE(hashed.ok()) << (hashed.ok() ? "" : hashed.error().message());
  return hashed.ok() ? hashed.value().hash : LinearHash{};
}

template <class T>
View view_of(DType dtype, const Shape& shape, const std::vector<T>& values) {
  std::string bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  return contiguous_view(dtype, shape, ByteSource(bytes_of(bytes))).value();
}

std::vector<float> slice(const std::vector<float>& all, std::size_t first, std::size_t count) {
  return {all.begin() + static_cast<std::ptrdiff_t>(first),
          all.begin() + static_cast<std::ptrdiff_t>(first + count)};
}

TEST(LinearHash, TellsValuesPositionsAndOrderApart) {
  const std::vector<float> values = noise(600, 1);
  const LinearHash hash = hash_of(f32_view({20, 30}, values));
  EXPECT_EQ(hash_of(f32_view({20, 30}, values)), hash);
  EXPECT_NE(hash_of(f32_view({30, 20}, values)), hash);
  for (const std::size_t at : {0, 1, 299, 599}) {
    std::vector<float> other = values;
    other[at] = std::nextafter(other[at], 100.0F);
    EXPECT_NE(hash_of(f32_view({20, 30}, other)), hash) << at;
  }
  std::vector<float> swapped = values;
  std::swap(swapped[5], swapped[35]);
  EXPECT_NE(hash_of(f32_view({20, 30}, swapped)), hash);
}

TEST(LinearHash, IsFixedForGood) {
  EXPECT_EQ(hex_of(hash_of(f32_view({1}, {1}))), "000000003f800000000000003f800000");
  EXPECT_EQ(hash_of_hex("000000003f800000000000003f800000"), hash_of(f32_view({1}, {1})));
  EXPECT_EQ(hash_of_hex("000000003f80000000000000 f800000"), std::nullopt);
  EXPECT_EQ(hash_of_hex("ffffffffffffffff000000003f800000"), std::nullopt) << "not reduced";
}

TEST(LinearHash, DoesNotDependOnTheType) {
  const LinearHash hash = hash_of(f32_view({3}, {1, -2, 0.5}));
  EXPECT_EQ(hash_of(view_of<double>(DType::f64, {3}, {1, -2, 0.5})), hash);
  EXPECT_EQ(hash_of(view_of<uint16_t>(DType::bf16, {3}, {0x3f80, 0xc000, 0x3f00})), hash);
  EXPECT_EQ(hash_of(view_of<uint16_t>(DType::f16, {3}, {0x3c00, 0xc000, 0x3800})), hash);
  EXPECT_EQ(hash_of(view_of<int64_t>(DType::i64, {2}, {1, -2})), hash_of(f32_view({2}, {1, -2})));
  EXPECT_EQ(hash_of(f32_view({2}, {0, NAN})), hash_of(f32_view({2}, {-0.0F, -NAN})));
  EXPECT_NE(hash_of(view_of<double>(DType::f64, {1}, {0.1})), hash_of(f32_view({1}, {0.1F})));
}

TEST(LinearHash, OfThePartsGivesThatOfTheWhole) {
  // Rows longer than the table of powers, and more elements than one chunk.
  const uint64_t rows = 300, columns = 5000;
  const std::vector<float> values = noise(rows * columns, 3);
  const LinearHash whole = hash_of(f32_view({rows, columns}, values));
  for (const uint64_t cut : {1U, 7U, 299U}) {
    LinearHash joined = hash_of(f32_view({cut, columns}, slice(values, 0, cut * columns)));
    joined.append_rows(hash_of(f32_view({rows - cut, columns},
                                        slice(values, cut * columns, (rows - cut) * columns))),
                       cut);
    EXPECT_EQ(joined, whole) << cut;
  }
  std::vector<float> left, right;
  for (uint64_t row = 0; row < rows; ++row)
    for (uint64_t column = 0; column < columns; ++column)
      (column < 4999 ? left : right).push_back(values[row * columns + column]);
  LinearHash joined = hash_of(f32_view({rows, 4999}, left));
  joined.append_columns(hash_of(f32_view({rows, 1}, right)), 4999);
  EXPECT_EQ(joined, whole);
}

TEST(LinearHash, OfVectorsIsJoinedByRows) {
  const std::vector<float> values = noise(100000, 4);
  LinearHash joined = hash_of(f32_view({70000}, slice(values, 0, 70000)));
  joined.append_rows(hash_of(f32_view({30000}, slice(values, 70000, 30000))), 70000);
  EXPECT_EQ(joined, hash_of(f32_view({100000}, values)));
}

TEST(LinearHash, TellsStatisticsToo) {
  const Result<Hashed> hashed = hash_values(f32_view({4}, {1, 2, 3, NAN}));
  ASSERT_TRUE(hashed.ok());
  EXPECT_EQ(hashed.value().stats.mean, 2);
  EXPECT_EQ(hashed.value().stats.nan, 1U);
  EXPECT_EQ(hash_of(f32_view({0, 3}, {})), LinearHash{});
}

}  // namespace
}  // namespace tensordiff
