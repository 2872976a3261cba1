#include "compare/ulp.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "compare/kernels/decode.h"
#include "compare/kernels/tile.h"

namespace tensordiff {
namespace {

constexpr uint32_t kSign = 1U << 31;
constexpr uint32_t kFinite = 0x7f80;  // Buckets of the floats of one sign that are finite.

// The finite values of a type of 8 bits or less in ascending order: a value's place among them
// counts its steps.
std::vector<float> ladder(DType dtype) {
  std::vector<float> values;
  for (unsigned bits = 0; bits < 1U << info(dtype).bits; ++bits) {
    const auto code = static_cast<std::byte>(bits);
    const double value = decode_one(dtype, &code);
    if (std::isfinite(value)) values.push_back(static_cast<float>(value));
  }
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());  // -0 is 0.
  return values;
}

// The place in the ladder that a float is nearest to, by its upper 16 bits; of two that are equally
// near, the upper one. That is exact: what lies halfway between two neighbours has at most six
// significant bits, so a step never changes inside of a bucket. Of negative floats the boundary
// belongs to the bucket nearer to zero, which is why bucket_of() counts from one below.
using Places = std::array<uint16_t, 1 << 16>;

uint32_t bucket_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return (bits - (bits > kSign ? 1 : 0)) >> 16;
}

std::unique_ptr<const Places> places_of(const std::vector<float>& values) {
  auto places = std::make_unique<Places>();
  const auto middle = [&](std::size_t i) {
    return (double{values[i]} + double{values[i + 1]}) / 2;
  };
  const auto last = values.size() - 1;
  const auto upper = std::ranges::lower_bound(values, 0.0F) - values.begin();
  auto start = std::min(static_cast<std::size_t>(upper), last);
  while (start > 0 && 0 < middle(start - 1)) --start;
  std::size_t place = start;
  for (uint32_t bucket = 0; bucket < kFinite; ++bucket) {
    const double value = std::bit_cast<float>(bucket << 16);
    while (place < last && value >= middle(place)) ++place;
    (*places)[bucket] = static_cast<uint16_t>(place);
  }
  place = start;
  (*places)[kSign >> 16] = static_cast<uint16_t>(place);
  for (uint32_t bucket = kSign >> 16; bucket < (kSign >> 16) + kFinite; ++bucket) {
    const double value = std::bit_cast<float>((bucket << 16) + 1);
    while (place > 0 && value < middle(place - 1)) --place;
    (*places)[bucket] = static_cast<uint16_t>(place);
  }
  return places;
}

const Places& ladder_of(DType dtype) {
  static std::array<std::once_flag, 32> once;
  static std::array<std::unique_ptr<const Places>, 32> all;
  const auto at = static_cast<std::size_t>(dtype);
  std::call_once(once[at], [&] { all[at] = places_of(ladder(dtype)); });
  return *all[at];
}

// A mapped file may hold words at odd addresses: then they are copied.
const uint16_t* aligned(const std::byte* words, std::size_t count,
                        std::array<uint16_t, kTileElements>& copy) {
  if (reinterpret_cast<uintptr_t>(words) % alignof(uint16_t) == 0)
    return reinterpret_cast<const uint16_t*>(words);
  std::memcpy(copy.data(), words, 2 * count);
  return copy.data();
}

}  // namespace

uint64_t ulp_between(DType dtype, const float* a, const float* b, std::size_t count) {
  if (info(dtype).bits >= 32) return kernels::ulp(a, b, count);
  if (info(dtype).bits == 16) {
    std::array<uint16_t, kTileElements> bits_a;
    std::array<uint16_t, kTileElements> bits_b;
    kernels::encode16(dtype, a, count, bits_a.data());
    kernels::encode16(dtype, b, count, bits_b.data());
    return kernels::ulp16(bits_a.data(), bits_b.data(), count);
  }
  const Places& places = ladder_of(dtype);
  int most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int steps = int{places[bucket_of(a[i])]} - int{places[bucket_of(b[i])]};
    most = std::max(most, std::abs(steps));
  }
  return static_cast<uint64_t>(most);
}

uint64_t ulp_between(DType dtype, const double* a, const double* b, std::size_t count) {
  if (dtype == DType::f64) return kernels::ulp(a, b, count);
  std::array<float, kTileElements> narrow_a;
  std::array<float, kTileElements> narrow_b;
  const auto narrow = [](double value) { return static_cast<float>(value); };
  std::transform(a, a + count, narrow_a.begin(), narrow);
  std::transform(b, b + count, narrow_b.begin(), narrow);
  return ulp_between(dtype, narrow_a.data(), narrow_b.data(), count);
}

// Types of 8 and 16 bits whose bits are a sign and steps from zero.
bool are_stored_steps(DType dtype) {
  const bool has_sign = dtype != DType::f8_e8m0;
  return is_float(dtype) && has_sign && (info(dtype).bits == 8 || info(dtype).bits == 16);
}

uint64_t ulp_stored(DType dtype, const std::byte* a, const std::byte* b, std::size_t count) {
  if (item_bytes(dtype) == 1)
    return kernels::ulp8(reinterpret_cast<const uint8_t*>(a), reinterpret_cast<const uint8_t*>(b),
                         count);
  std::array<uint16_t, kTileElements> words_a;
  std::array<uint16_t, kTileElements> words_b;
  return kernels::ulp16(aligned(a, count, words_a), aligned(b, count, words_b), count);
}

}  // namespace tensordiff
