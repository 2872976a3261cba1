#include "compare/kernels/pool.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "compare/kernels/test_targets.h"

namespace tensordiff {
namespace {

template <class T>
void expect_pooling_by_size(const char* target) {
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  constexpr T kNan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> order = {T(-0.0),    0,         std::numeric_limits<T>::denorm_min(),
                                -1,         1,         T(-1.5),
                                -kInfinity, kInfinity, kNan};
  for (std::size_t i = 1; i < order.size(); ++i) {
    std::vector<kernels::Key<T>> keys(19);
    kernels::raise(std::vector<T>(19, order[i]).data(), 19, keys.data());
    kernels::raise(std::vector<T>(19, order[i - 1]).data(), 19, keys.data());
    for (const auto key : keys) EXPECT_EQ(key, kernels::key_of(order[i])) << target << " " << i;
    EXPECT_EQ(kernels::key_of(kernels::value_of<T>(keys[0])), keys[0]);
  }
  std::vector<T> a(19, 1), b(19, T(-2.5)), out(19);
  a[3] = b[18] = kInfinity;
  kernels::distances(a.data(), b.data(), 19, out.data());
  for (std::size_t i = 0; i < 19; ++i) {
    const bool has_infinity = i == 3 || i == 18;
    EXPECT_EQ(std::isnan(out[i]), has_infinity) << target;
    if (!has_infinity) {
      EXPECT_EQ(out[i], T(3.5)) << target;
    }
  }
}

TEST(Pooling, KeysOrderBySizeOnEveryTarget) {
  on_every_target([](const char* target) {
    expect_pooling_by_size<float>(target);
    expect_pooling_by_size<double>(target);
  });
}

}  // namespace
}  // namespace tensordiff
