// The plain kernels: loops that say what is meant. The vector kernels are tested against these, and
// tiles with NaN or infinities run through them.

#include <algorithm>
#include <bit>
#include <cmath>

#include "compare/kernels/tile.h"

namespace tensordiff::kernels::reference {
namespace {

void add_value(double value, double pivot, Moments& moments) {
  if (std::isnan(value)) {
    ++moments.nan;
  } else if (std::isinf(value)) {
    ++moments.inf;
  } else {
    ++moments.count;
    moments.mean += value - pivot;  // Sums about the pivot until finish() makes moments of them.
    moments.m2 += (value - pivot) * (value - pivot);
    moments.min = std::min(moments.min, value);
    moments.max = std::max(moments.max, value);
    moments.zeros += value == 0;
  }
}

void finish(double pivot, Moments& moments) {
  if (moments.count == 0) return;
  const double n = static_cast<double>(moments.count);
  moments.m2 = std::max(0.0, moments.m2 - moments.mean * moments.mean / n);
  moments.mean = pivot + moments.mean / n;
}

template <class T>
double pivot_of(const T* values, std::size_t count) {
  const T* end = values + count;
  const T* finite = std::find_if(values, end, [](T value) { return std::isfinite(value); });
  return finite == end ? 0 : static_cast<double>(*finite);
}

// The distance of one pair enters the sums; `size_a` and `size_b` are the absolute values.
void add_distance(double distance, double size_a, double size_b, uint64_t at,
                  const Threshold& limit, Sums& sums) {
  ++sums.count;
  sums.d_abs += distance;
  sums.d_squared += distance * distance;
  sums.d_relative += distance / (size_a + 1e-8);
  sums.equal += distance == 0;
  sums.exceeding += distance > limit.atol + limit.rtol * size_a;
  if (distance > sums.max_abs) {
    sums.max_abs = distance;
    sums.max_abs_at = at;
  }
  if (distance == 0) return;
  sums.max_rel = std::max(sums.max_rel, distance / std::max(size_a, size_b));
  if (distance > limit.atol)
    sums.rtol_needed = std::max(sums.rtol_needed, (distance - limit.atol) / size_a);
}

// Σxy, Σx, Σy about pivots become means and centred sums.
struct Centring {
  double x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void add(double at_x, double at_y) {
    x += at_x;
    y += at_y;
    xx += at_x * at_x;
    yy += at_y * at_y;
    xy += at_x * at_y;
  }
  void finish(uint64_t count, double pivot_a, double pivot_b, Sums& sums) const {
    if (count == 0) return;
    sums.values = count;
    const double values = static_cast<double>(count);
    sums.mean_a = pivot_a + x / values;
    sums.mean_b = pivot_b + y / values;
    sums.m2_a = std::max(0.0, xx - x * x / values);
    sums.m2_b = std::max(0.0, yy - y * y / values);
    sums.co = xy - x * y / values;
  }
};

void add_nonfinite(bool agree, uint64_t at, Sums& sums) {
  ++(agree ? sums.agreeing : sums.mismatch);
  uint64_t& first = agree ? sums.agreeing_at : sums.mismatch_at;
  first = std::min(first, at);
}

template <class T>
Sums diff_real(const T* a, const T* b, const Tile& tile) {
  Sums sums;
  const double pivot_a = pivot_of(a, tile.count);
  const double pivot_b = pivot_of(b, tile.count);
  Centring centring;
  for (std::size_t i = 0; i < tile.count; ++i) {
    add_value(static_cast<double>(a[i]), pivot_a, sums.a);
    add_value(static_cast<double>(b[i]), pivot_b, sums.b);
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) {
      const bool agree = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
      add_nonfinite(agree, tile.first + i, sums);
      continue;
    }
    add_distance(static_cast<double>(std::abs(b[i] - a[i])), static_cast<double>(std::abs(a[i])),
                 static_cast<double>(std::abs(b[i])), tile.first + i, tile.limit, sums);
    centring.add(static_cast<double>(a[i]) - pivot_a, static_cast<double>(b[i]) - pivot_b);
  }
  finish(pivot_a, sums.a);
  finish(pivot_b, sums.b);
  centring.finish(sums.count, pivot_a, pivot_b, sums);
  return sums;
}

template <class Bits, class Stored>
uint64_t ulp_of(const Stored* a, const Stored* b, std::size_t count) {
  constexpr auto kSign = static_cast<Bits>(Bits{1} << (sizeof(Bits) * 8 - 1));
  // Steps from the lowest number, counted so that neighbours differ by one across zero too.
  const auto steps = [](Stored value) {
    const Bits bits = std::bit_cast<Bits>(value);
    const auto size = static_cast<Bits>(bits & ~kSign);
    return static_cast<Bits>(bits & kSign ? kSign - size : kSign + size);
  };
  uint64_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const Bits at_a = steps(a[i]);
    const Bits at_b = steps(b[i]);
    most = std::max<uint64_t>(most, at_a > at_b ? at_a - at_b : at_b - at_a);
  }
  return most;
}

}  // namespace

Sums diff(const double* a, const double* b, const Tile& tile) { return diff_real(a, b, tile); }

Sums diff(const long double* a, const long double* b, const Tile& tile) {
  return diff_real(a, b, tile);
}

Sums diff_complex(const double* a, const double* b, const Tile& tile) {
  Sums sums;
  const double pivot_a = pivot_of(a, 2 * tile.count);
  const double pivot_b = pivot_of(b, 2 * tile.count);
  Centring centring;
  for (std::size_t i = 0; i < tile.count; ++i, a += 2, b += 2) {
    for (int part = 0; part < 2; ++part) {
      add_value(a[part], pivot_a, sums.a);
      add_value(b[part], pivot_b, sums.b);
    }
    bool finite = true;
    bool agree = true;
    for (int part = 0; part < 2; ++part) {
      finite = finite && std::isfinite(a[part]) && std::isfinite(b[part]);
      agree = agree && (a[part] == b[part] || (std::isnan(a[part]) && std::isnan(b[part])));
    }
    if (!finite) {
      add_nonfinite(agree, tile.first + i, sums);
      continue;
    }
    add_distance(std::hypot(b[0] - a[0], b[1] - a[1]), std::hypot(a[0], a[1]),
                 std::hypot(b[0], b[1]), tile.first + i, tile.limit, sums);
    for (int part = 0; part < 2; ++part) centring.add(a[part] - pivot_a, b[part] - pivot_b);
  }
  finish(pivot_a, sums.a);
  finish(pivot_b, sums.b);
  centring.finish(2 * sums.count, pivot_a, pivot_b, sums);
  return sums;
}

Moments moments(const double* values, std::size_t count) {
  Moments moments;
  const double pivot = pivot_of(values, count);
  for (std::size_t i = 0; i < count; ++i) add_value(values[i], pivot, moments);
  finish(pivot, moments);
  return moments;
}

uint64_t ulp(const float* a, const float* b, std::size_t count) {
  return ulp_of<uint32_t>(a, b, count);
}
uint64_t ulp(const double* a, const double* b, std::size_t count) {
  return ulp_of<uint64_t>(a, b, count);
}
uint64_t ulp16(const uint16_t* a, const uint16_t* b, std::size_t count) {
  return ulp_of<uint16_t>(a, b, count);
}
uint64_t ulp8(const uint8_t* a, const uint8_t* b, std::size_t count) {
  return ulp_of<uint8_t>(a, b, count);
}

}  // namespace tensordiff::kernels::reference
