// In place of device.cuh: the CUDA kernels on the host, one thread after the other, each a warp of
// its own. So tests can hold their arithmetic against numpy where there is no GPU.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

using std::fma;
using std::isnan;
using std::max;
using std::min;

#define __device__
#define __global__
#define __noinline__
#define __launch_bounds__(...)

struct uint4 {
  uint32_t x, y, z, w;
};

template <class To, class From>
static To same_bits(From value) {
  static_assert(sizeof(To) == sizeof(From), "sizes");
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

static double __longlong_as_double(long long bits) { return same_bits<double>(bits); }
static long long __double_as_longlong(double value) { return same_bits<long long>(value); }
static float __uint_as_float(uint32_t bits) { return same_bits<float>(bits); }
static uint32_t __float_as_uint(float value) { return same_bits<uint32_t>(value); }
static int __float_as_int(float value) { return same_bits<int>(value); }
static double __dmul_rn(double a, double b) { return a * b; }
static double __dadd_rn(double a, double b) { return a + b; }
static double __ddiv_ru(double a, double b) {
  const double nearest = a / b;
  return fma(nearest, b, -a) < 0 ? std::nextafter(nearest, INFINITY) : nearest;
}
