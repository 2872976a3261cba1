// Measures one tile: decodes it and runs the kernels that fit the two types.

#include "compare/tile_sums.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compare/kernels/decode.h"
#include "compare/ulp.h"

namespace tensordiff {
namespace {

constexpr std::size_t kTile = kTileElements;
constexpr std::size_t kVectorMax = 64;  // No vector has more elements.

// The buffers of one thread. Nothing in them outlives a tile.
struct Scratch {
  alignas(64) float f32_a[kTile], f32_b[kTile];
  alignas(64) double f64_a[2 * kTile], f64_b[2 * kTile];  // Complex values have two parts.
  long double exact_a[kTile], exact_b[kTile];
};

Scratch& scratch() {
  thread_local Scratch buffers;
  return buffers;
}

// Floats without a copy where the elements already are that, aligned.
const float* as_float(DType dtype, const std::byte* elements, std::size_t count, float* buffer) {
  const bool aligned = reinterpret_cast<uintptr_t>(elements) % alignof(float) == 0;
  if ((dtype == DType::f32 || is_in_blocks(dtype)) && aligned)
    return reinterpret_cast<const float*>(elements);
  kernels::decode(dtype, elements, count, buffer);
  return buffer;
}

const double* as_double(DType dtype, const std::byte* elements, std::size_t count, double* buffer) {
  const bool aligned = reinterpret_cast<uintptr_t>(elements) % alignof(double) == 0;
  if (dtype == DType::f64 && aligned) return reinterpret_cast<const double*>(elements);
  if (!aligned || !kernels::decode_integers(dtype, elements, count, buffer))
    decode(dtype, elements, count, buffer);
  return buffer;
}

void decode_exact(DType dtype, const std::byte* elements, std::size_t count, long double* values) {
  const bool is_signed = dtype == DType::i64;
  if (!is_signed && dtype != DType::u64) {
    double* narrow = scratch().f64_a;
    decode(dtype, elements, count, narrow);
    std::copy(narrow, narrow + count, values);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    uint64_t bits;
    std::memcpy(&bits, elements + 8 * i, 8);
    values[i] = is_signed ? static_cast<long double>(static_cast<int64_t>(bits))
                          : static_cast<long double>(bits);
  }
}

// The two sides as doubles where these hold them; false where some value is too large.
bool decode_small(const RawTile& raw) {
  const auto decoded = [&](DType dtype, const std::byte* elements, double* values) {
    const bool aligned = reinterpret_cast<uintptr_t>(elements) % alignof(double) == 0;
    return aligned && kernels::decode_integers(dtype, elements, raw.count(), values);
  };
  return decoded(raw.dtype_a, raw.a, scratch().f64_a) &&
         decoded(raw.dtype_b, raw.b, scratch().f64_b);
}

void decode_complex(DType dtype, const std::byte* elements, std::size_t count, double* parts) {
  decode(dtype, elements, count, parts);
  if (is_complex(dtype)) return;
  for (std::size_t i = count; i-- > 0;) {
    parts[2 * i] = parts[i];
    parts[2 * i + 1] = 0;
  }
}

// Values that are the same on both sides: all that is left to find out is what they are.
Sums sums_of_equal(const Moments& moments, uint64_t first) {
  Sums sums;
  sums.a = sums.b = moments;
  sums.count = sums.values = sums.equal = moments.count;
  sums.mean_a = sums.mean_b = moments.mean;
  sums.m2_a = sums.m2_b = sums.co = moments.m2;
  sums.max_abs = 0;
  sums.max_abs_at = first;
  return sums;
}

// The plain kernel on values of type T.
Sums plain(const double* a, const double* b, const kernels::Tile& tile) {
  return kernels::reference::diff(a, b, tile);
}
Sums plain(const float* a, const float* b, const kernels::Tile& tile) {
  Scratch& buffers = scratch();
  std::copy(a, a + tile.count, buffers.f64_a);
  std::copy(b, b + tile.count, buffers.f64_b);
  return kernels::reference::diff(buffers.f64_a, buffers.f64_b, tile);
}

Moments plain(const double* values, std::size_t count) {
  return kernels::reference::moments(values, count);
}
Moments plain(const float* values, std::size_t count) {
  Scratch& buffers = scratch();
  std::copy(values, values + count, buffers.f64_a);
  return kernels::reference::moments(buffers.f64_a, count);
}

// The vector kernel on what it takes, the plain one on the rest.
template <class T>
Moments moments_of(const T* values, std::size_t count) {
  Moments moments;
  const std::size_t done = kernels::moments(values, count, moments);
  if (done < count) moments.merge(plain(values + done, count - done));
  return moments;
}

template <class T>
bool all_finite(const T* values, std::size_t count) {
  return std::all_of(values, values + count, [](T value) { return std::isfinite(value); });
}

// The plain kernel on what the vector kernel left over.
template <class T>
void add_rest(const T* a, const T* b, kernels::Tile tile, std::size_t done, Sums& sums) {
  if (done == tile.count) return;
  tile.count -= done;
  tile.first += done;
  sums.merge(plain(a + done, b + done, tile));
}

// Counts the values that are not finite and leaves the finite ones in `kept`; returns how many.
template <class T>
std::size_t keep_finite(const T* values, std::size_t count, T* kept, Moments& moments) {
  std::size_t finite = 0;
  for (std::size_t i = 0; i < count; ++i) {
    kept[finite] = values[i];
    finite += std::isfinite(values[i]);
    moments.nan += std::isnan(values[i]);
  }
  moments.inf = count - finite - moments.nan;
  return finite;
}

// A tile in which something is not finite: the pairs that are go through the kernel together, and
// so do the values of each side.
template <class T>
Sums diff_with_gaps(const RawTile& raw, const T* a, const T* b) {
  alignas(64) T finite_a[kTile] = {};
  alignas(64) T finite_b[kTile] = {};
  const std::size_t count = raw.count();
  Moments moments_a;
  Moments moments_b;
  moments_a.merge(moments_of(finite_a, keep_finite(a, count, finite_a, moments_a)));
  moments_b.merge(moments_of(finite_b, keep_finite(b, count, finite_b, moments_b)));

  kernels::Tile tile = raw.tile;
  tile.count = 0;
  Sums gaps;
  for (std::size_t i = 0; i < count; ++i) {
    const bool finite = std::isfinite(a[i]) && std::isfinite(b[i]);
    if (!finite) {
      const bool agree = a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]));
      ++(agree ? gaps.agreeing : gaps.mismatch);
      uint64_t& first = agree ? gaps.agreeing_at : gaps.mismatch_at;
      first = std::min<uint64_t>(first, raw.tile.first + i);
    }
    finite_a[tile.count] = a[i];
    finite_b[tile.count] = b[i];
    tile.count += finite;
  }
  Sums sums;
  add_rest(finite_a, finite_b, tile, kernels::diff(finite_a, finite_b, tile, sums), sums);
  if (sums.max_abs > tile.best.max_abs) {
    const auto apart = [&](std::size_t i) {
      return std::abs(static_cast<double>(b[i]) - static_cast<double>(a[i]));
    };
    std::size_t at = 0;
    while (!std::isfinite(a[at]) || !std::isfinite(b[at]) || apart(at) != sums.max_abs) ++at;
    sums.max_abs_at = raw.tile.first + at;
  }
  sums.a = moments_a;
  sums.b = moments_b;
  sums.agreeing = gaps.agreeing;
  sums.mismatch = gaps.mismatch;
  sums.agreeing_at = gaps.agreeing_at;
  sums.mismatch_at = gaps.mismatch_at;
  sums.ulp = have_steps(raw.dtype_a, raw.dtype_b)
                 ? ulp_between(coarser(raw.dtype_a, raw.dtype_b), finite_a, finite_b, tile.count)
                 : 0;
  return sums;
}

// The moments of a tile that both sides have, bit for bit, if all of it is finite.
template <class T>
bool moments_if_same(const RawTile& raw, const T* a, const T* b, Moments& moments) {
  if (raw.dtype_a != raw.dtype_b) return false;
  const std::size_t count = raw.count();
  const auto is_stored = [](const T* values, const std::byte* stored) {
    return reinterpret_cast<const std::byte*>(values) == stored;
  };
  std::size_t done = 0;
  if (is_stored(a, raw.a) && is_stored(b, raw.b)) {
    done = kernels::moments_if_same(a, b, count, moments);
    if (done == 0 && count >= kVectorMax) return false;
  }
  const std::size_t item = item_bytes(raw.dtype_a);
  if (std::memcmp(raw.a + done * item, raw.b + done * item, (count - done) * item) != 0)
    return false;
  if (done < count) moments.merge(moments_of(a + done, count - done));
  return moments.count == count;
}

// The steps between the pairs of a tile.
template <class T>
uint64_t steps_between(const RawTile& raw, const T* a, const T* b) {
  const bool stored = raw.dtype_a == raw.dtype_b && are_stored_steps(raw.dtype_a);
  return stored ? ulp_stored(raw.dtype_a, raw.a, raw.b, raw.count())
                : ulp_between(coarser(raw.dtype_a, raw.dtype_b), a, b, raw.count());
}

// What the vector kernel left to do. It may have counted steps of the type `counted`.
template <class T>
Sums finished(const RawTile& raw, const T* a, const T* b, std::size_t done, DType counted,
              Sums sums) {
  const std::size_t count = raw.count();
  if (!all_finite(a + done, count - done) || !all_finite(b + done, count - done))
    return diff_with_gaps(raw, a, b);
  const bool known =
      done == count && sums.ulp != kStepsUnknown && coarser(raw.dtype_a, raw.dtype_b) == counted;
  const uint64_t steps = sums.ulp;
  add_rest(a, b, raw.tile, done, sums);
  sums.ulp = 0;
  if (have_steps(raw.dtype_a, raw.dtype_b) && sums.equal < count)
    sums.ulp = known ? steps : steps_between(raw, a, b);
  return sums;
}

template <class T>
Sums diff_tile(const RawTile& raw, const T* a, const T* b) {
  if (Moments moments; moments_if_same(raw, a, b, moments))
    return sums_of_equal(moments, raw.tile.first);
  Sums sums;
  const std::size_t done = kernels::diff(a, b, raw.tile, sums);
  return finished(raw, a, b, done, DType::f32, sums);
}

// Whether the kernel for f16 and bf16 takes them as stored. Equal ones need less than it does.
bool are_words(const RawTile& raw) {
  const auto aligned = [](const std::byte* at) {
    return reinterpret_cast<uintptr_t>(at) % alignof(uint16_t) == 0;
  };
  return raw.dtype_a == raw.dtype_b && (raw.dtype_a == DType::f16 || raw.dtype_a == DType::bf16) &&
         aligned(raw.a) && aligned(raw.b) && std::memcmp(raw.a, raw.b, 2 * raw.count()) != 0;
}

Sums diff_words(const RawTile& raw) {
  Scratch& buffers = scratch();
  const kernels::Words words{reinterpret_cast<const uint16_t*>(raw.a),
                             reinterpret_cast<const uint16_t*>(raw.b), raw.dtype_a == DType::bf16,
                             buffers.f32_a, buffers.f32_b};
  Sums sums;
  const std::size_t done = kernels::diff(words, raw.tile, sums);
  return finished(raw, buffers.f32_a, buffers.f32_b, done, raw.dtype_a, sums);
}

}  // namespace

Arithmetic arithmetic_for(DType a, DType b) {
  if (is_complex(a) || is_complex(b)) return Arithmetic::complex;
  const auto wide = [](DType dtype) { return dtype == DType::i64 || dtype == DType::u64; };
  if (wide(a) || wide(b)) return Arithmetic::exact64;
  return kernels::fits_float(a) && kernels::fits_float(b) ? Arithmetic::f32 : Arithmetic::f64;
}

Sums measure_tile(Arithmetic arithmetic, const RawTile& raw) {
  Scratch& buffers = scratch();
  const std::size_t count = raw.count();
  switch (arithmetic) {
    case Arithmetic::f32:
      if (are_words(raw)) return diff_words(raw);
      return diff_tile(raw, as_float(raw.dtype_a, raw.a, count, buffers.f32_a),
                       as_float(raw.dtype_b, raw.b, count, buffers.f32_b));
    case Arithmetic::f64:
      return diff_tile(raw, as_double(raw.dtype_a, raw.a, count, buffers.f64_a),
                       as_double(raw.dtype_b, raw.b, count, buffers.f64_b));
    case Arithmetic::exact64:
      if (decode_small(raw)) return diff_tile(raw, buffers.f64_a, buffers.f64_b);
      decode_exact(raw.dtype_a, raw.a, count, buffers.exact_a);
      decode_exact(raw.dtype_b, raw.b, count, buffers.exact_b);
      return kernels::reference::diff(buffers.exact_a, buffers.exact_b, raw.tile);
    case Arithmetic::complex:
      break;
  }
  decode_complex(raw.dtype_a, raw.a, count, buffers.f64_a);
  decode_complex(raw.dtype_b, raw.b, count, buffers.f64_b);
  return kernels::reference::diff_complex(buffers.f64_a, buffers.f64_b, raw.tile);
}

void distances(Arithmetic arithmetic, const RawTile& raw, double* apart) {
  Scratch& buffers = scratch();
  const std::size_t count = raw.count();
  if (arithmetic == Arithmetic::exact64) {
    decode_exact(raw.dtype_a, raw.a, count, buffers.exact_a);
    decode_exact(raw.dtype_b, raw.b, count, buffers.exact_b);
    for (std::size_t i = 0; i < count; ++i)
      apart[i] = static_cast<double>(std::abs(buffers.exact_b[i] - buffers.exact_a[i]));
    return;
  }
  if (arithmetic == Arithmetic::complex) {
    decode_complex(raw.dtype_a, raw.a, count, buffers.f64_a);
    decode_complex(raw.dtype_b, raw.b, count, buffers.f64_b);
    for (std::size_t i = 0; i < count; ++i)
      apart[i] = std::hypot(buffers.f64_b[2 * i] - buffers.f64_a[2 * i],
                            buffers.f64_b[2 * i + 1] - buffers.f64_a[2 * i + 1]);
    return;
  }
  decode(raw.dtype_a, raw.a, count, buffers.f64_a);
  decode(raw.dtype_b, raw.b, count, buffers.f64_b);
  for (std::size_t i = 0; i < count; ++i) apart[i] = std::abs(buffers.f64_b[i] - buffers.f64_a[i]);
}

Moments measure_elements(DType dtype, const std::byte* elements, std::size_t count) {
  Scratch& buffers = scratch();
  if (kernels::fits_float(dtype))
    return moments_of(as_float(dtype, elements, count, buffers.f32_a), count);
  if (!is_complex(dtype))
    return moments_of(as_double(dtype, elements, count, buffers.f64_b), count);
  decode(dtype, elements, count, buffers.f64_b);
  return moments_of(buffers.f64_b, 2 * count);
}

}  // namespace tensordiff
