#include "compare/kernels/products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compare/kernels/test_targets.h"

namespace tensordiff {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 3, 8, 15, 16, 33, 64, 1024, 1031};

template <class T>
void check(const std::vector<T>& a, const std::vector<T>& b, const char* target) {
  const kernels::Products found = kernels::products(a.data(), b.data(), a.size());
  const kernels::Products plain = kernels::reference::products(a.data(), b.data(), a.size());
  const double size = 1e-13 * (1 + plain.aa + plain.bb);
  EXPECT_NEAR(found.aa, plain.aa, size) << target << ", " << a.size();
  EXPECT_NEAR(found.bb, plain.bb, size) << target << ", " << a.size();
  EXPECT_NEAR(found.dd, plain.dd, size) << target << ", " << a.size();
  EXPECT_NEAR(found.ab, plain.ab, size) << target << ", " << a.size();
}

template <class T>
std::vector<T> wave(std::size_t count, double phase) {
  std::vector<T> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<T>(std::sin(0.7 * static_cast<double>(i) + phase));
  return values;
}

TEST(Products, AreThoseOfThePlainTwin) {
  on_every_target([](const char* target) {
    for (const std::size_t count : kCounts) {
      check(wave<float>(count, 0), wave<float>(count, 1), target);
      check(wave<double>(count, 0), wave<double>(count, 1), target);
    }
  });
}

TEST(Products, LeaveOutWhatIsNotFinite) {
  on_every_target([](const char* target) {
    std::vector<float> a = wave<float>(100, 0), b = wave<float>(100, 1);
    a[3] = std::numeric_limits<float>::quiet_NaN();
    b[40] = std::numeric_limits<float>::infinity();
    a[99] = -std::numeric_limits<float>::infinity();
    check(a, b, target);
  });
}

}  // namespace
}  // namespace tensordiff
