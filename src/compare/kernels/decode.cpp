// Decoding in registers: a small float is moved to where a larger one keeps its exponent and
// fraction, and one multiplication puts the bias right.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels/decode.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <bit>
#include <cstring>
#include <limits>

#include "compare/kernels/decode.h"
#include "compare/kernels/half-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using U8 = hn::Rebind<uint8_t, F32>;

void bf16_to_f32(const uint16_t* from, std::size_t count, float* to) {
  each_vector(from, count, to, [](const uint16_t* in, float* out) HWY_ATTR {
    hn::StoreU(bf16_to_float(hn::LoadU(U16(), in)), F32(), out);
  });
}

void f16_to_f32(const uint16_t* from, std::size_t count, float* to) {
  each_vector(from, count, to, [](const uint16_t* in, float* out) HWY_ATTR {
    hn::StoreU(half_to_float(hn::LoadU(U16(), in)), F32(), out);
  });
}

// e4m3 and its relatives by way of an f16 with the same bits, whose conversion is quick for
// subnormals too, where a multiplication would be slow. `scale` puts the bias right.
HWY_INLINE hn::Vec<F32> e4m3_to_f32(hn::Vec<U16> bits, float scale) {
  const U16 u16;
  const auto size = hn::ShiftLeft<7>(hn::And(bits, hn::Set(u16, 0x7f)));
  const auto sign = hn::ShiftLeft<8>(hn::And(bits, hn::Set(u16, 0x80)));
  return hn::Mul(half_to_float(hn::Or(size, sign)), hn::Set(F32(), scale));
}

void e4m3(const uint8_t* from, std::size_t count, float* to) {
  each_vector(from, count, to, [](const uint8_t* in, float* out) HWY_ATTR {
    const auto narrow = hn::LoadU(U8(), in);
    const auto value = e4m3_to_f32(hn::PromoteTo(U16(), narrow), 0x1p8F);
    const U32 u32;
    const auto size = hn::And(hn::PromoteTo(u32, narrow), hn::Set(u32, 0x7f));
    const auto is_nan = hn::RebindMask(F32(), hn::Eq(size, hn::Set(u32, 0x7f)));
    hn::StoreU(hn::IfThenElse(is_nan, hn::NaN(F32()), value), F32(), out);
  });
}

// The types without -0, whose bits would stand for it, is NaN.
template <bool kE5m2>
void fnuz(const uint8_t* from, std::size_t count, float* to) {
  each_vector(from, count, to, [](const uint8_t* in, float* out) HWY_ATTR {
    const U32 u32;
    const auto narrow = hn::LoadU(U8(), in);
    const auto bits = hn::PromoteTo(u32, narrow);
    auto value = hn::Zero(F32());
    if constexpr (kE5m2) {
      // Its largest exponent is that of an f16's infinity, so it goes by a float of the same bits.
      const auto size = hn::ShiftLeft<21>(hn::And(bits, hn::Set(u32, 0x7f)));
      const auto sign = hn::ShiftLeft<24>(hn::And(bits, hn::Set(u32, 0x80)));
      value = hn::Mul(hn::BitCast(F32(), hn::Or(size, sign)), hn::Set(F32(), 0x1p111F));
    } else {
      value = e4m3_to_f32(hn::PromoteTo(U16(), narrow), 0x1p7F);
    }
    const auto is_nan = hn::RebindMask(F32(), hn::Eq(bits, hn::Set(u32, 0x80)));
    hn::StoreU(hn::IfThenElse(is_nan, hn::NaN(F32()), value), F32(), out);
  });
}

// Only an exponent: 2^(x - 127). 0 is 2^-127, which is subnormal; 255 is NaN.
void e8m0_to_f32(const uint8_t* from, std::size_t count, float* to) {
  each_vector(from, count, to, [](const uint8_t* in, float* out) HWY_ATTR {
    const U32 u32;
    const auto bits = hn::PromoteTo(u32, hn::LoadU(U8(), in));
    const auto normal = hn::ShiftLeft<23>(bits);
    const auto low = hn::IfThenElse(hn::Eq(bits, hn::Zero(u32)), hn::Set(u32, 0x400000), normal);
    const auto is_nan = hn::Eq(bits, hn::Set(u32, 0xff));
    const auto all = hn::IfThenElse(is_nan, hn::Set(u32, 0x7fc00000), low);
    hn::StoreU(hn::BitCast(F32(), all), F32(), out);
  });
}

void f8(DType dtype, const uint8_t* from, std::size_t count, float* to) {
  switch (dtype) {
    case DType::f8_e4m3:
      return e4m3(from, count, to);
    case DType::f8_e4m3fnuz:
      return fnuz<false>(from, count, to);
    case DType::f8_e5m2fnuz:
      return fnuz<true>(from, count, to);
    case DType::f8_e8m0:
      return e8m0_to_f32(from, count, to);
    default:
      break;
  }
  // e5m2 is the upper half of an f16.
  each_vector(from, count, to, [](const uint8_t* in, float* out) HWY_ATTR {
    const auto bits = hn::ShiftLeft<8>(hn::PromoteTo(U16(), hn::LoadU(U8(), in)));
    hn::StoreU(half_to_float(bits), F32(), out);
  });
}

// Unsigned ones are moved to where signed ones are, and back.
template <bool kSigned>
HWY_INLINE void integers32(const int32_t* from, std::size_t count, double* to) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<int32_t, decltype(d)> words;
  const auto sign = hn::Set(words, std::numeric_limits<int32_t>::min());
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto word = hn::LoadU(words, from + i);
    if constexpr (kSigned)
      hn::StoreU(hn::PromoteTo(d, word), d, to + i);
    else
      hn::StoreU(hn::Add(hn::PromoteTo(d, hn::Xor(word, sign)), hn::Set(d, 0x1p31)), d, to + i);
  }
  for (; i < count; ++i) to[i] = kSigned ? from[i] : static_cast<uint32_t>(from[i]);
}

// The bits of 1.5·2^52 plus a small integer are those of the sum.
template <bool kSigned>
HWY_INLINE bool integers64(const int64_t* from, std::size_t count, double* to) {
  const hn::ScalableTag<double> d;
  const hn::RebindToSigned<decltype(d)> words;
  auto used = hn::Zero(words);
  std::size_t i = 0;
  for (; i + hn::Lanes(d) <= count; i += hn::Lanes(d)) {
    const auto word = hn::LoadU(words, from + i);
    used = hn::Or(used, kSigned ? hn::Xor(word, hn::BroadcastSignBit(word)) : word);
    const auto sum = hn::Add(word, hn::Set(words, 0x4338000000000000));
    hn::StoreU(hn::Sub(hn::BitCast(d, sum), hn::Set(d, 0x1.8p52)), d, to + i);
  }
  HWY_ALIGN int64_t lanes[hn::MaxLanes(words)];
  hn::Store(used, words, lanes);
  uint64_t bits = 0;
  for (std::size_t k = 0; k < hn::Lanes(words); ++k) bits |= static_cast<uint64_t>(lanes[k]);
  for (; i < count; ++i) {
    bits |= static_cast<uint64_t>(kSigned && from[i] < 0 ? ~from[i] : from[i]);
    to[i] = static_cast<double>(from[i]);
  }
  return bits < uint64_t{1} << 51;
}

bool integers(DType dtype, const std::byte* from, std::size_t count, double* to) {
  const auto* narrow = reinterpret_cast<const int32_t*>(from);
  const auto* wide = reinterpret_cast<const int64_t*>(from);
  switch (dtype) {
    case DType::i32:
      return integers32<true>(narrow, count, to), true;
    case DType::u32:
      return integers32<false>(narrow, count, to), true;
    case DType::i64:
      return integers64<true>(wide, count, to);
    case DType::u64:
      return integers64<false>(wide, count, to);
    default:
      return false;
  }
}

void f32_to_f16(const float* from, std::size_t count, uint16_t* to) {
  each_vector(from, count, to, [](const float* in, uint16_t* out) HWY_ATTR {
    const auto half = hn::DemoteTo(F16(), hn::LoadU(F32(), in));
    hn::StoreU(hn::BitCast(U16(), half), U16(), out);
  });
}

void f32_to_bf16(const float* from, std::size_t count, uint16_t* to) {
  each_vector(from, count, to, [](const float* in, uint16_t* out) HWY_ATTR {
    const U32 u32;
    const auto bits = hn::BitCast(u32, hn::LoadU(F32(), in));
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
    const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(u32, 0x7fff)));
    const auto high = hn::ShiftRight<16>(rounded);
    hn::StoreU(hn::DemoteTo(U16(), hn::BitCast(hn::RebindToSigned<U32>(), high)), U16(), out);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensordiff::kernels {

HWY_EXPORT(bf16_to_f32);
HWY_EXPORT(f16_to_f32);
HWY_EXPORT(f8);
HWY_EXPORT(integers);
HWY_EXPORT(f32_to_f16);
HWY_EXPORT(f32_to_bf16);

bool fits_float(DType dtype) { return is_float(dtype) && dtype != DType::f64 && !is_packed(dtype); }

// Elements of a mapped file need not be aligned: a tile of them is copied first where they are not.
void decode(DType dtype, const std::byte* elements, std::size_t count, float* values) {
  if (item_bytes(dtype) == sizeof(float)) {  // f32, and blocks.
    std::memcpy(values, elements, count * sizeof(float));
    return;
  }
  if (item_bytes(dtype) == 1) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(elements);
    return HWY_DYNAMIC_DISPATCH(f8)(dtype, bytes, count, values);
  }
  const auto* words = reinterpret_cast<const uint16_t*>(elements);
  if (dtype == DType::bf16) return HWY_DYNAMIC_DISPATCH(bf16_to_f32)(words, count, values);
  HWY_DYNAMIC_DISPATCH(f16_to_f32)(words, count, values);
}

bool decode_integers(DType dtype, const std::byte* elements, std::size_t count, double* values) {
  return HWY_DYNAMIC_DISPATCH(integers)(dtype, elements, count, values);
}

void encode16(DType dtype, const float* values, std::size_t count, uint16_t* bits) {
  if (dtype == DType::bf16) return HWY_DYNAMIC_DISPATCH(f32_to_bf16)(values, count, bits);
  HWY_DYNAMIC_DISPATCH(f32_to_f16)(values, count, bits);
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
