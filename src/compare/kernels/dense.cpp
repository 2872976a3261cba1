#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels/dense.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include "compare/kernels/dense.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Doubles = hn::ScalableTag<double>;

// Σ of what `add` makes of the two at a place. Four sums at once: the processor does not have to
// wait for the one before.
template <class Add>
HWY_INLINE double sum_rows(const double* x, const double* y, std::size_t count, const Add& add) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  auto s0 = hn::Zero(d), s1 = hn::Zero(d), s2 = hn::Zero(d), s3 = hn::Zero(d);
  const auto at = [&](std::size_t i, hn::Vec<Doubles> sum)
                      HWY_ATTR { return add(hn::LoadU(d, x + i), hn::LoadU(d, y + i), sum); };
  std::size_t i = 0;
  for (; i + 4 * lanes <= count; i += 4 * lanes) {
    s0 = at(i, s0);
    s1 = at(i + lanes, s1);
    s2 = at(i + 2 * lanes, s2);
    s3 = at(i + 3 * lanes, s3);
  }
  for (; i + lanes <= count; i += lanes) s0 = at(i, s0);
  const auto all = hn::Add(hn::Add(s0, s1), hn::Add(s2, s3));
  double rest = 0;
  for (; i < count; ++i)
    rest = hn::GetLane(add(hn::Set(d, x[i]), hn::Set(d, y[i]), hn::Set(d, rest)));
  return hn::GetLane(hn::SumOfLanes(d, all)) + rest;
}

double dot_rows(const double* x, const double* y, std::size_t count) {
  return sum_rows(x, y, count,
                  [](auto a, auto b, auto sum) HWY_ATTR { return hn::MulAdd(a, b, sum); });
}

double squares_between(const double* x, const double* y, std::size_t count) {
  return sum_rows(x, y, count, [](auto a, auto b, auto sum) HWY_ATTR {
    const auto apart = hn::Sub(a, b);
    return hn::MulAdd(apart, apart, sum);
  });
}

void add_rows(double factor, const double* row, std::size_t count, double* to) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  const auto times = hn::Set(d, factor);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes)
    hn::StoreU(hn::MulAdd(times, hn::LoadU(d, row + i), hn::LoadU(d, to + i)), d, to + i);
  for (; i < count; ++i) to[i] += factor * row[i];
}

void subtract_rows(const TwoRows& rows, std::size_t count, double* from) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  const auto of_v = hn::Set(d, rows.of_v);
  const auto of_w = hn::Set(d, rows.of_w);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto both =
        hn::MulAdd(of_v, hn::LoadU(d, rows.v + i), hn::Mul(of_w, hn::LoadU(d, rows.w + i)));
    hn::StoreU(hn::Sub(hn::LoadU(d, from + i), both), d, from + i);
  }
  for (; i < count; ++i) from[i] -= rows.of_v * rows.v[i] + rows.of_w * rows.w[i];
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensordiff::kernels {

HWY_EXPORT(dot_rows);
HWY_EXPORT(squares_between);
HWY_EXPORT(add_rows);
HWY_EXPORT(subtract_rows);

double dot(const double* x, const double* y, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(dot_rows)(x, y, count);
}
double squares_apart(const double* x, const double* y, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(squares_between)(x, y, count);
}
void add_times(double factor, const double* row, std::size_t count, double* to) {
  HWY_DYNAMIC_DISPATCH(add_rows)(factor, row, count, to);
}
void subtract(const TwoRows& rows, std::size_t count, double* from) {
  HWY_DYNAMIC_DISPATCH(subtract_rows)(rows, count, from);
}

double reference::dot(const double* x, const double* y, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += x[i] * y[i];
  return sum;
}
double reference::squares_apart(const double* x, const double* y, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += (x[i] - y[i]) * (x[i] - y[i]);
  return sum;
}
void reference::add_times(double factor, const double* row, std::size_t count, double* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] += factor * row[i];
}
void reference::subtract(const TwoRows& rows, std::size_t count, double* from) {
  for (std::size_t i = 0; i < count; ++i) from[i] -= rows.of_v * rows.v[i] + rows.of_w * rows.w[i];
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
