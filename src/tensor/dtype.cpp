#include "tensor/dtype.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace tensordiff {
namespace {

using enum Kind;

// Tolerances are those of torch.testing.assert_close, and of TransformerEngine for f8.
constexpr DTypeInfo kTypes[] = {
    // dtype, name, kind, bits, mantissa, rtol, atol
    {DType::f64, "f64", floating, 64, 52, 1e-7, 1e-7},
    {DType::f32, "f32", floating, 32, 23, 1.3e-6, 1e-5},
    {DType::f16, "f16", floating, 16, 10, 1e-3, 1e-5},
    {DType::bf16, "bf16", floating, 16, 7, 1.6e-2, 1e-5},
    {DType::f8_e4m3, "f8_e4m3", floating, 8, 3, 0.125, 0.0675},
    {DType::f8_e5m2, "f8_e5m2", floating, 8, 2, 0.25, 0.125},
    {DType::f8_e4m3fnuz, "f8_e4m3fnuz", floating, 8, 3, 0.125, 0.0675},
    {DType::f8_e5m2fnuz, "f8_e5m2fnuz", floating, 8, 2, 0.25, 0.125},
    {DType::f8_e8m0, "f8_e8m0", floating, 8, 0, 0, 0},
    {DType::f6_e2m3, "f6_e2m3", floating, 6, 3, 0.125, 0.0675},
    {DType::f6_e3m2, "f6_e3m2", floating, 6, 2, 0.25, 0.125},
    {DType::f4_e2m1, "f4_e2m1", floating, 4, 1, 0.25, 0.125},
    {DType::i64, "i64", signed_int, 64, -1, 0, 0},
    {DType::i32, "i32", signed_int, 32, -1, 0, 0},
    {DType::i16, "i16", signed_int, 16, -1, 0, 0},
    {DType::i8, "i8", signed_int, 8, -1, 0, 0},
    {DType::i4, "i4", signed_int, 4, -1, 0, 0},
    {DType::i2, "i2", signed_int, 2, -1, 0, 0},
    {DType::u64, "u64", unsigned_int, 64, -1, 0, 0},
    {DType::u32, "u32", unsigned_int, 32, -1, 0, 0},
    {DType::u16, "u16", unsigned_int, 16, -1, 0, 0},
    {DType::u8, "u8", unsigned_int, 8, -1, 0, 0},
    {DType::u4, "u4", unsigned_int, 4, -1, 0, 0},
    {DType::u2, "u2", unsigned_int, 2, -1, 0, 0},
    {DType::boolean, "bool", boolean, 8, -1, 0, 0},
    {DType::c64, "c64", complex, 64, 23, 1.3e-6, 1e-5},
    {DType::c128, "c128", complex, 128, 52, 1e-7, 1e-7},
    // And: step, elements and bytes of a block. Where a block has a minimum of its own, its range
    // may be twice its largest value; powers of two as scales may waste as much.
    {DType::q4_0, "q4_0", floating, 32, 3, 1.0 / 8, 0, 32, 18},
    {DType::q4_1, "q4_1", floating, 32, 3, 2.0 / 15, 0, 32, 20},
    {DType::q5_0, "q5_0", floating, 32, 4, 1.0 / 16, 0, 32, 22},
    {DType::q5_1, "q5_1", floating, 32, 4, 2.0 / 31, 0, 32, 24},
    {DType::q8_0, "q8_0", floating, 32, 6, 1.0 / 127, 0, 32, 34},
    {DType::q2_k, "q2_k", floating, 32, 1, 2.0 / 3, 0, 256, 84},
    {DType::q3_k, "q3_k", floating, 32, 2, 1.0 / 4, 0, 256, 110},
    {DType::q4_k, "q4_k", floating, 32, 3, 2.0 / 15, 0, 256, 144},
    {DType::q5_k, "q5_k", floating, 32, 4, 2.0 / 31, 0, 256, 176},
    {DType::q6_k, "q6_k", floating, 32, 5, 1.0 / 32, 0, 256, 210},
    {DType::q8_k, "q8_k", floating, 32, 6, 1.0 / 127, 0, 256, 292},
    {DType::iq4_nl, "iq4_nl", floating, 32, 3, 1.0 / 5, 0, 32, 18},
    {DType::iq4_xs, "iq4_xs", floating, 32, 3, 1.0 / 5, 0, 256, 136},
    {DType::tq1_0, "tq1_0", floating, 32, 0, 1, 0, 256, 54},
    {DType::tq2_0, "tq2_0", floating, 32, 0, 1, 0, 256, 66},
    {DType::mxfp4, "mxfp4", floating, 32, 1, 1.0 / 2, 0, 32, 17},
    {DType::nvfp4, "nvfp4", floating, 32, 1, 1.0 / 3, 0, 64, 36},
    {DType::q1_0, "q1_0", floating, 32, 0, 1, 0, 128, 18},
    {DType::q2_0, "q2_0", floating, 32, 0, 1, 0, 64, 18},
    {DType::iq1_s, "iq1_s", floating, 32, 0, 0, 0, 256, 50},
    {DType::iq1_m, "iq1_m", floating, 32, 0, 0, 0, 256, 56},
    {DType::iq2_xxs, "iq2_xxs", floating, 32, 1, 0, 0, 256, 66},
    {DType::iq2_xs, "iq2_xs", floating, 32, 1, 0, 0, 256, 74},
    {DType::iq2_s, "iq2_s", floating, 32, 1, 0, 0, 256, 82},
    {DType::iq3_xxs, "iq3_xxs", floating, 32, 2, 0, 0, 256, 98},
    {DType::iq3_s, "iq3_s", floating, 32, 2, 0, 0, 256, 110},
    // The same for scales of their own. Floats have the widest step above a power of two; integers
    // with a zero point may spread over twice their largest value; nf4 and fp4 have it at the top.
    {DType::f8_e4m3_scaled, "f8_e4m3_scaled", floating, 32, 3, 1.0 / 8, 0, 2, 2},
    {DType::f8_e5m2_scaled, "f8_e5m2_scaled", floating, 32, 2, 1.0 / 4, 0, 2, 2},
    {DType::int8_scaled, "int8_scaled", floating, 32, 6, 1.0 / 127, 0, 2, 2},
    {DType::int4_scaled, "int4_scaled", floating, 32, 3, 1.0 / 7, 0, 2, 1},
    {DType::int3_scaled, "int3_scaled", floating, 32, 2, 1.0 / 3, 0, 8, 3},
    {DType::int2_scaled, "int2_scaled", floating, 32, 1, 1, 0, 4, 1},
    {DType::nf4, "nf4", floating, 32, 2, 0.28, 0, 2, 1},
    {DType::fp4, "fp4", floating, 32, 1, 1.0 / 3, 0, 2, 1},
};

template <class T>
T load(const std::byte* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

struct SmallFloat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
};

double small_float_value(unsigned bits, SmallFloat layout) {
  const unsigned mantissa = bits & ((1U << layout.mantissa_bits) - 1);
  const unsigned exponent = bits >> layout.mantissa_bits & ((1U << layout.exponent_bits) - 1);
  const bool negative = bits >> (layout.mantissa_bits + layout.exponent_bits) & 1;
  const double fraction = std::ldexp(mantissa, -layout.mantissa_bits);
  const double size = exponent == 0
                          ? std::ldexp(fraction, 1 - layout.bias)
                          : std::ldexp(1 + fraction, static_cast<int>(exponent) - layout.bias);
  return negative ? -size : size;
}

// Its exponent and fraction stand where a double keeps them, and one product puts the bias right.
double f16_value(uint16_t bits) {
  if ((bits & 0x7c00) != 0x7c00) {
    const double size =
        std::bit_cast<double>(static_cast<uint64_t>(bits & 0x7fff) << 42) * 0x1p1008;
    return bits & 0x8000 ? -size : size;
  }
  if (bits & 0x3ff) return std::numeric_limits<double>::quiet_NaN();
  return bits & 0x8000 ? -std::numeric_limits<double>::infinity()
                       : std::numeric_limits<double>::infinity();
}

double bf16_value(uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

double f8_value(DType dtype, unsigned bits) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  switch (dtype) {
    case DType::f8_e4m3:
      return (bits & 0x7f) == 0x7f ? kNan : small_float_value(bits, {4, 3, 7});
    case DType::f8_e5m2:
      return f16_value(static_cast<uint16_t>(bits << 8));
    case DType::f8_e4m3fnuz:
      return bits == 0x80 ? kNan : small_float_value(bits, {4, 3, 8});
    case DType::f8_e5m2fnuz:
      return bits == 0x80 ? kNan : small_float_value(bits, {5, 2, 16});
    default:
      return bits == 0xff ? kNan : std::ldexp(1.0, static_cast<int>(bits) - 127);
  }
}

std::array<float, 256> make_f8_table(DType dtype) {
  std::array<float, 256> table;
  for (unsigned bits = 0; bits < 256; ++bits)
    table[bits] = static_cast<float>(f8_value(dtype, bits));
  return table;
}

template <class Stored>
void decode_as(const std::byte* elements, std::size_t count, double* values) {
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<double>(load<Stored>(elements + i * sizeof(Stored)));
}

template <class Value>
void decode_16(const Value& value, const std::byte* elements, std::size_t count, double* values) {
  for (std::size_t i = 0; i < count; ++i) values[i] = value(load<uint16_t>(elements + 2 * i));
}

// Unpacked integers of few bits, whose sign is the highest of these.
void decode_small_signed(int bits, const std::byte* elements, std::size_t count, double* values) {
  for (std::size_t i = 0; i < count; ++i) {
    const int value = std::to_integer<int>(elements[i]);
    values[i] = value >> (bits - 1) & 1 ? value - (1 << bits) : value;
  }
}

// Unpacked f6 and f4, which have neither infinities nor NaN.
void decode_small(SmallFloat layout, const std::byte* elements, std::size_t count, double* values) {
  for (std::size_t i = 0; i < count; ++i)
    values[i] = small_float_value(std::to_integer<unsigned>(elements[i]), layout);
}

// The 16 bits of a float with so many bits of fraction: f16 has 10, bf16 has 7.
uint16_t rounded_to_16(double value, int fraction_bits) {
  const int bias = (1 << (14 - fraction_bits)) - 1;
  const int infinity = (2 * bias + 1) << fraction_bits;
  const int sign = std::signbit(value) ? 0x8000 : 0;
  if (std::isnan(value)) return static_cast<uint16_t>(sign | infinity | 1);
  if (std::isinf(value)) return static_cast<uint16_t>(sign | infinity);
  if (value == 0) return static_cast<uint16_t>(sign);
  int exponent = 0;
  std::frexp(value, &exponent);
  exponent = std::max(exponent - 1, 1 - bias);  // Below that the steps get no smaller.
  const double steps = std::nearbyint(std::ldexp(std::abs(value), fraction_bits - exponent));
  // A normal number has at least 2^fraction_bits steps, which add the last one to the exponent.
  const double pattern = std::ldexp(exponent + bias - 1, fraction_bits) + steps;
  return static_cast<uint16_t>(sign | static_cast<int>(std::min<double>(pattern, infinity)));
}

template <class T, class Round>
void encode_as(const double* values, std::size_t count, std::byte* elements, Round round) {
  for (std::size_t i = 0; i < count; ++i) {
    const T element = round(values[i]);
    std::memcpy(elements + i * sizeof(T), &element, sizeof(T));
  }
}

}  // namespace

const DTypeInfo& info(DType dtype) { return kTypes[static_cast<std::size_t>(dtype)]; }

uint64_t stored_bytes(DType dtype, uint64_t elements) {
  const DTypeInfo& type = info(dtype);
  if (type.block > 1) return (elements + type.block - 1) / type.block * type.block_bytes;
  return (elements * type.bits + 7) / 8;
}

uint64_t stored_elements(DType dtype, uint64_t bytes) {
  const DTypeInfo& type = info(dtype);
  if (type.block > 1) return bytes / type.block_bytes * type.block;
  return is_packed(dtype) ? bytes * 8 / type.bits : bytes / item_bytes(dtype);
}

std::optional<DType> dtype_named(std::string_view name) {
  for (const DTypeInfo& type : kTypes)
    if (type.name == name) return type.dtype;
  return std::nullopt;
}

DType coarser(DType a, DType b) {
  // An integer is exact, so against a float the float sets the tolerance.
  const int bits_a = info(a).mantissa_bits;
  const int bits_b = info(b).mantissa_bits;
  if (bits_a < 0 || bits_b < 0) return bits_a < 0 ? b : a;
  return bits_b < bits_a ? b : a;
}

const float* f8_table(DType dtype) {
  static const std::array<float, 256> tables[] = {
      make_f8_table(DType::f8_e4m3), make_f8_table(DType::f8_e5m2),
      make_f8_table(DType::f8_e4m3fnuz), make_f8_table(DType::f8_e5m2fnuz),
      make_f8_table(DType::f8_e8m0)};
  return tables[static_cast<int>(dtype) - static_cast<int>(DType::f8_e4m3)].data();
}

double decode_one(DType dtype, const std::byte* element) {
  double parts[2] = {};
  decode(dtype, element, 1, parts);
  return parts[0];
}

void decode(DType dtype, const std::byte* elements, std::size_t count, double* values) {
  switch (dtype) {
    case DType::f64:
      return decode_as<double>(elements, count, values);
    case DType::f32:
      return decode_as<float>(elements, count, values);
    case DType::f16:
      return decode_16(f16_value, elements, count, values);
    case DType::bf16:
      return decode_16(bf16_value, elements, count, values);
    case DType::f8_e4m3:
    case DType::f8_e5m2:
    case DType::f8_e4m3fnuz:
    case DType::f8_e5m2fnuz:
    case DType::f8_e8m0: {
      const float* table = f8_table(dtype);
      for (std::size_t i = 0; i < count; ++i) values[i] = table[std::to_integer<int>(elements[i])];
      return;
    }
    case DType::f6_e2m3:
      return decode_small({2, 3, 1}, elements, count, values);
    case DType::f6_e3m2:
      return decode_small({3, 2, 3}, elements, count, values);
    case DType::f4_e2m1:
      return decode_small({2, 1, 1}, elements, count, values);
    case DType::i4:
    case DType::i2:
      return decode_small_signed(info(dtype).bits, elements, count, values);
    case DType::u8:
    case DType::u4:
    case DType::u2:
      return decode_as<uint8_t>(elements, count, values);
    case DType::i64:
      return decode_as<int64_t>(elements, count, values);
    case DType::i32:
      return decode_as<int32_t>(elements, count, values);
    case DType::i16:
      return decode_as<int16_t>(elements, count, values);
    case DType::i8:
      return decode_as<int8_t>(elements, count, values);
    case DType::u64:
      return decode_as<uint64_t>(elements, count, values);
    case DType::u32:
      return decode_as<uint32_t>(elements, count, values);
    case DType::u16:
      return decode_as<uint16_t>(elements, count, values);
    case DType::boolean:
      for (std::size_t i = 0; i < count; ++i) values[i] = elements[i] != std::byte{0};
      return;
    case DType::c64:
      return decode_as<float>(elements, 2 * count, values);
    case DType::c128:
      return decode_as<double>(elements, 2 * count, values);
    default:  // Blocks, which are read as f32.
      return decode_as<float>(elements, count, values);
  }
}

void swap_bytes(DType dtype, std::byte* elements, std::size_t count) {
  std::size_t size = item_bytes(dtype);
  if (is_complex(dtype)) size /= 2, count *= 2;
  if (size < 2) return;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t low = 0, high = size - 1; low < high; ++low, --high)
      std::swap(elements[i * size + low], elements[i * size + high]);
}

bool can_encode(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

void encode(DType dtype, const double* values, std::size_t count, std::byte* elements) {
  const int fraction_bits = info(dtype).mantissa_bits;
  if (dtype == DType::f64) {
    encode_as<double>(values, count, elements, [](double value) { return value; });
  } else if (dtype == DType::f32) {
    encode_as<float>(values, count, elements, [](double v) { return static_cast<float>(v); });
  } else {
    encode_as<uint16_t>(values, count, elements,
                        [&](double value) { return rounded_to_16(value, fraction_bits); });
  }
}

}  // namespace tensordiff
