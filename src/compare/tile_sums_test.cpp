#include "compare/tile_sums.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

namespace tensordiff {
namespace {

std::string words(std::size_t count, unsigned step) {
  std::string bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const auto word = static_cast<uint16_t>(0x2000 + i * 37 % 0x1800 + step * (i % 3));
    bytes.append(reinterpret_cast<const char*>(&word), 2);
  }
  return bytes;
}

const std::byte* bytes_at(const std::string& bytes, std::size_t offset) {
  return reinterpret_cast<const std::byte*>(bytes.data()) + offset;
}

RawTile tile_of(DType dtype, const std::byte* a, const std::byte* b, std::size_t count) {
  return {a, b, dtype, dtype, {count, 0, {1e-5, 1e-3}, {}, {}, true}};
}

// A file may hold its elements at odd addresses, where no kernel reads them in place.
TEST(TileSums, DoNotDependOnWhereTheElementsLie) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32, DType::f64})
    for (const std::size_t bytes : {4096, 4072, 40}) {
      const std::size_t count = bytes / item_bytes(dtype);
      const std::string a = words(bytes / 2, 0), b = words(bytes / 2, 1);
      const std::string odd_a = "x" + a, odd_b = "x" + b;
      const Arithmetic arithmetic = arithmetic_for(dtype, dtype);
      const Sums even =
          measure_tile(arithmetic, tile_of(dtype, bytes_at(a, 0), bytes_at(b, 0), count));
      const Sums odd =
          measure_tile(arithmetic, tile_of(dtype, bytes_at(odd_a, 1), bytes_at(odd_b, 1), count));
      EXPECT_EQ(even.count, count) << name_of(dtype);
      EXPECT_GT(even.ulp, 0U) << name_of(dtype);
      EXPECT_EQ(std::memcmp(&even, &odd, sizeof even), 0) << name_of(dtype) << " " << count;
    }
}

TEST(TileSums, CountWhatIsNotFinite) {
  for (const auto& [dtype, bad] : {std::pair(DType::f16, 0x7c00), {DType::bf16, 0xffc0}}) {
    const std::size_t count = 2048;
    std::string a = words(count, 0), b = words(count, 1);
    const auto word = static_cast<uint16_t>(bad);
    for (const std::size_t at : {0, 777, 2047}) std::memcpy(&b[2 * at], &word, 2);
    std::memcpy(&a[2 * 777], &word, 2);
    const Sums sums = measure_tile(arithmetic_for(dtype, dtype),
                                   tile_of(dtype, bytes_at(a, 0), bytes_at(b, 0), count));
    EXPECT_EQ(sums.count, count - 3);
    EXPECT_EQ(sums.agreeing, 1U);
    EXPECT_EQ(sums.mismatch, 2U);
    EXPECT_EQ(sums.ulp, 2U);
    EXPECT_EQ(sums.b.nan + sums.b.inf, 3U);
  }
}

// The same bytes are told without a difference being taken, and give what it would have given.
TEST(TileSums, KnowTheSameBytes) {
  for (const DType dtype : {DType::f16, DType::bf16, DType::f32}) {
    const std::string a = words(2048, 0);
    const std::size_t count = a.size() / item_bytes(dtype);
    const std::string copy = a;
    const Sums sums = measure_tile(arithmetic_for(dtype, dtype),
                                   tile_of(dtype, bytes_at(a, 0), bytes_at(copy, 0), count));
    EXPECT_EQ(sums.equal, count);
    EXPECT_EQ(sums.max_abs, 0);
    EXPECT_EQ(sums.a.mean, measure_elements(dtype, bytes_at(a, 0), count).mean);
  }
}

}  // namespace
}  // namespace tensordiff
