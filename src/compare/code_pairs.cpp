#include "compare/code_pairs.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "compare/ulp.h"

namespace tensordiff {
namespace {

kernels::CodeOrder order_of(DType dtype) {
  if (info(dtype).kind == Kind::signed_int) return kernels::CodeOrder::signed_int;
  return is_float(dtype) && dtype != DType::f8_e8m0 && info(dtype).bits == 8
             ? kernels::CodeOrder::sign_and_size
             : kernels::CodeOrder::unsigned_int;
}

const uint8_t* codes(const std::byte* elements) {
  return reinterpret_cast<const uint8_t*>(elements);
}

// NaN with NaN, or the same infinity.
bool agree(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

}  // namespace

CodePairs::CodePairs(DType dtype, Threshold limit)
    : limit_(limit), order_(order_of(dtype)), steps_(have_steps(dtype, dtype)) {
  for (std::size_t code = 0; code < 256; ++code) {
    const auto element = static_cast<std::byte>(code);
    // Types of fewer bits have no codes beyond their own.
    const bool known = code < (std::size_t{1} << info(dtype).bits);
    value_[code] = known ? decode_one(dtype, &element) : 0;
    tolerated_[code] = limit.atol + limit.rtol * std::abs(value_[code]);
    reciprocal_[code] = 1 / (std::abs(value_[code]) + 1e-8);
  }
  std::set<double> values;
  for (const double value : value_)
    if (std::isfinite(value)) values.insert(value);
  for (std::size_t code = 0; code < 256; ++code)
    rank_[code] = static_cast<int>(std::distance(values.begin(), values.lower_bound(value_[code])));
  for (std::size_t a = 0; a < 256; ++a) {
    for (std::size_t b = 0; b < 256; ++b) {
      const kernels::CodePair pair{static_cast<uint8_t>(a), static_cast<uint8_t>(b), 1};
      const bool within = !is_finite(pair) || distance(pair.a, pair.b) <= tolerated_[a];
      if (!within)
        apart_min_ =
            std::min<int>(apart_min_, kernels::reference::codes_apart(order_, &pair.a, &pair.b, 1));
    }
  }
}

bool CodePairs::is_finite(const kernels::CodePair& pair) const {
  return std::isfinite(value_[pair.a]) && std::isfinite(value_[pair.b]);
}

double CodePairs::distance(uint8_t a, uint8_t b) const { return std::abs(value_[b] - value_[a]); }

bool CodePairs::may_exceed(const std::byte* a, const std::byte* b, std::size_t count) const {
  return kernels::codes_apart(order_, codes(a), codes(b), count) >= apart_min_;
}

Moments CodePairs::moments(const std::array<uint64_t, 256>& counts) const {
  Moments result;
  double sum = 0;
  for (std::size_t code = 0; code < 256; ++code) {
    const double value = value_[code];
    if (counts[code] == 0) continue;
    if (std::isnan(value)) result.nan += counts[code];
    if (std::isinf(value)) result.inf += counts[code];
    if (!std::isfinite(value)) continue;
    result.count += counts[code];
    result.zeros += value == 0 ? counts[code] : 0;
    result.min = std::min(result.min, value);
    result.max = std::max(result.max, value);
    sum += static_cast<double>(counts[code]) * value;
  }
  if (result.count == 0) return result;
  result.mean = sum / static_cast<double>(result.count);
  for (std::size_t code = 0; code < 256; ++code) {
    const double off = value_[code] - result.mean;
    if (counts[code] > 0 && std::isfinite(off))
      result.m2 += static_cast<double>(counts[code]) * off * off;
  }
  return result;
}

void CodePairs::add_sides(Pairs pairs, Sums& sums) const {
  std::array<uint64_t, 256> of_a = {}, of_b = {};
  for (const kernels::CodePair& pair : pairs) {
    of_a[pair.a] += pair.count;
    of_b[pair.b] += pair.count;
  }
  sums.a = moments(of_a);
  sums.b = moments(of_b);
}

void CodePairs::add_products(Pairs pairs, Sums& sums) const {
  for (const kernels::CodePair& pair : pairs) {
    if (!is_finite(pair)) {
      (agree(value_[pair.a], value_[pair.b]) ? sums.agreeing : sums.mismatch) += pair.count;
      continue;
    }
    sums.count += pair.count;
    sums.mean_a += pair.count * value_[pair.a];
    sums.mean_b += pair.count * value_[pair.b];
  }
  sums.values = sums.count;
  if (sums.count == 0) return;
  sums.mean_a /= static_cast<double>(sums.count);
  sums.mean_b /= static_cast<double>(sums.count);
  for (const kernels::CodePair& pair : pairs) {
    if (!is_finite(pair)) continue;
    const double off_a = value_[pair.a] - sums.mean_a, off_b = value_[pair.b] - sums.mean_b;
    sums.m2_a += pair.count * off_a * off_a;
    sums.m2_b += pair.count * off_b * off_b;
    sums.co += pair.count * off_a * off_b;
  }
}

void CodePairs::add_distances(Pairs pairs, Sums& sums) const {
  for (const kernels::CodePair& pair : pairs) {
    if (!is_finite(pair)) continue;
    const double apart = distance(pair.a, pair.b);
    sums.max_abs = std::max(sums.max_abs, apart);
    if (apart == 0) {
      sums.equal += pair.count;
      continue;
    }
    const double count = pair.count;
    const double size_a = std::abs(value_[pair.a]);
    sums.d_abs += count * apart;
    sums.d_squared += count * apart * apart;
    sums.d_relative += count * apart * reciprocal_[pair.a];
    sums.exceeding += apart > tolerated_[pair.a] ? pair.count : 0;
    sums.max_rel = std::max(sums.max_rel, apart / std::max(size_a, std::abs(value_[pair.b])));
    if (apart > limit_.atol)
      sums.rtol_needed = std::max(sums.rtol_needed, (apart - limit_.atol) / size_a);
    if (steps_)
      sums.ulp = std::max<uint64_t>(sums.ulp,
                                    static_cast<uint64_t>(std::abs(rank_[pair.a] - rank_[pair.b])));
  }
}

void CodePairs::add_positions(const uint8_t* a, const uint8_t* b, std::size_t count,
                              Sums& sums) const {
  const auto first = [&](const auto& wanted) {
    std::size_t i = 0;
    while (i < count && !wanted(a[i], b[i])) ++i;
    return i;
  };
  if (sums.max_abs >= 0)
    sums.max_abs_at = first([&](uint8_t x, uint8_t y) { return distance(x, y) == sums.max_abs; });
  for (const bool agreeing : {false, true}) {
    if ((agreeing ? sums.agreeing : sums.mismatch) == 0) continue;
    (agreeing ? sums.agreeing_at : sums.mismatch_at) = first([&](uint8_t x, uint8_t y) {
      return !is_finite({x, y, 1}) && agree(value_[x], value_[y]) == agreeing;
    });
  }
}

Sums CodePairs::measure(const std::byte* a, const std::byte* b, std::size_t count,
                        const kernels::Best& best) const {
  thread_local kernels::CodeCounts counts;
  const Pairs pairs = counts.count(codes(a), codes(b), count);
  Sums sums;
  add_sides(pairs, sums);
  add_products(pairs, sums);
  add_distances(pairs, sums);
  if (sums.max_abs <= best.max_abs) sums.max_abs = -1;
  add_positions(codes(a), codes(b), count, sums);
  return sums;
}

}  // namespace tensordiff
