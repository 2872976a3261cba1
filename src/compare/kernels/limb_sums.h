// The vector code of digests: sums of values times powers, whole, in limbs.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace tensordiff::kernels {

// The bits of a float as a digest counts it: both zeros are one value, and all NaN are.
constexpr uint32_t digest_bits(uint32_t bits) {
  const uint32_t size = bits << 1;
  return size == 0 ? 0 : size > 0xff000000U ? 0x7fc00000U : bits;
}

// Powers of two numbers, below 2^63, in limbs. A limb times 32 bits has 53: so many add up in 64.
struct LimbedPowers {
  static constexpr std::size_t kCount = 512;
  static constexpr unsigned kBits = 21;
  static constexpr std::size_t kLimbs = 3;

  void set(std::size_t lane, std::size_t at, uint64_t power) {
    for (std::size_t limb = 0; limb < kLimbs; ++limb)
      limbs[lane][limb][at] = power >> (kBits * limb) & ((1U << kBits) - 1);
  }

  alignas(64) uint64_t limbs[2][kLimbs][kCount] = {};
};

struct LimbSums {
  uint64_t of[2][LimbedPowers::kLimbs] = {};
};

// Of at most kCount floats, given as their bits, with the powers from the first one on.
LimbSums sum_limbs(const uint32_t* values, std::size_t count, const LimbedPowers& powers);

namespace reference {
LimbSums sum_limbs(const uint32_t* values, std::size_t count, const LimbedPowers& powers);
}  // namespace reference

}  // namespace tensordiff::kernels
