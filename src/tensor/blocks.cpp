#include "tensor/blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace tensordiff {
namespace {

// The fields of one block, by their offsets.
class Fields {
 public:
  Fields(const std::byte* block, bool swapped) : block_(block), swapped_(swapped) {}

  unsigned u8(std::size_t at) const { return std::to_integer<unsigned>(block_[at]); }
  int i8(std::size_t at) const { return static_cast<int8_t>(u8(at)); }
  unsigned low(std::size_t at) const { return u8(at) & 15; }
  unsigned high(std::size_t at) const { return u8(at) >> 4; }
  uint32_t u16(std::size_t at) const { return number(at, 2); }
  uint32_t u32(std::size_t at) const { return number(at, 4); }
  float f32(std::size_t at) const { return std::bit_cast<float>(u32(at)); }
  float f16(std::size_t at) const {
    const auto bits = static_cast<uint16_t>(u16(at));
    return static_cast<float>(decode_one(DType::f16, reinterpret_cast<const std::byte*>(&bits)));
  }

 private:
  uint32_t number(std::size_t at, std::size_t bytes) const {
    uint32_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= u8(at + (swapped_ ? bytes - 1 - i : i)) << 8 * i;
    return value;
  }

  const std::byte* block_;
  bool swapped_;
};

// How levels of four bits are spaced where they are not even.
constexpr int kIq4[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
constexpr int kE2m1[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};  // Doubled.

// 32 levels of four bits: the first half in the low nibbles, the second in the high ones.
template <class Value>
void nibbles(const Fields& block, std::size_t at, float* out, const Value& value) {
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = value(static_cast<int>(block.low(at + i)), i);
    out[i + 16] = value(static_cast<int>(block.high(at + i)), i + 16);
  }
}

// --- Blocks of 32: f16 d[, f16 m][, u32 fifth bits], then the levels. ---

void q4_0(const Fields& block, float* out) {
  const float d = block.f16(0);
  nibbles(block, 2, out, [&](int q, std::size_t) { return static_cast<float>(q - 8) * d; });
}

void q4_1(const Fields& block, float* out) {
  const float d = block.f16(0), m = block.f16(2);
  nibbles(block, 4, out, [&](int q, std::size_t) { return static_cast<float>(q) * d + m; });
}

int with_fifth_bit(int q, uint32_t bits, std::size_t i) {
  return q | static_cast<int>(bits >> i & 1) << 4;
}

void q5_0(const Fields& block, float* out) {
  const float d = block.f16(0);
  const uint32_t bits = block.u32(2);
  nibbles(block, 6, out, [&](int q, std::size_t i) {
    return static_cast<float>(with_fifth_bit(q, bits, i) - 16) * d;
  });
}

void q5_1(const Fields& block, float* out) {
  const float d = block.f16(0), m = block.f16(2);
  const uint32_t bits = block.u32(4);
  nibbles(block, 8, out, [&](int q, std::size_t i) {
    return static_cast<float>(with_fifth_bit(q, bits, i)) * d + m;
  });
}

void q8_0(const Fields& block, float* out) {
  const float d = block.f16(0);
  for (std::size_t i = 0; i < 32; ++i) out[i] = static_cast<float>(block.i8(2 + i)) * d;
}

void iq4_nl(const Fields& block, float* out) {
  const float d = block.f16(0);
  nibbles(block, 2, out, [&](int q, std::size_t) { return d * static_cast<float>(kIq4[q]); });
}

// One byte of exponent; half of what it says, because the levels are doubled.
void mxfp4(const Fields& block, float* out) {
  const float d = std::ldexp(1.0F, static_cast<int>(block.u8(0)) - 128);
  nibbles(block, 1, out, [&](int q, std::size_t) { return static_cast<float>(kE2m1[q]) * d; });
}

// --- Blocks of 64 and 128. ---

// The scales of nvfp4: e4m3 without a sign; both 0 and what would be NaN are 0.
float ue4m3_half(unsigned bits) {
  if (bits == 0 || bits == 0x7f) return 0;
  const auto exponent = static_cast<int>(bits >> 3 & 15);
  const auto fraction = static_cast<float>(bits & 7);
  return 0.5F *
         (exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(1 + fraction / 8, exponent - 7));
}

// e4m3 d[4], then four runs of 16 levels, each with its own first and second half.
void nvfp4(const Fields& block, float* out) {
  for (std::size_t run = 0; run < 4; ++run) {
    const float d = ue4m3_half(block.u8(run));
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t at = 4 + 8 * run + i;
      out[16 * run + i] = static_cast<float>(kE2m1[block.low(at)]) * d;
      out[16 * run + i + 8] = static_cast<float>(kE2m1[block.high(at)]) * d;
    }
  }
}

void q1_0(const Fields& block, float* out) {
  const float d = block.f16(0);
  for (std::size_t i = 0; i < 128; ++i) out[i] = block.u8(2 + i / 8) >> i % 8 & 1 ? d : -d;
}

float ternary(unsigned q, float d) { return static_cast<float>(static_cast<int>(q) - 1) * d; }

void q2_0(const Fields& block, float* out) {
  const float d = block.f16(0);
  for (std::size_t i = 0; i < 64; ++i) out[i] = ternary(block.u8(2 + i / 4) >> i % 4 * 2 & 3, d);
}

// --- Blocks of 256: runs of 16 or 32 with small scales of their own. ---

// u8 scales[16] (scale and minimum), 2-bit levels[64], f16 d, f16 dmin.
void q2_k(const Fields& block, float* out) {
  const float d = block.f16(80), dmin = block.f16(82);
  for (std::size_t run = 0; run < 16; ++run) {
    const float scale = d * static_cast<float>(block.low(run));
    const float minimum = dmin * static_cast<float>(block.high(run));
    const std::size_t at = 16 + run / 8 * 32 + run % 2 * 16;
    for (std::size_t i = 0; i < 16; ++i)
      out[16 * run + i] =
          scale * static_cast<float>(block.u8(at + i) >> run % 8 / 2 * 2 & 3) - minimum;
  }
}

// third bits[32], 2-bit levels[64], 6-bit scales[12], f16 d.
void q3_k(const Fields& block, float* out) {
  const float d = block.f16(108);
  for (std::size_t run = 0; run < 16; ++run) {
    const unsigned low = run < 8 ? block.low(96 + run) : block.high(96 + run - 8);
    const unsigned high = block.u8(104 + run % 4) >> run / 4 * 2 & 3;
    const float scale = d * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    const std::size_t column = run % 2 * 16;
    for (std::size_t i = column; i < column + 16; ++i) {
      const auto q = static_cast<int>(block.u8(32 + run / 8 * 32 + i) >> run % 8 / 2 * 2 & 3);
      const bool third = block.u8(i) >> run / 2 & 1;
      out[16 * run + i - column] = scale * static_cast<float>(q - (third ? 0 : 4));
    }
  }
}

struct ScaleAndMinimum {
  unsigned scale, minimum;
};

// Eight pairs of six bits each in twelve bytes.
ScaleAndMinimum packed_scale(const Fields& block, std::size_t at, std::size_t run) {
  if (run < 4) return {block.u8(at + run) & 63, block.u8(at + run + 4) & 63};
  return {block.low(at + run + 4) | block.u8(at + run - 4) >> 6 << 4,
          block.high(at + run + 4) | block.u8(at + run) >> 6 << 4};
}

// f16 d, f16 dmin, scales[12][, fifth bits[32]], 4-bit levels[128].
void q4_or_q5_k(const Fields& block, bool fifth_bits, float* out) {
  const float d = block.f16(0), dmin = block.f16(2);
  const std::size_t levels = fifth_bits ? 48 : 16;
  for (std::size_t run = 0; run < 8; ++run) {
    const ScaleAndMinimum packed = packed_scale(block, 4, run);
    const float scale = d * static_cast<float>(packed.scale);
    const float minimum = dmin * static_cast<float>(packed.minimum);
    for (std::size_t i = 0; i < 32; ++i) {
      const std::size_t at = levels + run / 2 * 32 + i;
      unsigned q = run % 2 ? block.high(at) : block.low(at);
      if (fifth_bits) q += (block.u8(16 + i) >> run & 1) << 4;
      out[32 * run + i] = scale * static_cast<float>(q) - minimum;
    }
  }
}

void q4_k(const Fields& block, float* out) { q4_or_q5_k(block, false, out); }
void q5_k(const Fields& block, float* out) { q4_or_q5_k(block, true, out); }

// low four bits[128], high two bits[64], i8 scales[16], f16 d.
void q6_k(const Fields& block, float* out) {
  const float d = block.f16(208);
  for (std::size_t i = 0; i < 256; ++i) {
    const std::size_t half = i / 128, row = i % 128 / 32, column = i % 32;
    const std::size_t at = 64 * half + row % 2 * 32 + column;
    const unsigned low = row < 2 ? block.low(at) : block.high(at);
    const unsigned high = block.u8(128 + 32 * half + column) >> row * 2 & 3;
    const auto q = static_cast<float>(static_cast<int>(low | high << 4) - 32);
    out[i] = d * static_cast<float>(block.i8(192 + i / 16)) * q;
  }
}

// f32 d, i8 levels[256], sums that serve multiplication.
void q8_k(const Fields& block, float* out) {
  const float d = block.f32(0);
  for (std::size_t i = 0; i < 256; ++i) out[i] = d * static_cast<float>(block.i8(4 + i));
}

// f16 d, u16 high bits of scales, low bits[4], 4-bit levels[128].
void iq4_xs(const Fields& block, float* out) {
  const float d = block.f16(0);
  for (std::size_t run = 0; run < 8; ++run) {
    const unsigned low = run % 2 ? block.high(4 + run / 2) : block.low(4 + run / 2);
    const unsigned high = block.u16(2) >> 2 * run & 3;
    const float scale = d * static_cast<float>(static_cast<int>(low | high << 4) - 32);
    nibbles(block, 8 + 16 * run, out + 32 * run,
            [&](int q, std::size_t) { return scale * static_cast<float>(kIq4[q]); });
  }
}

// Digits of base 3, five in a byte: multiplied by 3^n the n-th is what overflows. Bytes 0 to 31
// hold the first 160, 32 to 47 the next 80, and the last four bytes four each; f16 d.
void tq1_0(const Fields& block, float* out) {
  const float d = block.f16(52);
  const auto digits = [&](std::size_t at, std::size_t bytes, int count) {
    for (unsigned power = 1; count > 0; --count, power *= 3)
      for (std::size_t i = 0; i < bytes; ++i)
        *out++ = ternary((block.u8(at + i) * power & 0xff) * 3 >> 8, d);
  };
  digits(0, 32, 5);
  digits(32, 16, 5);
  digits(48, 4, 4);
}

// 2-bit levels[64], f16 d.
void tq2_0(const Fields& block, float* out) {
  const float d = block.f16(64);
  for (std::size_t i = 0; i < 256; ++i)
    out[i] = ternary(block.u8(i / 128 * 32 + i % 32) >> i % 128 / 32 * 2 & 3, d);
}

using Decoder = void (*)(const Fields& block, float* out);

// In the order of DType, from q4_0 on.
constexpr Decoder kDecoders[] = {
    q4_0, q4_1,   q5_0,   q5_1,  q8_0,  q2_k,  q3_k,  q4_k, q5_k, q6_k,
    q8_k, iq4_nl, iq4_xs, tq1_0, tq2_0, mxfp4, nvfp4, q1_0, q2_0,
};
static_assert(std::size(kDecoders) ==
              static_cast<std::size_t>(DType::iq1_s) - static_cast<std::size_t>(DType::q4_0));

}  // namespace

void decode_block(DType dtype, bool swapped, const std::byte* block, float* values) {
  const std::size_t at = static_cast<std::size_t>(dtype) - static_cast<std::size_t>(DType::q4_0);
  kDecoders[at](Fields(block, swapped), values);
}

void Blocks::read(uint64_t first, int64_t step, std::size_t count, std::byte* out) const {
  const uint64_t size = info(dtype).block;
  const uint64_t size_bytes = info(dtype).block_bytes;
  float values[kBlockElementsMax];
  uint64_t decoded = UINT64_MAX;
  for (std::size_t i = 0; i < count;) {
    const uint64_t at = first + i * static_cast<uint64_t>(step);
    if (at / size != decoded) {
      decoded = at / size;
      decode_block(dtype, swapped, bytes.data() + decoded * size_bytes, values);
    }
    // Neighbours leave the block together.
    const std::size_t run = step == 1 ? std::min<uint64_t>(count - i, size - at % size) : 1;
    std::memcpy(out + i * sizeof(float), values + at % size, run * sizeof(float));
    i += run;
  }
}

}  // namespace tensordiff
