// The second half of host.cuh, behind sums.cuh.

static uint64_t host_warp, host_warps;
static uint32_t host_lane;
static Sums* host_out;

static void put_together(const Sums& sums, Sums*) { *host_out++ = sums; }
static u64 warp_of_grid() { return host_warp; }
static u64 warps_of_grid() { return host_warps; }
static u32 lane_of_warp() { return host_lane; }
static bool any_of_warp(bool mine) { return mine; }
static double most_of_warp(double mine) { return mine; }
static uint4 fetch(const uint4* at) { return *at; }

struct Ahead {
  const uint4 *a, *b;
  u64 step;
};
static Ahead begin(const uint4* a, const uint4* b, u64 step, u32) { return {a, b, step}; }
static void next(const Ahead& ahead, u32 number, u32, uint4& va, uint4& vb) {
  va = ahead.a[number * ahead.step];
  vb = ahead.b[number * ahead.step];
}

// A float of `mantissa` bits, in which the least exponent is `least`; nearest even.
static double rounded(double value, int mantissa, int least, double largest) {
  if (value == 0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), least);
  const double result =
      std::ldexp(std::nearbyint(std::ldexp(value, mantissa - exponent)), exponent - mantissa);
  if (std::fabs(result) > largest) return std::copysign(INFINITY, value);
  return std::copysign(result, value);
}

static float of_half(u32 bits) {
  const int field = bits >> 10 & 31, rest = bits & 1023;
  double size = field == 0 ? std::ldexp(rest, -24) : std::ldexp(rest + 1024, field - 25);
  if (field == 31) size = rest ? NAN : INFINITY;
  return bits >> 15 & 1 ? -size : size;
}
static u32 half_of(float value) {
  const double size = std::fabs(rounded(value, 10, -14, 65504));
  u32 bits = 0x7c00;
  if (std::isnan(size)) bits = 0x7e00;
  if (size <= 65504) {
    const int exponent = size == 0 ? -14 : std::max(std::ilogb(size), -14);
    bits = static_cast<u32>(std::ldexp(size, 10 - exponent)) + ((exponent + 14) << 10);
  }
  return bits | static_cast<u32>(std::signbit(value)) << 15;
}

// As rough as the device's, so that what comes after has to make up for it.
static float reciprocal(float value) { return (1 / value) * (1 + 0x1p-23f); }
static double rough_reciprocal(double value) {
  return same_bits<double>(same_bits<u64>(1 / value) & ~0xffffffffull);
}
static float one_if_equal(float a, float b) { return a == b; }
static u32 sign_of(double value) { return same_bits<u64>(value) >> 63; }

static double low_double(u32 word) { return __uint_as_float(word << 16); }
static double high_double(u32 word) { return __uint_as_float(word & 0xffff0000u); }
static u32 bf16_of(double value) {
  return __float_as_uint(static_cast<float>(rounded(value, 7, -126, 3.3895313892515355e38))) >> 16;
}
template <class Work>
static u32 halves(Work work, u32 a, u32 b, u32 c = 0) {
  return bf16_of(work(low_double(a), low_double(b), low_double(c))) |
         bf16_of(work(high_double(a), high_double(b), high_double(c))) << 16;
}
static u32 least_bf16(u32 a, u32 b) {
  return halves([](double x, double y, double) { return std::fmin(x, y); }, a, b);
}
static u32 most_bf16(u32 a, u32 b) {
  return halves([](double x, double y, double) { return std::fmax(x, y); }, a, b);
}
static u32 minus_bf16(u32 a, u32 b) {
  return halves([](double x, double y, double) { return x - y; }, a, b);
}
static u32 plus_bf16(u32 a, u32 b) {
  return halves([](double x, double y, double) { return x + y; }, a, b);
}
static u32 fma_bf16(u32 a, u32 b, u32 c) {
  return halves([](double x, double y, double z) { return fma(x, y, z); }, a, b, c);
}
static u32 least_u16(u32 a, u32 b) {
  return std::min(a & 0xffff, b & 0xffff) | std::min(a >> 16, b >> 16) << 16;
}
static u32 most_u16(u32 a, u32 b) {
  return std::max(a & 0xffff, b & 0xffff) | std::max(a >> 16, b >> 16) << 16;
}
static u32 spread_signs(u32 word) {
  return (word >> 31 ? 0xffff0000u : 0) | (word >> 15 & 1 ? 0xffffu : 0);
}
