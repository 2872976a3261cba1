#include "compare/measure.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "compare/kernels/decode.h"
#include "compare/ulp.h"

namespace tensordiff {
namespace {

constexpr std::size_t kTile = kTileElements;
constexpr std::size_t kVectorMax = 64;  // No vector has more elements.

// The buffers of one thread. Nothing in them outlives a tile, but for the gathered blocks.
struct Scratch {
  alignas(64) float f32_a[kTile], f32_b[kTile];
  alignas(64) double f64_a[2 * kTile], f64_b[2 * kTile];  // Complex values have two parts.
  long double exact_a[kTile], exact_b[kTile];
  std::vector<std::byte> block_a, block_b;
};

Scratch& scratch() {
  thread_local Scratch buffers;
  return buffers;
}

bool is_narrow(DType dtype) { return is_float(dtype) && info(dtype).bits <= 16; }

// One tile as stored.
struct RawTile {
  const std::byte* a;
  const std::byte* b;
  DType dtype_a;
  DType dtype_b;
  kernels::Tile tile;

  std::size_t count() const { return tile.count; }
  // Distances are also counted in steps of the coarser type, between floats.
  bool counts_steps() const { return have_steps(dtype_a, dtype_b); }
  DType steps() const { return coarser(dtype_a, dtype_b); }
};

// Both floats without a copy where the elements already are that, aligned.
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
  uint64_t agreeing = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const bool finite = std::isfinite(a[i]) && std::isfinite(b[i]);
    agreeing += !finite && (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])));
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
  sums.agreeing = agreeing;
  sums.mismatch = count - tile.count - agreeing;
  sums.ulp = raw.counts_steps() ? ulp_between(raw.steps(), finite_a, finite_b, tile.count) : 0;
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

// The steps between the pairs of a tile. The kernel may have counted those of floats.
template <class T>
uint64_t steps_between(const RawTile& raw, const T* a, const T* b, uint64_t of_floats) {
  const bool alike = raw.dtype_a == raw.dtype_b;
  if (of_floats != kStepsUnknown && raw.steps() == DType::f32) return of_floats;
  // bf16 is the upper half of a float.
  if (of_floats != kStepsUnknown && alike && raw.steps() == DType::bf16) return of_floats >> 16;
  return alike && are_stored_steps(raw.dtype_a) ? ulp_stored(raw.dtype_a, raw.a, raw.b, raw.count())
                                                : ulp_between(raw.steps(), a, b, raw.count());
}

template <class T>
Sums diff_tile(const RawTile& raw, const T* a, const T* b) {
  const std::size_t count = raw.count();
  if (Moments moments; moments_if_same(raw, a, b, moments))
    return sums_of_equal(moments, raw.tile.first);
  Sums sums;
  const std::size_t done = kernels::diff(a, b, raw.tile, sums);
  if (!all_finite(a + done, count - done) || !all_finite(b + done, count - done))
    return diff_with_gaps(raw, a, b);
  add_rest(a, b, raw.tile, done, sums);
  const uint64_t of_floats = done == count ? sums.ulp : kStepsUnknown;
  const bool apart = raw.counts_steps() && sums.equal < count;
  sums.ulp = apart ? steps_between(raw, a, b, of_floats) : 0;
  return sums;
}

Sums measure_tile(Arithmetic arithmetic, const RawTile& raw) {
  Scratch& buffers = scratch();
  const std::size_t count = raw.count();
  switch (arithmetic) {
    case Arithmetic::f32:
      return diff_tile(raw, as_float(raw.dtype_a, raw.a, count, buffers.f32_a),
                       as_float(raw.dtype_b, raw.b, count, buffers.f32_b));
    case Arithmetic::f64:
      return diff_tile(raw, as_double(raw.dtype_a, raw.a, count, buffers.f64_a),
                       as_double(raw.dtype_b, raw.b, count, buffers.f64_b));
    case Arithmetic::exact64:
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

// |b - a| of each pair, as the kernels take it.
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

}  // namespace

Arithmetic arithmetic_for(DType a, DType b) {
  if (is_complex(a) || is_complex(b)) return Arithmetic::complex;
  const auto wide = [](DType dtype) { return dtype == DType::i64 || dtype == DType::u64; };
  if (wide(a) || wide(b)) return Arithmetic::exact64;
  return kernels::fits_float(a) && kernels::fits_float(b) ? Arithmetic::f32 : Arithmetic::f64;
}

Meter::Meter(const Reader& a, const Reader& b, Threshold limit)
    : walk_(a, b),
      dtype_a_(a.view().dtype),
      dtype_b_(b.view().dtype),
      limit_(limit),
      arithmetic_(arithmetic_for(dtype_a_, dtype_b_)) {}

Sums Meter::measure(uint64_t block, const kernels::Best& best) const {
  const auto elements = walk_.fetch(block, scratch().block_a, scratch().block_b);
  // Out of order, an equal maximum may still come first in the tensor, so it is not left out.
  const auto beaten = [&](double most) { return walk_.flat() ? most : std::nextafter(most, -1.0); };
  TileMaxima maxima;
  Sums sums;
  const std::size_t item_a = item_bytes(dtype_a_);
  const std::size_t item_b = item_bytes(dtype_b_);
  const bool narrow = is_narrow(dtype_a_) && is_narrow(dtype_b_);
  for (std::size_t done = 0; done < elements.count; done += kTile) {
    const kernels::Best so_far{beaten(std::max(sums.max_abs, best.max_abs)),
                               std::max(sums.max_rel, best.max_rel),
                               std::max(sums.rtol_needed, best.rtol_needed)};
    const std::byte* at_a = elements.a + done * item_a;
    const std::byte* at_b = elements.b + done * item_b;
    const kernels::Ahead ahead{at_a + kTile * item_a, at_b + kTile * item_b, item_a, item_b};
    const kernels::Tile tile{
        std::min(kTile, elements.count - done), done, limit_, so_far, ahead, narrow};
    const Sums part = measure_tile(arithmetic_, {at_a, at_b, dtype_a_, dtype_b_, tile});
    maxima[done / kTile] = part.max_abs;
    sums.merge(part);
  }
  if (walk_.flat()) {
    sums.max_abs_at = walk_.position(block, sums.max_abs_at);
  } else if (sums.max_abs >= best.max_abs && sums.max_abs >= 0) {
    sums.max_abs_at = first_position(block, elements, maxima);
  }
  return sums;
}

// The first position, in row-major order, at which a block of another order has its maximum.
uint64_t Meter::first_position(uint64_t block, const Traversal::Block& elements,
                               const TileMaxima& maxima) const {
  const std::size_t tiles = (elements.count + kTile - 1) / kTile;
  const double most = *std::max_element(maxima.begin(), maxima.begin() + tiles);
  uint64_t first = UINT64_MAX;
  for (std::size_t tile = 0; tile < tiles; ++tile) {
    if (maxima[tile] != most) continue;
    const std::size_t done = tile * kTile;
    const RawTile raw{elements.a + done * item_bytes(dtype_a_),
                      elements.b + done * item_bytes(dtype_b_),
                      dtype_a_,
                      dtype_b_,
                      {std::min(kTile, elements.count - done), done, limit_, {}, {}, false}};
    double apart[kTile];
    distances(arithmetic_, raw, apart);
    // Nothing in a box comes before its first element.
    if (done == 0 && apart[0] == most) return walk_.position(block, 0);
    for (std::size_t i = 0; i < raw.count(); ++i)
      if (apart[i] == most) first = std::min(first, walk_.position(block, done + i));
  }
  return first;
}

Moments measure_one(const Reader& reader, uint64_t first, std::size_t count) {
  const DType dtype = reader.view().dtype;
  Scratch& buffers = scratch();
  const std::byte* elements = reader.raw(first, count, buffers.block_a);
  Moments moments;
  for (std::size_t done = 0; done < count; done += kTile) {
    const std::size_t tile = std::min(kTile, count - done);
    const std::byte* at = elements + done * item_bytes(dtype);
    if (kernels::fits_float(dtype)) {
      moments.merge(moments_of(as_float(dtype, at, tile, buffers.f32_a), tile));
    } else if (is_complex(dtype)) {
      decode(dtype, at, tile, buffers.f64_b);
      moments.merge(moments_of(buffers.f64_b, 2 * tile));
    } else {
      moments.merge(moments_of(as_double(dtype, at, tile, buffers.f64_b), tile));
    }
  }
  return moments;
}

}  // namespace tensordiff
