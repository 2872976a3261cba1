// Two tensors of one float type (F32, BF16 or F16), all of whose values are finite, in one pass.
//
// Each thread keeps sums in float64 about the first pair that it sees. Maxima are rare events: a
// warp holds what it sees against the largest so far, and only a record is looked at again, with
// divisions. A value that is not finite makes d_abs not finite, which the caller sees: general.cu
// then does the tensor again.

#if defined(F32)
#define PER_VECTOR 4
#else
#define PER_VECTOR 8
#endif

// Halves are held against bounds in f32, and bf16 is counted two at a time where the device can.
#if !defined(F32)
#define FILTER32
#endif
#if defined(BF16) && __CUDA_ARCH__ >= 900
#define PACKED
#endif

struct State {
  double abs, squared, relative;
  double pivot_a, pivot_b, x, y, xx, yy, xy;
  double max_abs, max_rel, rtol_needed;              // Of this thread.
  double bound_abs, bound_rel, bound_needed;  // What a value has to exceed to be looked at.
  float low_abs, low_rel, low_needed, low_atol;  // A little less, for FILTER32.
#if defined(PACKED)
  u32 least_a, most_a, least_b, most_b, same, none_a, none_b;  // Two bf16 each.
#endif
  u64 max_at;
  float equal, zeros_a, zeros_b;  // Fewer than 2^24 in each thread.
  u32 exceeding;
  float min_a, max_a, min_b, max_b;
  u32 ulp;
};

__device__ inline uint4 fetch(const uint4* at) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

__device__ inline float of_half(u32 bits) {
  float value;
  asm("{.reg .b16 h, rest; mov.b32 {h, rest}, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "r"(bits));
  return value;
}

// Element i of a vector: its value, and its steps from zero.
template <int i>
__device__ inline float value_at(const uint4& v) {
#if defined(F32)
  return __uint_as_float(i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w);
#else
  const u32 word = i / 2 == 0 ? v.x : i / 2 == 1 ? v.y : i / 2 == 2 ? v.z : v.w;
#if defined(BF16)
  return __uint_as_float(i % 2 ? word & 0xffff0000u : word << 16);
#else
  return of_half(i % 2 ? word >> 16 : word & 0xffff);
#endif
#endif
}

#if defined(F16)
template <int i>
__device__ inline int steps_at(const uint4& v, float) {
  const u32 word = i / 2 == 0 ? v.x : i / 2 == 1 ? v.y : i / 2 == 2 ? v.z : v.w;
  const int bits = static_cast<short>(i % 2 ? word >> 16 : word & 0xffff);
  return bits < 0 ? -(bits & 0x7fff) : bits;
}
#else
template <int i>
__device__ inline int steps_at(const uint4&, float value) {
  const int bits = __float_as_int(value), sign = bits >> 31;
  return (bits ^ (sign & 0x7fffffff)) - sign;
}
#endif

__device__ inline float reciprocal(float value) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}

__device__ inline float one_if_equal(float a, float b) {
  float result;
  asm("set.eq.f32.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

// Everything but the maxima. Returns whether this pair may be a record.
__device__ inline bool add(State& s, float fa, float fb, int steps_a, int steps_b, double atol,
                           double rtol) {
  const double a = fa, b = fb;
  const double d = b - a, size = fabs(d), size_a = fabs(a);
  s.abs += size;
  s.squared = fma(d, d, s.squared);
  // 1 / (|a| + 1e-8) to 46 bits: the guess has 23, and one step of Newton's doubles them.
  const double under = size_a + 1e-8;
  const double guess = reciprocal(fabsf(fa) + 1e-8f);
  s.relative = fma(size, fma(guess, fma(-under, guess, 1.0), guess), s.relative);
  const double x = a - s.pivot_a, y = b - s.pivot_b;
  s.x += x;
  s.y += y;
  s.xx = fma(x, x, s.xx);
  s.yy = fma(y, y, s.yy);
  s.xy = fma(x, y, s.xy);
  s.exceeding += size > fma(rtol, size_a, atol);
#if !defined(PACKED)
  s.equal += one_if_equal(fa, fb);
  s.zeros_a += one_if_equal(fa, 0);
  s.zeros_b += one_if_equal(fb, 0);
  s.min_a = fminf(s.min_a, fa);
  s.max_a = fmaxf(s.max_a, fa);
  s.min_b = fminf(s.min_b, fb);
  s.max_b = fmaxf(s.max_b, fb);
#endif
  const u32 apart =
      static_cast<u32>(max(steps_a, steps_b)) - static_cast<u32>(min(steps_a, steps_b));
  s.ulp = max(s.ulp, apart);
#if defined(FILTER32)
  const float apart32 = fabsf(fb - fa);
  return (apart32 > s.low_abs) | (apart32 > s.low_rel * fmaxf(fabsf(fa), fabsf(fb))) |
         (apart32 > fmaf(s.low_needed, fabsf(fa), s.low_atol));
#else
  const double larger = fmaxf(fabsf(fa), fabsf(fb));
  return (size > s.bound_abs) | (fma(-s.bound_rel, larger, size) > 0) |
         (size > fma(s.bound_needed, size_a, atol));
#endif
}

// A pair that may be a record, exactly. Returns whether it is one.
__device__ inline bool look(State& s, float fa, float fb, u64 at, double atol) {
  const double a = fa, b = fb, size = fabs(b - a), size_a = fabs(a);
  bool record = size > s.max_abs;
  if (record) s.max_abs = size, s.max_at = at;
  if (size == 0) return record;
  const double larger = fmax(size_a, fabs(b));
  // Bounds are rounded up, so that the same quotient is no record again.
  if (fma(-s.bound_rel, larger, size) > 0) {
    s.max_rel = fmax(s.max_rel, size / larger);
    s.bound_rel = fmax(s.bound_rel, __ddiv_ru(size, larger));
    record = true;
  }
  if (size > atol && size > fma(s.bound_needed, size_a, atol)) {
    s.rtol_needed = fmax(s.rtol_needed, (size - atol) / size_a);
    s.bound_needed = fmax(s.bound_needed, __ddiv_ru(size - atol, size_a));
    record = true;
  }
  return record;
}

__device__ inline double of_warp(double mine) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    mine = fmax(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
  return mine;
}

// All lanes of a warp share their bounds. Another lane's largest difference counts as a little
// less, since the same at an earlier place is still wanted.
__device__ inline void share(State& s) {
  const double all = of_warp(s.max_abs);
  s.bound_abs = s.max_abs == all || all <= 0
                    ? s.max_abs
                    : __longlong_as_double(__double_as_longlong(all) - 1);
  s.bound_rel = of_warp(s.bound_rel);
  s.bound_needed = of_warp(s.bound_needed);
#if defined(FILTER32)
  // f32 is off by less than a part in 2^22 here.
  const double less = 1 - 0x1p-20;
  s.low_abs = static_cast<float>(s.bound_abs * less);
  s.low_rel = static_cast<float>(s.bound_rel * less);
  s.low_needed = static_cast<float>(fmin(s.bound_needed, 1e30) * less);
#endif
}

#if defined(PACKED)
__device__ inline u32 least_of(u32 a, u32 b) {
  u32 result;
  asm("min.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
__device__ inline u32 most_of(u32 a, u32 b) {
  u32 result;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
// Adds 1 where the two are equal.
__device__ inline u32 count_equal(u32 count, u32 a, u32 b) {
  u32 one, result;
  asm("set.eq.bf16x2.bf16x2 %0, %1, %2;" : "=r"(one) : "r"(a), "r"(b));
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(count), "r"(one));
  return result;
}
__device__ inline float low_half(u32 pair) { return __uint_as_float(pair << 16); }
__device__ inline float high_half(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }

__device__ inline void add_words(State& s, u32 a, u32 b) {
  s.least_a = least_of(s.least_a, a);
  s.most_a = most_of(s.most_a, a);
  s.least_b = least_of(s.least_b, b);
  s.most_b = most_of(s.most_b, b);
  s.same = count_equal(s.same, a, b);
  s.none_a = count_equal(s.none_a, a, 0);
  s.none_b = count_equal(s.none_b, b, 0);
}

// bf16 counts to 256: four words a vector, so not later than after 64 vectors.
__device__ inline void flush(State& s) {
  s.equal += low_half(s.same) + high_half(s.same);
  s.zeros_a += low_half(s.none_a) + high_half(s.none_a);
  s.zeros_b += low_half(s.none_b) + high_half(s.none_b);
  s.same = s.none_a = s.none_b = 0;
}

__device__ inline void finish(State& s) {
  flush(s);
  s.min_a = fminf(low_half(s.least_a), high_half(s.least_a));
  s.max_a = fmaxf(low_half(s.most_a), high_half(s.most_a));
  s.min_b = fminf(low_half(s.least_b), high_half(s.least_b));
  s.max_b = fmaxf(low_half(s.most_b), high_half(s.most_b));
}
#endif

template <int i>
struct Each {
  static __device__ inline bool add_to(State& s, const uint4& va, const uint4& vb, double atol,
                                       double rtol) {
    const bool before = Each<i - 1>::add_to(s, va, vb, atol, rtol);
    const float a = value_at<i>(va), b = value_at<i>(vb);
    return add(s, a, b, steps_at<i>(va, a), steps_at<i>(vb, b), atol, rtol) | before;
  }
  static __device__ inline bool look_at(State& s, const uint4& va, const uint4& vb, u64 at,
                                        double atol) {
    const bool before = Each<i - 1>::look_at(s, va, vb, at, atol);
    return look(s, value_at<i>(va), value_at<i>(vb), at + i, atol) | before;
  }
};

template <>
struct Each<-1> {
  static __device__ inline bool add_to(State&, const uint4&, const uint4&, double, double) {
    return false;
  }
  static __device__ inline bool look_at(State&, const uint4&, const uint4&, u64, double) {
    return false;
  }
};

__device__ inline void measure_vector(State& s, const uint4& va, const uint4& vb, u64 vector,
                                      double atol, double rtol) {
  const bool record = Each<PER_VECTOR - 1>::add_to(s, va, vb, atol, rtol);
#if defined(PACKED)
  add_words(s, va.x, vb.x);
  add_words(s, va.y, vb.y);
  add_words(s, va.z, vb.z);
  add_words(s, va.w, vb.w);
#endif
  if (!__any_sync(0xffffffffu, record)) return;
  const bool found = Each<PER_VECTOR - 1>::look_at(s, va, vb, vector * PER_VECTOR, atol);
  if (__any_sync(0xffffffffu, found)) share(s);
}

__device__ inline Sums sums_of(const State& s, double count) {
  Sums sums = no_sums();
  if (count == 0) return sums;
  sums.count = sums.values = sums.a.count = sums.b.count = count;
  sums.mean_a = sums.a.mean = s.pivot_a + s.x / count;
  sums.mean_b = sums.b.mean = s.pivot_b + s.y / count;
  sums.m2_a = sums.a.m2 = fmax(0.0, s.xx - s.x * s.x / count);
  sums.m2_b = sums.b.m2 = fmax(0.0, s.yy - s.y * s.y / count);
  sums.co = s.xy - s.x * s.y / count;
  sums.a.min = s.min_a;
  sums.a.max = s.max_a;
  sums.b.min = s.min_b;
  sums.b.max = s.max_b;
  sums.a.zeros = static_cast<u64>(s.zeros_a);
  sums.b.zeros = static_cast<u64>(s.zeros_b);
  sums.d_abs = s.abs;
  sums.d_squared = s.squared;
  sums.d_relative = s.relative;
  sums.max_abs = s.max_abs;
  sums.max_abs_at = s.max_at;
  sums.max_rel = s.max_rel;
  sums.rtol_needed = s.rtol_needed;
  sums.equal = static_cast<u64>(s.equal);
  sums.exceeding = s.exceeding;
#if defined(BF16)
  sums.ulp = s.ulp >> 16;
#else
  sums.ulp = s.ulp;
#endif
  return sums;
}

// `rows` times 32 vectors; what is left over is general.cu's.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    measure_fast(const uint4* a, const uint4* b, u64 rows, double atol, double rtol, Sums* out) {
  const u64 warps = static_cast<u64>(gridDim.x) * (THREADS / 32);
  const u64 first = static_cast<u64>(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32;
  const u32 lane = threadIdx.x % 32;
  State s = {};
  s.max_abs = s.bound_abs = -1;
  s.min_a = s.min_b = INF;
  s.max_a = s.max_b = -INF;
  s.low_abs = -1;
  s.low_atol = static_cast<float>(atol * (1 - 0x1p-20));
#if defined(PACKED)
  s.least_a = s.least_b = 0x7f807f80u;
  s.most_a = s.most_b = 0xff80ff80u;
  u32 unflushed = 0;
#endif
  double count = 0;
  if (first < rows) {
    uint4 next_a = fetch(a + first * 32 + lane), next_b = fetch(b + first * 32 + lane);
    s.pivot_a = value_at<0>(next_a);
    s.pivot_b = value_at<0>(next_b);
    for (u64 row = first; row < rows; row += warps) {
      const uint4 va = next_a, vb = next_b;
      const u64 ahead = row + warps < rows ? row + warps : row;
      next_a = fetch(a + ahead * 32 + lane);
      next_b = fetch(b + ahead * 32 + lane);
      measure_vector(s, va, vb, row * 32 + lane, atol, rtol);
#if defined(PACKED)
      if (++unflushed == 64) flush(s), unflushed = 0;
#endif
    }
#if defined(PACKED)
    finish(s);
#endif
    count = static_cast<double>((rows - first + warps - 1) / warps) * PER_VECTOR;
  }
  put_together(sums_of(s, count), out);
}
