// What a kernel needs of the device: loads, a block's threads together, instructions without a name
// in C++. python/tests/host.cuh has the same for the host, where tests run the kernels.

// The sums of another lane of the warp.
__device__ inline Sums of_lane(const Sums& mine, int distance) {
  Sums theirs;
  const u32* from = reinterpret_cast<const u32*>(&mine);
  u32* to = reinterpret_cast<u32*>(&theirs);
#pragma unroll
  for (int i = 0; i < sizeof(Sums) / 4; ++i)
    to[i] = __shfl_down_sync(0xffffffffu, from[i], distance);
  return theirs;
}

// The sums of all threads of the block, in an order that never changes, to out[blockIdx.x].
__device__ inline void put_together(Sums sums, Sums* out) {
  __shared__ Sums of_warp[32];
#pragma unroll 1
  for (int distance = 16; distance > 0; distance /= 2) merge(sums, of_lane(sums, distance));
  if (threadIdx.x % 32 == 0) of_warp[threadIdx.x / 32] = sums;
  __syncthreads();
  if (threadIdx.x != 0) return;
#pragma unroll 1
  for (int warp = 1; warp < blockDim.x / 32; ++warp) merge(sums, of_warp[warp]);
  out[blockIdx.x] = sums;
}

__device__ inline u64 warp_of_grid() {
  return static_cast<u64>(blockIdx.x) * (THREADS / 32) + threadIdx.x / 32;
}
__device__ inline u64 warps_of_grid() { return static_cast<u64>(gridDim.x) * (THREADS / 32); }
__device__ inline u32 lane_of_warp() { return threadIdx.x % 32; }

__device__ inline bool any_of_warp(bool mine) { return __any_sync(0xffffffffu, mine); }

__device__ inline double most_of_warp(double mine) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    mine = fmax(mine, __shfl_xor_sync(0xffffffffu, mine, distance));
  return mine;
}

__device__ inline uint4 fetch(const uint4* at) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(at));
  return v;
}

#if defined(STAGES)
// Vectors of both tensors on their way: each thread has its own copied to shared memory while it
// works on earlier ones, STAGES - 1 at a time. That takes no registers, and needs no other thread.
extern __shared__ uint4 on_the_way[];  // [STAGES][2][THREADS]

struct Ahead {
  const uint4 *a, *b;  // What is asked for next.
  u64 step;
  u32 mine;  // Where the thread's part of shared memory begins.
};

__device__ inline void copy_to(u32 address, const uint4* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" : : "r"(address), "l"(from) : "memory");
#else
  const uint4 v = fetch(from);
  asm volatile("st.shared.v4.u32 [%0], {%1,%2,%3,%4};"
               :
               : "r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
               : "memory");
#endif
}

__device__ inline uint4 copy_at(u32 address) {
  uint4 v;
  asm volatile("ld.shared.v4.u32 {%0,%1,%2,%3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "r"(address)
               : "memory");
  return v;
}

__device__ inline u32 place_of(const Ahead& ahead, u32 number, u32 side) {
  return ahead.mine + (number % STAGES * 2 + side) * (THREADS * 16);
}

__device__ inline void ask(Ahead& ahead, u32 number, u32 vectors) {
  if (number < vectors) {
    copy_to(place_of(ahead, number, 0), ahead.a);
    copy_to(place_of(ahead, number, 1), ahead.b);
    ahead.a += ahead.step;
    ahead.b += ahead.step;
  }
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" : : : "memory");
#endif
}

__device__ inline Ahead begin(const uint4* a, const uint4* b, u64 step, u32 vectors) {
  Ahead ahead = {a, b, step, 0};
  // Not to be computed again each time.
  asm volatile("mov.u32 %0, %1;"
               : "=r"(ahead.mine)
               : "r"(static_cast<u32>(__cvta_generic_to_shared(on_the_way + threadIdx.x))));
#pragma unroll
  for (u32 number = 0; number + 1 < STAGES; ++number) ask(ahead, number, vectors);
  return ahead;
}

// Vectors of that number. What is asked for meanwhile goes where those before them were.
__device__ inline void next(Ahead& ahead, u32 number, u32 vectors, uint4& va, uint4& vb) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" : : "n"(STAGES - 2) : "memory");
#endif
  va = copy_at(place_of(ahead, number, 0));
  vb = copy_at(place_of(ahead, number, 1));
  ask(ahead, number + STAGES - 1, vectors);
}
#endif

__device__ inline float of_half(u32 bits) {
  float value;
  asm("{.reg .b16 h, rest; mov.b32 {h, rest}, %1; cvt.f32.f16 %0, h;}" : "=f"(value) : "r"(bits));
  return value;
}

__device__ inline u32 half_of(float value) {
  u16 half;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
  return half;
}

// To about 23 bits, and to about 20.
__device__ inline float reciprocal(float value) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(value));
  return result;
}
__device__ inline double rough_reciprocal(double value) {
  double result;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(result) : "d"(value));
  return result;
}

__device__ inline float one_if_equal(float a, float b) {
  float result;
  asm("set.eq.f32.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
}

__device__ inline u32 sign_of(double value) {
  return static_cast<u32>(__double2hiint(value)) >> 31;
}

#if __CUDA_ARCH__ >= 900
// Two 16-bit numbers in a word: bf16, or unsigned.
__device__ inline u32 least_bf16(u32 a, u32 b) {
  u32 result;
  asm("min.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
__device__ inline u32 most_bf16(u32 a, u32 b) {
  u32 result;
  asm("max.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
__device__ inline u32 minus_bf16(u32 a, u32 b) {
  u32 result;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
__device__ inline u32 plus_bf16(u32 a, u32 b) {
  u32 result;
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));
  return result;
}
__device__ inline u32 fma_bf16(u32 a, u32 b, u32 c) {
  u32 result;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(result) : "r"(a), "r"(b), "r"(c));
  return result;
}
// The halves as float64, in one instruction each.
__device__ inline double low_double(u32 word) {
  double value;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f64.bf16 %0, low;}"
      : "=d"(value)
      : "r"(word));
  return value;
}
__device__ inline double high_double(u32 word) {
  double value;
  asm("{.reg .b16 low, high; mov.b32 {low, high}, %1; cvt.f64.bf16 %0, high;}"
      : "=d"(value)
      : "r"(word));
  return value;
}
__device__ inline u32 least_u16(u32 a, u32 b) { return __vminu2(a, b); }
__device__ inline u32 most_u16(u32 a, u32 b) { return __vmaxu2(a, b); }
// All bits of each half where its highest is set.
__device__ inline u32 spread_signs(u32 word) {
  u32 result;
  asm("prmt.b32 %0, %1, 0, 0xbb99;" : "=r"(result) : "r"(word));  // __byte_perm drops the 8s.
  return result;
}
#endif
