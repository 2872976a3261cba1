#include "compare/kernels/dense.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "compare/kernels/test_targets.h"

namespace tensordiff {
namespace {

std::vector<double> wave(std::size_t count, double phase) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = std::sin(0.7 * static_cast<double>(i) + phase);
  return values;
}

constexpr std::size_t kCounts[] = {0, 1, 3, 4, 7, 16, 31, 64, 97, 320};

TEST(DenseKernels, DotIsThatOfThePlainTwin) {
  on_every_target([](const char* target) {
    for (const std::size_t count : kCounts) {
      const std::vector<double> x = wave(count, 0), y = wave(count, 1);
      EXPECT_NEAR(kernels::dot(x.data(), y.data(), count),
                  kernels::reference::dot(x.data(), y.data(), count), 1e-12)
          << target << ", " << count;
    }
  });
}

TEST(DenseKernels, SquaresApartAreThoseOfThePlainTwin) {
  on_every_target([](const char* target) {
    for (const std::size_t count : kCounts) {
      const std::vector<double> x = wave(count, 0), y = wave(count, 1);
      EXPECT_NEAR(kernels::squares_apart(x.data(), y.data(), count),
                  kernels::reference::squares_apart(x.data(), y.data(), count), 1e-12)
          << target << ", " << count;
    }
  });
}

TEST(DenseKernels, AddsAsThePlainTwinDoes) {
  on_every_target([](const char* target) {
    for (const std::size_t count : kCounts) {
      const std::vector<double> row = wave(count, 0);
      std::vector<double> to = wave(count, 2), other = to;
      kernels::add_times(0.3, row.data(), count, to.data());
      kernels::reference::add_times(0.3, row.data(), count, other.data());
      for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(to[i], other[i], 1e-14) << target;
    }
  });
}

TEST(DenseKernels, SubtractsAsThePlainTwinDoes) {
  on_every_target([](const char* target) {
    for (const std::size_t count : kCounts) {
      const std::vector<double> v = wave(count, 0), w = wave(count, 1);
      std::vector<double> row = wave(count, 2), other = row;
      kernels::subtract({v.data(), w.data(), 0.25, -3}, count, row.data());
      kernels::reference::subtract({v.data(), w.data(), 0.25, -3}, count, other.data());
      for (std::size_t i = 0; i < count; ++i) EXPECT_NEAR(row[i], other[i], 1e-14) << target;
    }
  });
}

}  // namespace
}  // namespace tensordiff
