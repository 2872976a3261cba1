// The two functions of Highway's library that vector code asks which instructions there are, as in
// Highway 1.0: Debian has it as a shared library only. x86-64 alone.

#include <cpuid.h>
#include <hwy/targets.h>

#include <atomic>
#include <cstdint>

namespace {

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

// Zeros where the processor does not know the question.
Registers ask(unsigned leaf) {
  Registers found;
  __get_cpuid_count(leaf, 0, &found.a, &found.b, &found.c, &found.d);
  return found;
}

constexpr bool has(unsigned word, unsigned bits) { return (word & bits) == bits; }

// Which registers the system keeps for a process.
unsigned kept_registers() {
  unsigned low = 0, high = 0;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// Highway's groups of instructions: each needs all of the one before.
int64_t detected() {
  constexpr unsigned kYmm = 0x6, kZmm = 0xe6;
  int64_t targets = HWY_EMU128 | HWY_SCALAR;
  const Registers basic = ask(1), more = ask(7), extended = ask(0x80000001);
  if (!has(basic.c, bit_SSE3 | bit_SSSE3)) return targets;
  targets |= HWY_SSSE3;
  if (!has(basic.c, bit_SSE4_1 | bit_SSE4_2 | bit_PCLMUL | bit_AES)) return targets;
  targets |= HWY_SSE4;
  if (!has(basic.c, bit_OSXSAVE | bit_AVX | bit_FMA | bit_F16C) || !has(extended.c, bit_LZCNT) ||
      !has(more.b, bit_AVX2 | bit_BMI | bit_BMI2) || !has(kept_registers(), kYmm))
    return targets;
  targets |= HWY_AVX2;
  if (has(more.b, bit_AVX512F | bit_AVX512VL | bit_AVX512DQ | bit_AVX512BW) &&
      has(kept_registers(), kZmm))
    targets |= HWY_AVX3;
  return targets;
}

std::atomic<int64_t> of_the_test = 0;

}  // namespace

namespace hwy {

int64_t SupportedTargets() {
  static const int64_t here = detected();
  const int64_t chosen = of_the_test;
  const int64_t targets = chosen == 0 ? here : chosen;
  if (!GetChosenTarget().IsInitialized()) GetChosenTarget().Update(targets);
  return targets;
}

void SetSupportedTargetsForTest(int64_t targets) {
  of_the_test = targets;
  GetChosenTarget().DeInit();
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

}  // namespace hwy
