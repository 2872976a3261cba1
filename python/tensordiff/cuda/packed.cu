// Two bf16 tensors, all of whose values are finite, in one pass; for devices that compute with two
// bf16 in a word (sm_90). fast.cu says the same for other types and devices.
//
// What bounds it is how many instructions a pair takes, so:
// - counts, extremes and steps are taken from the stored words, two values at a time;
// - whether a pair may be a record is asked in bf16, whose rounding the limits leave room for;
// - four quotients |d| / (|a| + 1e-8) are brought to one, which has one reciprocal;
// - squares are not taken about a pivot. A product of two bf16 has 16 bits, so sums in float64 are
//   exact where values are alike, which is where squares about a mean would lose digits. A value
//   that is too small for that is far from the mean, and its own square covers the error;
// - B's sums are those of A and of the differences, which are needed anyway. Where B is much smaller
//   than A that loses digits, which the caller sees: general.cu then does the tensor again.

#define SIGNS 0x80008000u
#define ONES 0x00010001u
// Vectors until a count may pass 16 bits: each adds 4 to a half.
#define FLUSH 8192

// A little below the bounds of the records, twice in a word.
struct Limits {
  u32 abs, rel, needed;
};

struct State {
  double abs, squared, relative;
  double x, d, xx, xd;
  u32 least_a, most_a, least_b, most_b, apart;  // Two values each, as the words have them.
  u32 unequal, filled_a, filled_b;              // Counts of two halves, and their totals:
  u32 all_unequal, all_filled_a, all_filled_b;
  u32 exceeding;
  Limits low;
};

__device__ inline float low_half(u32 word) { return __uint_as_float(word << 16); }
__device__ inline float high_half(u32 word) { return __uint_as_float(word & 0xffff0000u); }

// A bf16 that is below a bound by at least a part in 2^7: more than the rounding of a difference,
// a part in 2^9.
__device__ inline u32 twice_below(double bound) {
  const u32 bits = __float_as_uint(static_cast<float>(bound * (1 - 0x1p-7))) & 0xffff0000u;
  return bits | bits >> 16;
}

__device__ inline Limits limits_of(const Records& r) {
  return {twice_below(r.bound_abs), twice_below(r.bound_rel),
          twice_below(fmin(r.bound_needed, 1e30))};
}

// What a word of each side tells. `maybe` has signs where a half may be a record.
struct Told {
  u32 apart, filled_a, filled_b, unequal, maybe;
};

__device__ inline Told told_by(const State& s, u32 a, u32 b) {
  const u32 size_a = a & ~SIGNS, size_b = b & ~SIGNS;
  const u32 larger = most_u16(size_a, size_b), smaller = least_u16(size_a, size_b);
  // Steps from zero are the stored bits but for the sign; no half passes 16 bits.
  const u32 apart = larger - smaller + 2 * (smaller & spread_signs(a ^ b));
  // Limit less |d|: its sign is right even where the result underflows to -0.
  const u32 minus_d = minus_bf16(a, b) | SIGNS;
  const u32 maybe = plus_bf16(s.low.abs, minus_d) | fma_bf16(larger, s.low.rel, minus_d) |
                    fma_bf16(size_a, s.low.needed, minus_d);
  return {apart, least_u16(size_a, ONES), least_u16(size_b, ONES), least_u16(apart, ONES), maybe};
}

__device__ inline u32 add_words(State& s, u32 a0, u32 a1, u32 b0, u32 b1) {
  const Told first = told_by(s, a0, b0), second = told_by(s, a1, b1);
  s.apart = most_u16(s.apart, most_u16(first.apart, second.apart));
  s.unequal += first.unequal + second.unequal;
  s.filled_a += first.filled_a + second.filled_a;
  s.filled_b += first.filled_b + second.filled_b;
  s.least_a = least_bf16(s.least_a, least_bf16(a0, a1));
  s.most_a = most_bf16(s.most_a, most_bf16(a0, a1));
  s.least_b = least_bf16(s.least_b, least_bf16(b0, b1));
  s.most_b = most_bf16(s.most_b, most_bf16(b0, b1));
  return first.maybe | second.maybe;
}

struct Quotient {
  double over, under;
};

__device__ inline Quotient operator+(const Quotient& p, const Quotient& q) {
  return {fma(p.over, q.under, q.over * p.under), p.under * q.under};
}

__device__ inline Quotient add_pair(State& s, double a, double b, double atol, double rtol) {
  const double d = b - a, size = fabs(d), size_a = fabs(a);
  s.abs += size;
  s.squared = fma(d, d, s.squared);
  s.x += a;
  s.d += d;
  s.xx = fma(a, a, s.xx);
  s.xd = fma(a, d, s.xd);
  s.exceeding += sign_of(fma(rtol, size_a, atol) - size);
  return {size, size_a + 1e-8};
}

__device__ inline void add_four(State& s, u32 a0, u32 a1, u32 b0, u32 b1, double atol,
                                double rtol) {
  const Quotient q = (add_pair(s, low_double(a0), low_double(b0), atol, rtol) +
                      add_pair(s, high_double(a0), high_double(b0), atol, rtol)) +
                     (add_pair(s, low_double(a1), low_double(b1), atol, rtol) +
                      add_pair(s, high_double(a1), high_double(b1), atol, rtol));
  // q.over / q.under: a guess of 20 bits, then two terms of the series of its error: 60 bits.
  const double guess = rough_reciprocal(q.under), rest = fma(-q.under, guess, 1.0);
  const double about = q.over * guess;
  s.relative = fma(about, fma(rest, rest, rest), s.relative + about);
}

__device__ inline u32 word_of(const uint4& v, int i) {
  return i == 0 ? v.x : i == 1 ? v.y : i == 2 ? v.z : v.w;
}

// A vector in which some lane of the warp may have a record. It is read again: this is rare, and
// registers are not.
__device__ __noinline__ Limits look_at(Records& r, const uint4* a, const uint4* b, u64 vector,
                                       double atol) {
  const uint4 va = fetch(a + vector), vb = fetch(b + vector);
  u32 candidates = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const u32 a = word_of(va, i), b = word_of(vb, i);
    candidates |= u32(is_record(r, low_half(a), low_half(b), atol)) << 2 * i;
    candidates |= u32(is_record(r, high_half(a), high_half(b), atol)) << (2 * i + 1);
  }
  if (!any_of_warp(candidates != 0)) return limits_of(r);
#pragma unroll 1
  for (int i = 0; i < 8; ++i) {
    const u32 a = word_of(va, i / 2), b = word_of(vb, i / 2);
    if (candidates >> i & 1)
      look(r, i % 2 ? high_half(a) : low_half(a), i % 2 ? high_half(b) : low_half(b),
           vector * 8 + i, atol);
  }
  share(r);
  return limits_of(r);
}

__device__ inline void flush(State& s) {
  s.all_unequal += (s.unequal & 0xffff) + (s.unequal >> 16);
  s.all_filled_a += (s.filled_a & 0xffff) + (s.filled_a >> 16);
  s.all_filled_b += (s.filled_b & 0xffff) + (s.filled_b >> 16);
  s.unequal = s.filled_a = s.filled_b = 0;
}

// sum of products less product of sums / count, without the rounding of either product.
__device__ inline double about_means(double products, double x, double y, double count) {
  const double all = __dmul_rn(count, products), square = __dmul_rn(x, y);
  const double lost = __dadd_rn(fma(count, products, -all), -fma(x, y, -square));
  return __dadd_rn(__dadd_rn(all, -square), lost) / count;
}

__device__ inline Sums sums_of(const State& s, const Records& r, float pivot_a, float pivot_b,
                               u64 count) {
  Sums sums = no_sums();
  sums.pivot_a = pivot_a;
  sums.pivot_b = pivot_b;
  if (count == 0) return sums;
  const double n = static_cast<double>(count);
  sums.count = sums.values = sums.a.count = sums.b.count = n;
  sums.mean_a = sums.a.mean = fma(-n, sums.pivot_a, s.x) / n;
  sums.mean_b = sums.b.mean = fma(-n, sums.pivot_b, s.x + s.d) / n;
  const double co_d = about_means(s.xd, s.x, s.d, n);
  sums.m2_a = sums.a.m2 = fmax(0.0, about_means(s.xx, s.x, s.x, n));
  sums.m2_b = sums.b.m2 = fmax(0.0, sums.m2_a + 2 * co_d + about_means(s.squared, s.d, s.d, n));
  sums.co = sums.m2_a + co_d;
  sums.a.min = fminf(low_half(s.least_a), high_half(s.least_a));
  sums.a.max = fmaxf(low_half(s.most_a), high_half(s.most_a));
  sums.b.min = fminf(low_half(s.least_b), high_half(s.least_b));
  sums.b.max = fmaxf(low_half(s.most_b), high_half(s.most_b));
  sums.a.zeros = count - s.all_filled_a;
  sums.b.zeros = count - s.all_filled_b;
  sums.d_abs = s.abs;
  sums.d_squared = s.squared;
  sums.d_relative = s.relative;
  sums.max_abs = r.max_abs;
  sums.max_abs_at = r.max_at;
  sums.max_rel = r.max_rel;
  sums.rtol_needed = r.rtol_needed;
  sums.equal = count - s.all_unequal;
  sums.exceeding = s.exceeding;
  sums.ulp = most(s.apart & 0xffff, s.apart >> 16);
  return sums;
}

// Returns whether some lane of the warp may have a record.
__device__ inline bool measure_vector(State& s, const uint4& va, const uint4& vb, double atol,
                                      double rtol) {
  const u32 maybe = add_words(s, va.x, va.y, vb.x, vb.y) | add_words(s, va.z, va.w, vb.z, vb.w);
  add_four(s, va.x, va.y, vb.x, vb.y, atol, rtol);
  add_four(s, va.z, va.w, vb.z, vb.w, atol, rtol);
  return any_of_warp((maybe & SIGNS) != 0);
}

// `rows` times 32 vectors; what is left over is general.cu's.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    measure_packed(const uint4* a, const uint4* b, u64 rows, double atol, double rtol, Sums* out) {
  const u64 warps = warps_of_grid(), first = warp_of_grid();
  const u32 lane = lane_of_warp();
  State s = {};
  Records r = no_records();
  s.low = limits_of(r);
  s.least_a = s.least_b = 0x7f807f80u;
  s.most_a = s.most_b = 0xff80ff80u;
  u32 vectors = 0;
  if (first < rows) {
    vectors = static_cast<u32>((rows - first + warps - 1) / warps);
    const u64 at = first * 32 + lane, step = warps * 32;
    Ahead ahead = begin(a + at, b + at, step, vectors);
#pragma unroll UNROLL
    for (u32 i = 0; i < vectors; ++i) {
      uint4 va, vb;
      next(ahead, i, vectors, va, vb);
      if (measure_vector(s, va, vb, atol, rtol)) s.low = look_at(r, a, b, at + step * i, atol);
      if (i % FLUSH == FLUSH - 1) flush(s);
    }
    flush(s);
  }
  const u64 count = static_cast<u64>(vectors) * 8;
  put_together(sums_of(s, r, low_half(fetch(a).x), low_half(fetch(b).x), count), out);
}
