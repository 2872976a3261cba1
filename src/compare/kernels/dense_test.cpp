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

TEST(DenseKernels, MultipliesAsThePlainTwinDoes) {
  on_every_target([](const char* target) {
    for (const std::size_t rows : {1, 4, 6})
      for (const std::size_t columns : {1, 8, 16, 37}) {
        constexpr std::size_t kDepth = 19, kStep = 40;
        const std::vector<double> x = wave(rows * kStep, 0), y = wave(kDepth * kStep, 1);
        const kernels::Factors factors{x.data(), kStep, y.data(), kStep, rows, kDepth, columns};
        std::vector<double> to = wave(rows * kStep, 2), other = to;
        kernels::multiply(factors, to.data(), kStep);
        kernels::reference::multiply(factors, other.data(), kStep);
        // What stands beside the product is left as it was.
        for (std::size_t i = 0; i < to.size(); ++i)
          EXPECT_NEAR(to[i], other[i], 1e-13) << target << ", " << rows << " x " << columns;
      }
  });
}

TEST(DenseKernels, TurnsAsThePlainTwinDoes) {
  on_every_target([](const char* target) {
    for (const std::size_t n : {1, 2, 7, 16, 33}) {
      constexpr std::size_t kStep = 35;
      const std::vector<double> v = wave(n, 0), w = wave(n, 1), next = wave(n, 2);
      std::vector<double> matrix = wave(n * kStep, 3), other = matrix;
      std::vector<double> product(n), expected(n);
      const kernels::Turn by{v.data(), w.data(), next.data()};
      const std::size_t first = n / 3;
      kernels::turn(by, {matrix.data(), n, kStep, first}, product.data());
      kernels::reference::turn(by, {other.data(), n, kStep, first}, expected.data());
      for (std::size_t i = 0; i < matrix.size(); ++i)
        EXPECT_NEAR(matrix[i], other[i], 1e-14) << target << ", " << n;
      for (std::size_t j = 0; j < n; ++j)
        EXPECT_NEAR(product[j], expected[j], 1e-13) << target << ", " << n;
    }
  });
}

}  // namespace
}  // namespace tensordiff
