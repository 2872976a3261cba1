#include "compare/ulp.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace tensordiff {
namespace {

std::vector<float> values_of(DType dtype) {
  std::vector<float> values;
  for (unsigned bits = 0; bits < 1U << info(dtype).bits; ++bits) {
    const auto code = static_cast<std::byte>(bits);
    const double value = decode_one(dtype, &code);
    if (std::isfinite(value)) values.push_back(static_cast<float>(value));
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

// By looking at all values of the type: the nearest, and of two the upper one.
int64_t place_of(const std::vector<float>& values, float value) {
  std::size_t nearest = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (std::abs(double{values[i]} - value) <= std::abs(double{values[nearest]} - value))
      nearest = i;
  return static_cast<int64_t>(nearest);
}

constexpr DType kNarrow[] = {DType::f8_e4m3,     DType::f8_e5m2, DType::f8_e4m3fnuz,
                             DType::f8_e5m2fnuz, DType::f8_e8m0, DType::f4_e2m1};

TEST(UlpBetween, RoundsToTheNearestValueOfNarrowTypes) {
  std::mt19937 random(8);
  std::uniform_real_distribution<float> exponent(-20, 20);
  for (const DType dtype : kNarrow) {
    const std::vector<float> values = values_of(dtype);
    for (int i = 0; i < 2000; ++i) {
      // f8_e8m0 has no negative values.
      const bool negative = values[0] < 0 && i % 2 == 1;
      const float a = std::exp2(exponent(random)) * (negative ? -1.0F : 1.0F);
      const float b = a * (1 + std::exp2(exponent(random)));
      const auto steps = static_cast<uint64_t>(std::abs(place_of(values, a) - place_of(values, b)));
      EXPECT_EQ(ulp_between(dtype, &a, &b, 1), steps) << name_of(dtype) << " " << a << " " << b;
    }
  }
}

TEST(UlpBetween, RoundsHalvesUpAndTheirNeighboursApart) {
  for (const DType dtype : kNarrow) {
    const std::vector<float> values = values_of(dtype);
    for (std::size_t i = 0; i + 1 < values.size(); ++i) {
      const auto half = static_cast<float>((double{values[i]} + values[i + 1]) / 2);
      const float below = std::nextafter(half, -INFINITY);
      EXPECT_EQ(ulp_between(dtype, &half, &values[i], 1), 1) << name_of(dtype) << " " << half;
      EXPECT_EQ(ulp_between(dtype, &below, &values[i], 1), 0) << name_of(dtype) << " " << below;
    }
  }
}

}  // namespace
}  // namespace tensordiff
