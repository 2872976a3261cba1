#include "digest/linear_hash.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "compare/kernels/decode.h"
#include "compare/kernels/limb_sums.h"
#include "compare/metrics.h"
#include "compare/reduce.h"
#include "compare/tile_sums.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
// Fixed for good, since digests last. The first hexadecimal digits of pi behind the point.
constexpr uint64_t kRows[] = {0x0243f6a8885a308dU, 0x04093822299f31d0U};
constexpr uint64_t kColumns[] = {0x13198a2e03707344U, 0x082efa98ec4e6c89U};
// Powers that are kept.
constexpr std::size_t kPowers = kernels::LimbedPowers::kCount;
// How many elements one task reads; blocks of 65,536, as compare() does.
constexpr uint64_t kChunkBlocks = 16;

constexpr uint64_t reduced(Wide value) {
  uint64_t low = static_cast<uint64_t>(value & kPrime) +
                 static_cast<uint64_t>((value >> 61) & kPrime) +
                 static_cast<uint64_t>(value >> 122);
  low = (low & kPrime) + (low >> 61);
  return low >= kPrime ? low - kPrime : low;
}
constexpr uint64_t times(uint64_t a, uint64_t b) { return reduced(Wide(a) * b); }
constexpr uint64_t plus(uint64_t a, uint64_t b) { return reduced(Wide(a) + b); }

uint64_t power(uint64_t base, uint64_t exponent) {
  uint64_t result = 1;
  for (; exponent > 0; exponent >>= 1, base = times(base, base))
    if (exponent & 1) result = times(result, base);
  return result;
}

struct Powers {
  std::array<std::array<uint64_t, kPowers>, 2> of;
  kernels::LimbedPowers limbed;
  std::array<uint64_t, 2> next = {1, 1};  // Behind the last.

  explicit Powers(const uint64_t (&bases)[2]) {
    for (std::size_t lane = 0; lane < 2; ++lane) {
      for (std::size_t i = 0; i < kPowers; ++i) {
        of[lane][i] = next[lane];
        limbed.set(lane, i, next[lane]);
        next[lane] = times(next[lane], bases[lane]);
      }
    }
  }
};
const Powers& row_powers() {
  static const Powers powers(kRows);
  return powers;
}
const Powers& column_powers() {
  static const Powers powers(kColumns);
  return powers;
}

// Whether a float holds all of it.
bool is_narrow(double value) {
  return static_cast<double>(static_cast<float>(value)) == value || std::isnan(value);
}

uint32_t narrow_bits(double value) { return std::bit_cast<uint32_t>(static_cast<float>(value)); }

uint64_t canonical(double value) {
  return is_narrow(value) ? kernels::digest_bits(narrow_bits(value))
                          : reduced(std::bit_cast<uint64_t>(value));
}

// The elements of a tile as numbers of the field.
class Numbers {
 public:
  explicit Numbers(const Reader& reader)
      : reader_(reader),
        dtype_(reader.view().dtype),
        floats_only_(!is_complex(dtype_) && kernels::fits_float(dtype_)) {}

  // Returns what they are like.
  Moments read(uint64_t first, std::size_t count) {
    const std::byte* raw = reader_.raw(first, count, buffer_);
    if (floats_only_)
      read_floats(raw, count);
    else
      read_doubles(raw, count);
    return measure_elements(dtype_, raw, count);
  }

  // The sum of `count` of them, from `first` on, with the powers from the first one on.
  LinearHash sum(std::size_t first, std::size_t count, const Powers& powers) const {
    LinearHash hash;
    if (bits_) {
      const kernels::LimbSums sums = kernels::sum_limbs(bits_ + first, count, powers.limbed);
      for (std::size_t lane = 0; lane < 2; ++lane) {
        Wide sum = 0;
        for (std::size_t limb = 0; limb < kernels::LimbedPowers::kLimbs; ++limb)
          sum += Wide(sums.of[lane][limb]) << (kernels::LimbedPowers::kBits * limb);
        hash.lanes[lane] = reduced(sum);
      }
      return hash;
    }
    for (std::size_t lane = 0; lane < 2; ++lane)
      for (std::size_t i = 0; i < count; ++i)
        hash.lanes[lane] = plus(hash.lanes[lane], times(powers.of[lane][i], large_[first + i]));
    return hash;
  }

 private:
  // Their bits, where they lie or decoded.
  void read_floats(const std::byte* raw, std::size_t count) {
    const bool floats = item_bytes(dtype_) == sizeof(float);  // f32, and blocks.
    if (floats && reinterpret_cast<uintptr_t>(raw) % alignof(uint32_t) == 0) {
      bits_ = reinterpret_cast<const uint32_t*>(raw);
      return;
    }
    kernels::decode(dtype_, raw, count, floats_.data());
    std::memcpy(small_.data(), floats_.data(), count * sizeof(float));
    bits_ = small_.data();
  }

  // Those of small integers, and of floats that were stored as doubles, have bits of floats too.
  void read_doubles(const std::byte* raw, std::size_t count) {
    const bool complex = is_complex(dtype_);
    decode(dtype_, raw, count, doubles_.data());
    const auto end = doubles_.begin() + static_cast<std::ptrdiff_t>(count);
    bits_ = nullptr;
    if (!complex && std::all_of(doubles_.begin(), end, is_narrow)) {
      std::transform(doubles_.begin(), end, small_.begin(), narrow_bits);
      bits_ = small_.data();
      return;
    }
    for (std::size_t i = 0; i < count; ++i)
      large_[i] = complex ? plus(canonical(doubles_[2 * i]),
                                 times(canonical(doubles_[2 * i + 1]), kRows[1]))
                          : canonical(doubles_[i]);
  }

  const Reader& reader_;
  DType dtype_;
  bool floats_only_;
  std::vector<std::byte> buffer_;
  const uint32_t* bits_ = nullptr;  // Of floats, where these hold all of the tile.
  std::array<float, kTileElements> floats_;
  std::array<uint32_t, kTileElements> small_;
  std::array<double, 2 * kTileElements> doubles_;  // Complex values have two parts.
  std::array<uint64_t, kTileElements> large_;
};

struct Totals {
  LinearHash hash;
  Moments moments;

  void merge(const Totals& later) {
    for (std::size_t lane = 0; lane < 2; ++lane)
      hash.lanes[lane] = plus(hash.lanes[lane], later.hash.lanes[lane]);
    moments.merge(later.moments);
  }
};

// Adds the elements of a tensor whose rows have `columns` elements each, from the position `first`
// on, in their order.
class Adder {
 public:
  Adder(uint64_t first, uint64_t columns, bool vector)
      : columns_(columns),
        column_(first % columns),
        inner_(vector ? row_powers() : column_powers()) {
    const uint64_t(&bases)[2] = vector ? kRows : kColumns;
    for (std::size_t lane = 0; lane < 2; ++lane) {
      of_row_[lane] = power(kRows[lane], first / columns);
      factor_[lane] = times(of_row_[lane], power(bases[lane], column_));
    }
  }

  void add(const Numbers& numbers, std::size_t count, LinearHash& hash) {
    for (std::size_t done = 0; done < count;) {
      const std::size_t next = std::min({count - done, std::size_t{columns_ - column_}, kPowers});
      const LinearHash part = numbers.sum(done, next, inner_);
      for (std::size_t lane = 0; lane < 2; ++lane)
        hash.lanes[lane] = plus(hash.lanes[lane], times(part.lanes[lane], factor_[lane]));
      done += next;
      advance(next);
    }
  }

 private:
  void advance(std::size_t count) {
    column_ += count;
    const bool row_ends = column_ == columns_;
    if (row_ends) column_ = 0;
    for (std::size_t lane = 0; lane < 2; ++lane) {
      if (row_ends) of_row_[lane] = times(of_row_[lane], kRows[lane]);
      const uint64_t step = count == kPowers ? inner_.next[lane] : inner_.of[lane][count];
      factor_[lane] = row_ends ? of_row_[lane] : times(factor_[lane], step);
    }
  }

  uint64_t columns_, column_;
  const Powers& inner_;
  std::array<uint64_t, 2> of_row_;
  std::array<uint64_t, 2> factor_;
};

void append(LinearHash& hash, const LinearHash& later, const uint64_t (&bases)[2], uint64_t count) {
  for (std::size_t lane = 0; lane < 2; ++lane)
    hash.lanes[lane] = plus(hash.lanes[lane], times(later.lanes[lane], power(bases[lane], count)));
}

}  // namespace

void LinearHash::append_rows(const LinearHash& later, uint64_t rows) {
  append(*this, later, kRows, rows);
}

void LinearHash::append_columns(const LinearHash& later, uint64_t columns) {
  append(*this, later, kColumns, columns);
}

std::string hex_of(const LinearHash& hash) {
  return fmt::format("{:016x}{:016x}", hash.lanes[0], hash.lanes[1]);
}

std::optional<LinearHash> hash_of_hex(std::string_view text) {
  if (text.size() != 32) return std::nullopt;
  LinearHash hash;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t digit = std::string_view("0123456789abcdef").find(text[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    hash.lanes[i / 16] = hash.lanes[i / 16] << 4 | digit;
  }
  if (hash.lanes[0] >= kPrime || hash.lanes[1] >= kPrime) return std::nullopt;
  return hash;
}

Result<Hashed> hash_values(const View& view, const Shape& as) {
  if (is_undecoded(view.dtype)) return Error("values of {} are not decoded", name_of(view.dtype));
  const Reader reader = TRY(Reader::open(view));
  const uint64_t elements = view.elements();
  if (element_count(as) != elements) return Error("its shape does not fit its elements");
  const bool vector = as.size() <= 1;
  const uint64_t columns =
      vector || elements == 0 ? std::max<uint64_t>(elements, 1) : elements / as[0];
  const uint64_t blocks = (elements + kBlockElements - 1) / kBlockElements;
  const Totals totals =
      reduce_blocks<Totals>(blocks, kChunkBlocks, {}, [&](uint64_t block, Totals& total) {
        const uint64_t first = block * kBlockElements;
        const uint64_t end = std::min(first + kBlockElements, elements);
        Numbers numbers(reader);
        Adder adder(first, columns, vector);
        Moments moments;
        for (uint64_t at = first; at < end; at += kTileElements) {
          const std::size_t count = std::min<uint64_t>(kTileElements, end - at);
          moments.merge(numbers.read(at, count));
          adder.add(numbers, count, total.hash);
        }
        total.moments.merge(moments);
      });
  if (!reader.intact()) return Error("the file was cut short while it was read");
  return Hashed{totals.hash, stats_from(totals.moments)};
}

}  // namespace tensordiff
