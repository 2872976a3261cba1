#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels/products.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <cmath>

#include "compare/kernels/products.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::ScalableTag<double>;
using Narrow = hn::Rebind<float, Wide>;

HWY_INLINE hn::Vec<Wide> widened(const float* at) {
  return hn::PromoteTo(Wide(), hn::LoadU(Narrow(), at));
}
HWY_INLINE hn::Vec<Wide> widened(const double* at) { return hn::LoadU(Wide(), at); }

struct ProductSums {
  HWY_INLINE ProductSums() {}  // An implicit one would not be compiled for this instruction set.

  template <class T>
  HWY_INLINE void add(const T* at_a, const T* at_b) {
    const auto a = widened(at_a);
    const auto b = widened(at_b);
    const auto d = hn::Sub(b, a);
    aa = hn::MulAdd(a, a, aa);
    bb = hn::MulAdd(b, b, bb);
    dd = hn::MulAdd(d, d, dd);
    ab = hn::MulAdd(a, b, ab);
  }

  hn::Vec<Wide> aa = hn::Zero(Wide()), bb = hn::Zero(Wide());
  hn::Vec<Wide> dd = hn::Zero(Wide()), ab = hn::Zero(Wide());
};

// Of whole vectors; the rest, and what is not finite, is for the plain twin.
template <class T>
HWY_INLINE std::size_t sum_products(const T* a, const T* b, std::size_t count, Products& out) {
  const Wide d;
  const std::size_t lanes = hn::Lanes(d);
  ProductSums even, odd;
  std::size_t i = 0;
  // A page ahead, where the processor by itself does not look. A hint: it may point anywhere.
  constexpr std::size_t kAhead = 4096 / sizeof(T);
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    __builtin_prefetch(a + i + kAhead);
    __builtin_prefetch(b + i + kAhead);
    even.add(a + i, b + i);
    odd.add(a + i + lanes, b + i + lanes);
  }
  const auto sum = [&](hn::Vec<Wide> x, hn::Vec<Wide> y)
                       HWY_ATTR { return hn::GetLane(hn::SumOfLanes(d, hn::Add(x, y))); };
  out = {sum(even.aa, odd.aa), sum(even.bb, odd.bb), sum(even.dd, odd.dd), sum(even.ab, odd.ab)};
  // What is not finite on either side makes its own sum so.
  return std::isfinite(out.aa) && std::isfinite(out.bb) ? i : 0;
}

std::size_t products_f32(const float* a, const float* b, std::size_t count, Products& out) {
  return sum_products(a, b, count, out);
}
std::size_t products_f64(const double* a, const double* b, std::size_t count, Products& out) {
  return sum_products(a, b, count, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensordiff::kernels {
namespace {

template <class T>
Products plain_products(const T* a, const T* b, std::size_t count) {
  Products sum;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = a[i], y = b[i], d = y - x;
    if (!std::isfinite(x) || !std::isfinite(y)) continue;
    sum.aa += x * x;
    sum.bb += y * y;
    sum.dd += d * d;
    sum.ab += x * y;
  }
  return sum;
}

template <class T>
Products with_rest(const T* a, const T* b, std::size_t count, std::size_t done, Products sum) {
  if (done == 0) sum = {};
  const Products rest = plain_products(a + done, b + done, count - done);
  return {sum.aa + rest.aa, sum.bb + rest.bb, sum.dd + rest.dd, sum.ab + rest.ab};
}

}  // namespace

HWY_EXPORT(products_f32);
HWY_EXPORT(products_f64);

Products products(const float* a, const float* b, std::size_t count) {
  Products sum;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(products_f32)(a, b, count, sum);
  return with_rest(a, b, count, done, sum);
}
Products products(const double* a, const double* b, std::size_t count) {
  Products sum;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(products_f64)(a, b, count, sum);
  return with_rest(a, b, count, done, sum);
}

Products reference::products(const float* a, const float* b, std::size_t count) {
  return plain_products(a, b, count);
}
Products reference::products(const double* a, const double* b, std::size_t count) {
  return plain_products(a, b, count);
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
