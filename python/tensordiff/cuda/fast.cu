// Two tensors of one float type (F32, BF16 or F16), all of whose values are finite, in one pass.
//
// Each thread keeps sums in float64 about the first pair that it sees. A value that is not finite
// makes d_abs not finite, which the caller sees: general.cu then does the tensor again. packed.cu
// is quicker for BF16 where the device has its instructions.

#if defined(F32)
#define PER_VECTOR 4
#else
#define PER_VECTOR 8
#define FILTER32  // Halves are held against bounds in f32.
#endif

struct State {
  double abs, squared, relative;
  double pivot_a, pivot_b, x, y, xx, yy, xy;
  Records records;
  float low_abs, low_rel, low_needed, low_atol;  // A little below their bounds, for FILTER32.
  float equal, zeros_a, zeros_b;  // Fewer than 2^24 in each thread.
  u32 exceeding;
  float min_a, max_a, min_b, max_b;
  u32 ulp;
};

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
  s.equal += one_if_equal(fa, fb);
  s.zeros_a += one_if_equal(fa, 0);
  s.zeros_b += one_if_equal(fb, 0);
  s.min_a = fminf(s.min_a, fa);
  s.max_a = fmaxf(s.max_a, fa);
  s.min_b = fminf(s.min_b, fb);
  s.max_b = fmaxf(s.max_b, fb);
  const u32 apart =
      static_cast<u32>(max(steps_a, steps_b)) - static_cast<u32>(min(steps_a, steps_b));
  s.ulp = max(s.ulp, apart);
#if defined(FILTER32)
  const float apart32 = fabsf(fb - fa);
  return (apart32 > s.low_abs) | (apart32 > s.low_rel * fmaxf(fabsf(fa), fabsf(fb))) |
         (apart32 > fmaf(s.low_needed, fabsf(fa), s.low_atol));
#else
  const double larger = fmaxf(fabsf(fa), fabsf(fb));
  return (size > s.records.bound_abs) | (fma(-s.records.bound_rel, larger, size) > 0) |
         (size > fma(s.records.bound_needed, size_a, atol));
#endif
}

#if defined(FILTER32)
// f32 is off by less than a part in 2^22 here.
__device__ inline void set_limits(State& s) {
  const double less = 1 - 0x1p-20;
  s.low_abs = static_cast<float>(s.records.bound_abs * less);
  s.low_rel = static_cast<float>(s.records.bound_rel * less);
  s.low_needed = static_cast<float>(fmin(s.records.bound_needed, 1e30) * less);
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
    return look(s.records, value_at<i>(va), value_at<i>(vb), at + i, atol) | before;
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
  if (!any_of_warp(record)) return;
  const bool found = Each<PER_VECTOR - 1>::look_at(s, va, vb, vector * PER_VECTOR, atol);
  if (!any_of_warp(found)) return;
  share(s.records);
#if defined(FILTER32)
  set_limits(s);
#endif
}

__device__ inline Sums sums_of(const State& s, float pivot_a, float pivot_b, double count) {
  Sums sums = no_sums();
  sums.pivot_a = pivot_a;
  sums.pivot_b = pivot_b;
  if (count == 0) return sums;
  sums.count = sums.values = sums.a.count = sums.b.count = count;
  sums.mean_a = sums.a.mean = s.pivot_a - sums.pivot_a + s.x / count;
  sums.mean_b = sums.b.mean = s.pivot_b - sums.pivot_b + s.y / count;
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
  sums.max_abs = s.records.max_abs;
  sums.max_abs_at = s.records.max_at;
  sums.max_rel = s.records.max_rel;
  sums.rtol_needed = s.records.rtol_needed;
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
  const u64 warps = warps_of_grid(), first = warp_of_grid();
  const u32 lane = lane_of_warp();
  State s = {};
  s.records = no_records();
  s.min_a = s.min_b = INF;
  s.max_a = s.max_b = -INF;
  s.low_abs = -1;
  s.low_atol = static_cast<float>(atol * (1 - 0x1p-20));
  double count = 0;
  if (first < rows) {
    const u32 vectors = static_cast<u32>((rows - first + warps - 1) / warps);
    Ahead ahead = begin(a + first * 32 + lane, b + first * 32 + lane, warps * 32, vectors);
    s.pivot_a = value_at<0>(fetch(a + first * 32 + lane));
    s.pivot_b = value_at<0>(fetch(b + first * 32 + lane));
#pragma unroll UNROLL
    for (u32 i = 0; i < vectors; ++i) {
      uint4 va, vb;
      next(ahead, i, vectors, va, vb);
      measure_vector(s, va, vb, (first + warps * i) * 32 + lane, atol, rtol);
    }
    count = static_cast<double>(vectors) * PER_VECTOR;
  }
  put_together(sums_of(s, value_at<0>(fetch(a)), value_at<0>(fetch(b)), count), out);
}
