#include "digest/linear_hash.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

#include "compare/kernels/decode.h"
#include "compare/measure.h"
#include "compare/metrics.h"
#include "compare/reduce.h"

namespace tensordiff {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kPrime = (uint64_t{1} << 61) - 1;
// Fixed for good, since digests last. The first hexadecimal digits of pi behind the point.
constexpr uint64_t kRows[] = {0x0243f6a8885a308dU, 0x04093822299f31d0U};
constexpr uint64_t kColumns[] = {0x13198a2e03707344U, 0x082efa98ec4e6c89U};
// Powers that are kept: a sum of so many products of 32 and 61 bits fits into 128.
constexpr std::size_t kPowers = 4096;
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

  explicit Powers(const uint64_t (&bases)[2]) {
    for (std::size_t lane = 0; lane < 2; ++lane) {
      uint64_t power = 1;
      for (uint64_t& each : of[lane]) each = power, power = times(power, bases[lane]);
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

uint32_t canonical(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t size = bits << 1;
  return size == 0 ? 0 : size > 0xff000000U ? 0x7fc00000U : bits;
}

uint64_t canonical(double value) {
  const float narrow = static_cast<float>(value);
  if (static_cast<double>(narrow) == value || std::isnan(value)) return canonical(narrow);
  return reduced(std::bit_cast<uint64_t>(value));
}

// The elements as numbers of the field, and whether each has at most 32 bits.
class Numbers {
 public:
  explicit Numbers(const Reader& reader)
      : reader_(reader),
        dtype_(reader.view().dtype),
        narrow_(!is_complex(dtype_) && kernels::fits_float(dtype_)) {}

  bool narrow() const { return narrow_; }

  void read(uint64_t first, std::size_t count) {
    if (narrow_) {
      const std::byte* raw = reader_.raw(first, count, buffer_);
      floats_.resize(count), small_.resize(count);
      kernels::decode(dtype_, raw, count, floats_.data());
      for (std::size_t i = 0; i < count; ++i) small_[i] = canonical(floats_[i]);
      return;
    }
    const std::size_t parts = is_complex(dtype_) ? 2 : 1;
    doubles_.resize(count * parts), large_.resize(count);
    reader_.components(first, count, doubles_.data());
    for (std::size_t i = 0; i < count; ++i) {
      large_[i] = canonical(doubles_[i * parts]);
      if (parts == 2) large_[i] = plus(large_[i], times(canonical(doubles_[i * 2 + 1]), kRows[1]));
    }
  }

  // The sum of `count` of them, from `first` on, with the powers from the first one on.
  LinearHash sum(std::size_t first, std::size_t count, const Powers& powers) const {
    Wide sums[2] = {0, 0};
    if (narrow_) {
      const uint32_t* values = small_.data() + first;
      for (std::size_t i = 0; i < count; ++i) {
        sums[0] += Wide(powers.of[0][i]) * values[i];
        sums[1] += Wide(powers.of[1][i]) * values[i];
      }
    } else {
      for (std::size_t i = 0; i < count; ++i)
        for (std::size_t lane = 0; lane < 2; ++lane)
          sums[lane] += times(powers.of[lane][i], large_[first + i]);
    }
    return {{reduced(sums[0]), reduced(sums[1])}};
  }

 private:
  const Reader& reader_;
  DType dtype_;
  bool narrow_;
  std::vector<std::byte> buffer_;
  std::vector<float> floats_;
  std::vector<uint32_t> small_;
  std::vector<double> doubles_;
  std::vector<uint64_t> large_;
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

// Adds elements [first, first + count) of a tensor whose rows have `columns` elements each.
void add_block(Numbers& numbers, uint64_t first, std::size_t count, uint64_t columns, bool vector,
               LinearHash& hash) {
  const uint64_t(&inner)[2] = vector ? kRows : kColumns;
  const Powers& powers = vector ? row_powers() : column_powers();
  uint64_t row = first / columns;
  uint64_t of_row[2] = {power(kRows[0], row), power(kRows[1], row)};
  for (std::size_t done = 0; done < count;) {
    const uint64_t column = (first + done) % columns;
    const std::size_t next = std::min({count - done, std::size_t{columns - column}, kPowers});
    const LinearHash part = numbers.sum(done, next, powers);
    for (std::size_t lane = 0; lane < 2; ++lane) {
      uint64_t factor = of_row[lane];
      if (column > 0) factor = times(factor, power(inner[lane], column));
      hash.lanes[lane] = plus(hash.lanes[lane], times(part.lanes[lane], factor));
    }
    done += next;
    if (column + next == columns)
      for (std::size_t lane = 0; lane < 2; ++lane) of_row[lane] = times(of_row[lane], kRows[lane]);
  }
}

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
        const std::size_t count = std::min<uint64_t>(kBlockElements, elements - first);
        Numbers numbers(reader);
        numbers.read(first, count);
        add_block(numbers, first, count, columns, vector, total.hash);
        total.moments.merge(measure_one(reader, first, count));
      });
  if (!reader.intact()) return Error("the file was cut short while it was read");
  return Hashed{totals.hash, stats_from(totals.moments)};
}

}  // namespace tensordiff
