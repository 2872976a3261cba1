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

// A block of `kRows` rows and two vectors of columns. Each sum has a register of its own, and the
// block enough of them for the processor not to wait for one.
template <std::size_t kRows>
HWY_INLINE void multiply_block(const Factors& f, std::size_t row, std::size_t column, double* to,
                               std::size_t to_step) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d);
  hn::Vec<Doubles> left[kRows], right[kRows];
  HWY_UNROLL(4)
  for (std::size_t r = 0; r < kRows; ++r) left[r] = right[r] = hn::Zero(d);
  const double* x = f.x + row * f.x_step;
  const double* y = f.y + column;
  for (std::size_t k = 0; k < f.depth; ++k, y += f.y_step) {
    const auto y0 = hn::LoadU(d, y), y1 = hn::LoadU(d, y + lanes);
    HWY_UNROLL(4)
    for (std::size_t r = 0; r < kRows; ++r) {
      const auto factor = hn::Set(d, x[r * f.x_step + k]);
      left[r] = hn::MulAdd(factor, y0, left[r]);
      right[r] = hn::MulAdd(factor, y1, right[r]);
    }
  }
  HWY_UNROLL(4)
  for (std::size_t r = 0; r < kRows; ++r) {
    hn::StoreU(left[r], d, to + (row + r) * to_step + column);
    hn::StoreU(right[r], d, to + (row + r) * to_step + column + lanes);
  }
}

void multiply_rows(const Factors& f, double* to, std::size_t to_step) {
  const std::size_t width = 2 * hn::Lanes(Doubles());
  std::size_t column = 0;
  for (; column + width <= f.columns; column += width) {
    std::size_t row = 0;
    for (; row + 4 <= f.rows; row += 4) multiply_block<4>(f, row, column, to, to_step);
    for (; row < f.rows; ++row) multiply_block<1>(f, row, column, to, to_step);
  }
  for (std::size_t row = 0; row < f.rows; ++row)
    for (std::size_t j = column; j < f.columns; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < f.depth; ++k)
        sum += f.x[row * f.x_step + k] * f.y[k * f.y_step + j];
      to[row * to_step + j] = sum;
    }
}

// Two rows at once: v, w and the product are then fetched half as often.
void turn_rows(const Turn& by, const Square& matrix, double* product) {
  const Doubles d;
  const std::size_t lanes = hn::Lanes(d), n = matrix.n;
  for (std::size_t j = 0; j < n; ++j) product[j] = 0;
  for (std::size_t i = matrix.first; i < n; i += 2) {
    const std::size_t below = i + 1 < n ? i + 1 : i;
    const double last = i + 1 < n ? by.next[below] : 0;
    double* top = matrix.values + i * matrix.step;
    double* under = matrix.values + below * matrix.step;
    const auto v0 = hn::Set(d, by.v[i]), w0 = hn::Set(d, by.w[i]), x0 = hn::Set(d, by.next[i]);
    const auto v1 = hn::Set(d, by.v[below]), w1 = hn::Set(d, by.w[below]), x1 = hn::Set(d, last);
    std::size_t j = 0;
    for (; j + lanes <= n; j += lanes) {
      const auto v = hn::LoadU(d, by.v + j), w = hn::LoadU(d, by.w + j);
      const auto old = hn::LoadU(d, under + j);
      const auto a = hn::NegMulAdd(w0, v, hn::NegMulAdd(v0, w, hn::LoadU(d, top + j)));
      const auto b = hn::NegMulAdd(w1, v, hn::NegMulAdd(v1, w, old));
      hn::StoreU(b, d, under + j);
      hn::StoreU(a, d, top + j);
      hn::StoreU(hn::MulAdd(x0, a, hn::MulAdd(x1, b, hn::LoadU(d, product + j))), d, product + j);
    }
    for (; j < n; ++j) {
      const double b = under[j] - by.v[below] * by.w[j] - by.w[below] * by.v[j];
      const double a = top[j] - by.v[i] * by.w[j] - by.w[i] * by.v[j];
      under[j] = b;
      top[j] = a;
      product[j] += by.next[i] * a + last * b;
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensordiff::kernels {

HWY_EXPORT(dot_rows);
HWY_EXPORT(squares_between);
HWY_EXPORT(add_rows);
HWY_EXPORT(multiply_rows);
HWY_EXPORT(turn_rows);

double dot(const double* x, const double* y, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(dot_rows)(x, y, count);
}
double squares_apart(const double* x, const double* y, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(squares_between)(x, y, count);
}
void add_times(double factor, const double* row, std::size_t count, double* to) {
  HWY_DYNAMIC_DISPATCH(add_rows)(factor, row, count, to);
}
void multiply(const Factors& factors, double* to, std::size_t to_step) {
  HWY_DYNAMIC_DISPATCH(multiply_rows)(factors, to, to_step);
}
void turn(const Turn& by, const Square& matrix, double* product) {
  HWY_DYNAMIC_DISPATCH(turn_rows)(by, matrix, product);
}

void reference::multiply(const Factors& f, double* to, std::size_t to_step) {
  for (std::size_t i = 0; i < f.rows; ++i)
    for (std::size_t j = 0; j < f.columns; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < f.depth; ++k)
        sum += f.x[i * f.x_step + k] * f.y[k * f.y_step + j];
      to[i * to_step + j] = sum;
    }
}
void reference::turn(const Turn& by, const Square& matrix, double* product) {
  for (std::size_t j = 0; j < matrix.n; ++j) product[j] = 0;
  for (std::size_t i = matrix.first; i < matrix.n; ++i)
    for (std::size_t j = 0; j < matrix.n; ++j) {
      double& value = matrix.values[i * matrix.step + j];
      value -= by.v[i] * by.w[j] + by.w[i] * by.v[j];
      product[j] += by.next[i] * value;
    }
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

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
