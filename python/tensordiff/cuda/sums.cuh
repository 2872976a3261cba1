// The sums over a range of pairs, as src/compare/kernels/tile.h defines them. Part of every kernel.

typedef unsigned long long u64;
typedef unsigned int u32;
typedef unsigned short u16;
typedef unsigned char u8;

#define NONE 0xffffffffffffffffull
#define INF __longlong_as_double(0x7ff0000000000000ll)

// Mean and centred squares of finite values. Means count from the pivot of their side, the first
// value of the tensor: a mean of 1000 +- 0.01 would lose digits that the squares about it need.
struct Moments {
  double count, mean, m2, min, max;
  u64 zeros, nan, inf;
};

struct Sums {
  Moments a, b;
  double count;  // Pairs of finite values; from here on sums over these.
  double values, mean_a, mean_b, m2_a, m2_b, co;
  double d_abs, d_squared, d_relative, max_abs, max_rel, rtol_needed;
  u64 equal, exceeding, mismatch, agreeing, mismatch_at, agreeing_at, max_abs_at, ulp;
  double pivot_a, pivot_b;
};

__device__ inline Moments no_moments() {
  Moments none = {0, 0, 0, INF, -INF, 0, 0, 0};
  return none;
}

__device__ inline Sums no_sums() {
  Sums none = {no_moments(), no_moments(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, -1, 0, 0,
               0, 0, 0, 0, NONE, NONE, 0, 0, 0, 0};
  return none;
}

__device__ inline u64 least(u64 a, u64 b) { return a < b ? a : b; }
__device__ inline u64 most(u64 a, u64 b) { return a > b ? a : b; }

// Chan, Golub, LeVeque 1979.
__device__ inline void merge(Moments& to, const Moments& from) {
  if (from.count > 0) {
    const double all = to.count + from.count, delta = from.mean - to.mean;
    to.m2 += from.m2 + delta * delta * (to.count * from.count / all);
    to.mean += delta * (from.count / all);
    to.count = all;
  }
  to.min = fmin(to.min, from.min);
  to.max = fmax(to.max, from.max);
  to.zeros += from.zeros;
  to.nan += from.nan;
  to.inf += from.inf;
}

__device__ inline void merge(Sums& to, const Sums& from) {
  merge(to.a, from.a);
  merge(to.b, from.b);
  if (from.values > 0) {
    const double all = to.values + from.values, weight = to.values * from.values / all;
    const double delta_a = from.mean_a - to.mean_a, delta_b = from.mean_b - to.mean_b;
    to.m2_a += from.m2_a + delta_a * delta_a * weight;
    to.m2_b += from.m2_b + delta_b * delta_b * weight;
    to.co += from.co + delta_a * delta_b * weight;
    to.mean_a += delta_a * (from.values / all);
    to.mean_b += delta_b * (from.values / all);
    to.values = all;
  }
  to.count += from.count;
  to.d_abs += from.d_abs;
  to.d_squared += from.d_squared;
  to.d_relative += from.d_relative;
  to.max_rel = fmax(to.max_rel, from.max_rel);
  to.rtol_needed = fmax(to.rtol_needed, from.rtol_needed);
  to.equal += from.equal;
  to.exceeding += from.exceeding;
  to.mismatch += from.mismatch;
  to.agreeing += from.agreeing;
  to.mismatch_at = least(to.mismatch_at, from.mismatch_at);
  to.agreeing_at = least(to.agreeing_at, from.agreeing_at);
  if (from.max_abs > to.max_abs) {
    to.max_abs = from.max_abs;
    to.max_abs_at = from.max_abs_at;
  } else if (from.max_abs == to.max_abs) {
    to.max_abs_at = least(to.max_abs_at, from.max_abs_at);
  }
  to.ulp = most(to.ulp, from.ulp);
}
