// Counting pairs of codes gives what measuring pair by pair gives.

#include "compare/code_pairs.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "compare/tile_sums.h"

namespace tensordiff {
namespace {

using Bytes = std::vector<std::byte>;

// b is a, moved by a few codes here and there.
struct Pair {
  Pair(DType dtype, std::size_t count, unsigned seed, bool any) : a(count), b(count) {
    std::mt19937 random(seed);
    const unsigned codes = 1U << info(dtype).bits;
    for (std::size_t i = 0; i < count; ++i) {
      unsigned x = random() % codes, y = random() % 3 == 0 ? (x + random() % 5) % codes : x;
      if (dtype == DType::boolean) x %= 2, y %= 2;
      const auto as_element = [&](unsigned code) {
        const auto element = static_cast<std::byte>(code);
        return any || std::isfinite(decode_one(dtype, &element)) ? element : std::byte{0};
      };
      a[i] = as_element(x);
      b[i] = as_element(y);
    }
  }
  Bytes a, b;
};

Sums tile_by_tile(DType dtype, const Pair& pair, Threshold limit) {
  Sums sums;
  for (std::size_t done = 0; done < pair.a.size(); done += kTileElements) {
    const std::size_t count = std::min(kTileElements, pair.a.size() - done);
    sums.merge(measure_tile(
        arithmetic_for(dtype, dtype),
        {pair.a.data() + done, pair.b.data() + done, dtype, dtype, {count, done, limit, {}, {}}}));
  }
  return sums;
}

void expect_near(double x, double y, std::string_view what) {
  if (std::isinf(x) && x == y) return;
  EXPECT_LE(std::abs(x - y), 1e-11 * std::max({std::abs(x), std::abs(y), 1e-300})) << what;
}

void expect_same(const Moments& x, const Moments& y) {
  EXPECT_EQ(std::tie(x.count, x.zeros, x.nan, x.inf), std::tie(y.count, y.zeros, y.nan, y.inf));
  EXPECT_EQ(std::tie(x.min, x.max), std::tie(y.min, y.max));
  EXPECT_LE(std::abs(x.mean - y.mean), 1e-12 * std::sqrt(x.m2 / double(x.count) + x.mean * x.mean));
  expect_near(x.m2, y.m2, "m2");
}

void expect_same(const Sums& x, const Sums& y) {
  expect_same(x.a, y.a);
  expect_same(x.b, y.b);
  EXPECT_EQ(std::tie(x.count, x.values, x.equal, x.exceeding, x.mismatch, x.agreeing, x.ulp),
            std::tie(y.count, y.values, y.equal, y.exceeding, y.mismatch, y.agreeing, y.ulp));
  EXPECT_EQ(std::tie(x.max_abs, x.max_abs_at, x.mismatch_at, x.agreeing_at),
            std::tie(y.max_abs, y.max_abs_at, y.mismatch_at, y.agreeing_at));
  expect_near(x.max_rel, y.max_rel, "max_rel");
  expect_near(x.rtol_needed, y.rtol_needed, "rtol_needed");
  expect_near(x.d_abs, y.d_abs, "d_abs");
  expect_near(x.d_squared, y.d_squared, "d_squared");
  expect_near(x.d_relative, y.d_relative, "d_relative");
  EXPECT_LE(std::abs(x.co - y.co), 1e-11 * std::sqrt(x.m2_a * x.m2_b));
}

TEST(CodePairs, GiveWhatTilesGive) {
  unsigned seed = 0;
  for (const DType dtype : {DType::f8_e4m3, DType::f8_e5m2, DType::f8_e4m3fnuz, DType::f8_e5m2fnuz,
                            DType::f8_e8m0, DType::f6_e2m3, DType::f4_e2m1, DType::i8, DType::u8,
                            DType::i4, DType::u2, DType::boolean}) {
    ASSERT_TRUE(CodePairs::are_codes(dtype));
    for (const bool any : {false, true}) {
      for (const Threshold limit : {Threshold{0, 0}, Threshold{info(dtype).atol, 0.13}}) {
        const Pair pair(dtype, 10'000, ++seed, any);
        SCOPED_TRACE(fmt::format("{}, seed {}", name_of(dtype), seed));
        const CodePairs codes(dtype, limit);
        expect_same(codes.measure(pair.a.data(), pair.b.data(), pair.a.size(), {}),
                    tile_by_tile(dtype, pair, limit));
      }
    }
  }
}

TEST(CodePairs, SayWhereNothingExceeds) {
  const Pair pair(DType::f8_e4m3, 2048, 1, false);
  const CodePairs exact(DType::f8_e4m3, {}), wide(DType::f8_e4m3, {1e9, 0});
  EXPECT_TRUE(exact.may_exceed(pair.a.data(), pair.b.data(), 2048));
  EXPECT_FALSE(exact.may_exceed(pair.a.data(), pair.a.data(), 2048));
  EXPECT_FALSE(wide.may_exceed(pair.a.data(), pair.b.data(), 2048));
  // One step is within the tolerance of the type, ten are not.
  const CodePairs usual(DType::f8_e4m3, {info(DType::f8_e4m3).atol, info(DType::f8_e4m3).rtol});
  const std::byte a[] = {std::byte{0x40}}, near[] = {std::byte{0x41}}, far[] = {std::byte{0x4a}};
  EXPECT_FALSE(usual.may_exceed(a, near, 1));
  EXPECT_TRUE(usual.may_exceed(a, far, 1));
}

}  // namespace
}  // namespace tensordiff
