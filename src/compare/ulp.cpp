#include "compare/ulp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <vector>

#include "compare/kernels/decode.h"
#include "compare/kernels/tile.h"

namespace tensordiff {
namespace {

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

const std::vector<float>& ladder_of(DType dtype) {
  static const auto all = [] {
    std::array<std::vector<float>, 32> ladders;
    for (int i = 0; i < 32; ++i)
      if (const auto type = static_cast<DType>(i);
          type <= DType::c128 && is_float(type) && info(type).bits <= 8)
        ladders[static_cast<std::size_t>(i)] = ladder(type);
    return ladders;
  }();
  return all[static_cast<std::size_t>(dtype)];
}

int64_t nearest_step(const std::vector<float>& values, float value) {
  const auto above = std::ranges::lower_bound(values, value);
  if (above == values.begin()) return 0;
  const auto below = above - 1;
  const bool up = above != values.end() && *above - value <= value - *below;
  return (up ? above : below) - values.begin();
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
  const std::vector<float>& values = ladder_of(dtype);
  uint64_t most = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (a[i] == b[i]) continue;
    const int64_t steps = nearest_step(values, a[i]) - nearest_step(values, b[i]);
    most = std::max(most, static_cast<uint64_t>(std::abs(steps)));
  }
  return most;
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
