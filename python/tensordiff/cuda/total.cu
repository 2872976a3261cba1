// The sums of all blocks as one, always in the same order, so that a single record is copied.

__device__ inline Sums total_of(const Sums* parts, u32 first, u32 count) {
  Sums sums = no_sums();
  sums.pivot_a = parts[0].pivot_a;
  sums.pivot_b = parts[0].pivot_b;
#pragma unroll 1
  for (u32 i = first; i < count; i += THREADS) merge(sums, parts[i]);
  return sums;
}

// One block of one warp.
extern "C" __global__ void __launch_bounds__(THREADS)
    measure_total(const Sums* parts, u32 count, Sums* out) {
  put_together(total_of(parts, lane_of_warp(), count), out);
}
