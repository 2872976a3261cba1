// Two tensors of any types that a double holds, or of one 64-bit integer type, or complex; NaN and
// infinities too. The plain twin is src/compare/kernels/reference.cpp; this says the same.
//
// A and B are the types: F64 F32 F16 BF16 E4M3 E5M2 E4M3FNUZ E5M2FNUZ E8M0 I64 ... U8 C64 C128.
// STEPS is the type in whose steps distances are counted; 0: in none.

enum Type {
  NO_TYPE, F64, F32, F16, BF16, E4M3, E5M2, E4M3FNUZ, E5M2FNUZ, E8M0,
  I64, I32, I16, I8, U64, U32, U16, U8, C64, C128
};

__device__ inline bool is_finite(double value) { return fabs(value) < INF; }

// Small floats: `exponent` bits with that bias, `mantissa` bits.
__device__ inline double small_float(u32 bits, int exponent, int mantissa, int bias) {
  const u32 field = (bits >> mantissa) & ((1u << exponent) - 1);
  const u32 rest = bits & ((1u << mantissa) - 1);
  const double size =
      field == 0 ? ldexp(double(rest), 1 - bias - mantissa)
                 : ldexp(double(rest + (1u << mantissa)), int(field) - bias - mantissa);
  return bits >> (exponent + mantissa) & 1 ? -size : size;
}

__device__ inline double not_a_number() { return __longlong_as_double(0x7ff8000000000000ll); }

// Part 0, or part 1 of a complex number, of element i.
template <int type>
__device__ inline double read(const void* data, u64 i, int part) {
  const u8* bytes = static_cast<const u8*>(data);
  const u16* words = static_cast<const u16*>(data);
  switch (type) {
    case F64: return static_cast<const double*>(data)[i];
    case F32: return static_cast<const float*>(data)[i];
    case F16: return of_half(words[i]);
    case BF16: return __uint_as_float(u32(words[i]) << 16);
    case E4M3: return (bytes[i] & 0x7f) == 0x7f ? not_a_number() : small_float(bytes[i], 4, 3, 7);
    case E5M2:
      if ((bytes[i] & 0x7f) > 0x7c) return not_a_number();
      if ((bytes[i] & 0x7f) == 0x7c) return bytes[i] & 0x80 ? -INF : INF;
      return small_float(bytes[i], 5, 2, 15);
    case E4M3FNUZ: return bytes[i] == 0x80 ? not_a_number() : small_float(bytes[i], 4, 3, 8);
    case E5M2FNUZ: return bytes[i] == 0x80 ? not_a_number() : small_float(bytes[i], 5, 2, 16);
    case E8M0: return bytes[i] == 0xff ? not_a_number() : ldexp(1.0, int(bytes[i]) - 127);
    case I64: return double(static_cast<const long long*>(data)[i]);
    case I32: return static_cast<const int*>(data)[i];
    case I16: return static_cast<const short*>(data)[i];
    case I8: return static_cast<const signed char*>(data)[i];
    case U64: return double(static_cast<const u64*>(data)[i]);
    case U32: return static_cast<const u32*>(data)[i];
    case U16: return words[i];
    case U8: return bytes[i];
    case C64: return static_cast<const float*>(data)[2 * i + part];
    case C128: return static_cast<const double*>(data)[2 * i + part];
  }
  return 0;
}

// |B - A| of 64-bit integers, which no double holds.
__device__ inline double apart_exactly(const void* a, const void* b, u64 i) {
  if (A == I64) {
    const long long x = static_cast<const long long*>(a)[i];
    const long long y = static_cast<const long long*>(b)[i];
    return double(x < y ? u64(y) - u64(x) : u64(x) - u64(y));
  }
  const u64 x = static_cast<const u64*>(a)[i], y = static_cast<const u64*>(b)[i];
  return double(x < y ? y - x : x - y);
}

// Steps from zero of a value in the type STEPS, to which it is rounded first.
__device__ inline long long steps_of(double value) {
  if (STEPS == F64) {
    const long long bits = __double_as_longlong(value);
    return bits < 0 ? -(bits & 0x7fffffffffffffffll) : bits;
  }
  const float narrow = float(value);
  const u32 word = __float_as_uint(narrow);
  u32 size = word & 0x7fffffffu;
  if (STEPS == BF16) size = (size + 0x7fffu + (size >> 16 & 1)) >> 16;
  if (STEPS == F16) size = half_of(narrow) & 0x7fff;
  return word >> 31 ? -static_cast<long long>(size) : size;
}

// Those of a byte as it is stored.
__device__ inline long long steps_of_byte(const void* data, u64 i) {
  const u8 bits = static_cast<const u8*>(data)[i];
  if (STEPS == E8M0) return bits;  // It has no sign.
  return bits & 0x80 ? -static_cast<long long>(bits & 0x7f) : bits;
}

__device__ inline void add_value(Moments& to, double value, double pivot) {
  if (isnan(value)) {
    ++to.nan;
  } else if (!is_finite(value)) {
    ++to.inf;
  } else {
    to.count += 1;
    const double apart = value - pivot, delta = apart - to.mean;
    to.mean += delta / to.count;
    to.m2 += delta * (apart - to.mean);
    to.min = fmin(to.min, value);
    to.max = fmax(to.max, value);
    to.zeros += value == 0;
  }
}

__device__ inline void add_pair(Sums& s, double a, double b) {
  s.values += 1;
  a -= s.pivot_a;
  b -= s.pivot_b;
  const double delta_a = a - s.mean_a, delta_b = b - s.mean_b;
  s.mean_a += delta_a / s.values;
  s.mean_b += delta_b / s.values;
  s.m2_a += delta_a * (a - s.mean_a);
  s.m2_b += delta_b * (b - s.mean_b);
  s.co += delta_a * (b - s.mean_b);
}

__device__ inline void add_distance(Sums& s, double size, double size_a, double size_b, u64 at,
                                    double atol, double rtol) {
  s.count += 1;
  s.d_abs += size;
  s.d_squared += size * size;
  s.d_relative += size / (size_a + 1e-8);
  s.equal += size == 0;
  s.exceeding += size > __dadd_rn(atol, __dmul_rn(rtol, size_a));
  if (size > s.max_abs) s.max_abs = size, s.max_abs_at = at;
  if (size == 0) return;
  s.max_rel = fmax(s.max_rel, size / fmax(size_a, size_b));
  if (size > atol) s.rtol_needed = fmax(s.rtol_needed, (size - atol) / size_a);
}

__device__ inline bool alike(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

__device__ inline void add_element(Sums& s, const void* a, const void* b, u64 i, u64 at,
                                   double atol, double rtol) {
  constexpr int parts = A == C64 || A == C128 || B == C64 || B == C128 ? 2 : 1;
  constexpr bool complex_a = A == C64 || A == C128, complex_b = B == C64 || B == C128;
  double x[2], y[2];
  bool finite = true, same = true;
  for (int part = 0; part < parts; ++part) {
    x[part] = part && !complex_a ? 0 : read<A>(a, i, part);
    y[part] = part && !complex_b ? 0 : read<B>(b, i, part);
    add_value(s.a, x[part], s.pivot_a);
    add_value(s.b, y[part], s.pivot_b);
    finite = finite && is_finite(x[part]) && is_finite(y[part]);
    same = same && alike(x[part], y[part]);
  }
  if (!finite) {
    ++(same ? s.agreeing : s.mismatch);
    u64& first = same ? s.agreeing_at : s.mismatch_at;
    first = least(first, at);
    return;
  }
  for (int part = 0; part < parts; ++part) add_pair(s, x[part], y[part]);
  if (parts == 2) {
    add_distance(s, hypot(y[0] - x[0], y[1] - x[1]), hypot(x[0], x[1]), hypot(y[0], y[1]), at, atol,
                 rtol);
    return;
  }
  const double size = A == I64 || A == U64 ? apart_exactly(a, b, i) : fabs(y[0] - x[0]);
  add_distance(s, size, fabs(x[0]), fabs(y[0]), at, atol, rtol);
  if (STEPS == NO_TYPE) return;
  const bool bytes = STEPS >= E4M3 && STEPS <= E8M0;
  const long long steps_a = bytes ? steps_of_byte(a, i) : steps_of(x[0]);
  const long long steps_b = bytes ? steps_of_byte(b, i) : steps_of(y[0]);
  const bool less = steps_a < steps_b;
  s.ulp = most(s.ulp, less ? u64(steps_b) - u64(steps_a) : u64(steps_a) - u64(steps_b));
}

// Element i of both, if it counts for sums over pairs.
__device__ inline bool pivots_at(const void* a, const void* b, u64 i, Sums& sums) {
  constexpr bool complex_a = A == C64 || A == C128, complex_b = B == C64 || B == C128;
  const double x = read<A>(a, i, 0), y = read<B>(b, i, 0);
  const double rest = (complex_a ? read<A>(a, i, 1) : 0) + (complex_b ? read<B>(b, i, 1) : 0);
  if (!is_finite(x) || !is_finite(y) || !is_finite(rest)) return false;
  sums.pivot_a = x;
  sums.pivot_b = y;
  return true;
}

// Of places all over the tensor the first with finite values: where a tensor begins with NaN or
// with a value that its partner cannot hold, means from there would lose all digits.
#define PROBES 64
__device__ inline void set_pivots(const void* a, const void* b, u64 count, Sums& sums) {
#pragma unroll 1
  for (u64 i = 0; i < PROBES && i < count; ++i)
    if (pivots_at(a, b, count <= PROBES ? i : count / PROBES * i, sums)) return;
}

// Elements from `first` on; positions count from the start of the tensor.
extern "C" __global__ void __launch_bounds__(THREADS)
    measure_any(const void* a, const void* b, u64 first, u64 count, double atol, double rtol,
                Sums* out) {
  Sums sums = no_sums();
  set_pivots(a, b, count, sums);
  const u64 stride = warps_of_grid() * 32;
  for (u64 i = first + warp_of_grid() * 32 + lane_of_warp(); i < count; i += stride)
    add_element(sums, a, b, i, i, atol, rtol);
  put_together(sums, out);
}
