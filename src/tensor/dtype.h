// The element types a tensor can have, as one table: adding a type is adding a row.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/byte_source.h"

namespace tensordiff {

// clang-format off
enum class DType : uint8_t {
  f64, f32, f16, bf16,
  f8_e4m3, f8_e5m2, f8_e4m3fnuz, f8_e5m2fnuz, f8_e8m0,
  f6_e2m3, f6_e3m2, f4_e2m1,
  i64, i32, i16, i8, i4, i2, u64, u32, u16, u8, u4, u2, boolean,
  c64, c128,
  // Blocks of elements that share their scales, by the names of GGUF: see tensor/blocks.h.
  q4_0, q4_1, q5_0, q5_1, q8_0, q2_k, q3_k, q4_k, q5_k, q6_k, q8_k,
  iq4_nl, iq4_xs, tq1_0, tq2_0, mxfp4, nvfp4, q1_0, q2_0,
  // Blocks too, but what their values are is in code books that we do not have.
  iq1_s, iq1_m, iq2_xxs, iq2_xs, iq2_s, iq3_xxs, iq3_s,
  // Levels whose scales are tensors of their own: see Packed in tensor/tensor.h.
  f8_e4m3_scaled, f8_e5m2_scaled, int8_scaled, int4_scaled, int3_scaled, int2_scaled, nf4, fp4,
};
// clang-format on

enum class Kind : uint8_t { floating, signed_int, unsigned_int, boolean, complex };

struct DTypeInfo {
  DType dtype;
  std::string_view name;
  Kind kind;
  uint8_t bits;          // Of one element as stored; less than 8 for packed types. In blocks: 32.
  int8_t mantissa_bits;  // Stored bits of the fraction, of the parts for complex; -1: no float.
  double rtol;           // Default tolerance of a pair whose coarser type is this one; in blocks:
  double atol;           // the step between two levels, as a share of the block's largest value.
  uint16_t block = 1;    // Elements of one block, and the bytes that it takes.
  uint16_t block_bytes = 0;
};

const DTypeInfo& info(DType dtype);
inline std::string_view name_of(DType dtype) { return info(dtype).name; }
std::optional<DType> dtype_named(std::string_view name);

inline bool is_float(DType dtype) { return info(dtype).kind == Kind::floating; }
inline bool is_complex(DType dtype) { return info(dtype).kind == Kind::complex; }
inline bool is_integer(DType dtype) { return !is_float(dtype) && !is_complex(dtype); }
// Bytes of one element once it is read: packed types (f6, f4) are unpacked to a byte each, blocks
// to an f32 each.
inline std::size_t item_bytes(DType dtype) { return (info(dtype).bits + 7) / 8; }
inline bool is_packed(DType dtype) { return info(dtype).bits < 8; }
inline bool is_in_blocks(DType dtype) { return info(dtype).block > 1; }
// Whether the elements lie in the file as they are read.
inline bool is_plain(DType dtype) { return !is_packed(dtype) && !is_in_blocks(dtype); }
// Types that are listed and compared byte by byte, because their values cannot be had.
inline bool is_undecoded(DType dtype) { return dtype >= DType::iq1_s && dtype <= DType::iq3_s; }
// Types that are never stored as such: each part of a view of one is Packed.
inline bool is_made(DType dtype) { return dtype >= DType::f8_e4m3_scaled; }

// Bytes that so many elements (at most 2^40) are stored in, and elements that fit in so many bytes.
uint64_t stored_bytes(DType dtype, uint64_t elements);
uint64_t stored_elements(DType dtype, uint64_t bytes);

// Of two types, the one that rounds more: it sets the tolerance of a pair.
DType coarser(DType a, DType b);

// One stored element as a float64; the real part of a complex one. Integers beyond 2^53 round.
double decode_one(DType dtype, const std::byte* element);

// `count` elements that lie next to each other, as float64. Complex ones give two values each.
void decode(DType dtype, const std::byte* elements, std::size_t count, double* values);

// Whether encode() knows the type.
bool can_encode(DType dtype);

// `count` values rounded to nearest, ties to even: f64, f32, f16 or bf16.
void encode(DType dtype, const double* values, std::size_t count, std::byte* elements);

// Reverses the bytes of each of `count` elements (of each part of complex ones) in place.
void swap_bytes(DType dtype, std::byte* elements, std::size_t count);

// The value of each 8-bit pattern of an f8 type.
const float* f8_table(DType dtype);

}  // namespace tensordiff
