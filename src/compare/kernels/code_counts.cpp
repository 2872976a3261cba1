#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "compare/kernels/code_counts.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

#include <algorithm>
#include <map>

#include "compare/kernels/code_counts.h"

HWY_BEFORE_NAMESPACE();
namespace tensordiff::kernels {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Codes = hn::ScalableTag<uint8_t>;
using Counts = hn::ScalableTag<uint16_t>;
constexpr std::size_t kTables = CodeCounts::kTables, kPairs = CodeCounts::kPairs;
constexpr std::size_t kApart = CodeCounts::kTablesApart;

// Adds whole vectors of pairs to the tables; returns how many pairs those are.
std::size_t add_pairs(const uint8_t* a, const uint8_t* b, std::size_t count, uint16_t* tables) {
#if HWY_TARGET == HWY_SCALAR
  (void)a, (void)b, (void)count, (void)tables;
  return 0;
#else
  const Codes codes;
  const std::size_t lanes = hn::Lanes(codes);
  HWY_ALIGN uint16_t places[hn::MaxLanes(codes)];
  auto* bytes = reinterpret_cast<uint8_t*>(places);
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto of_a = hn::LoadU(codes, a + i);
    const auto apart = hn::Xor(of_a, hn::LoadU(codes, b + i));
    hn::Store(hn::InterleaveLower(codes, of_a, apart), codes, bytes);
    hn::Store(hn::InterleaveUpper(codes, of_a, apart), codes, bytes + lanes);
    for (std::size_t k = 0; k < lanes; k += kTables) {
      HWY_UNROLL(8)
      for (std::size_t table = 0; table < kTables; ++table)
        ++tables[table * kApart + places[k + table]];
    }
  }
  return i;
#endif
}

// Calls found(place) for each place where a count may not be zero.
template <class Found>
HWY_INLINE void each_used(const uint16_t* tables, const Found& found) {
  const Counts counts;
  const std::size_t lanes = hn::Lanes(counts);
  for (std::size_t place = 0; place < kPairs; place += lanes) {
    const auto at = [&](std::size_t table)
                        HWY_ATTR { return hn::Load(counts, tables + table * kApart + place); };
    auto any = at(0);
    for (std::size_t table = 1; table < kTables; ++table) any = hn::Or(any, at(table));
    if (hn::AllTrue(counts, hn::Eq(any, hn::Zero(counts)))) continue;
    for (std::size_t k = 0; k < lanes; ++k) found(place + k);
  }
}

// Takes the counts out of the tables, which are empty then.
std::size_t take_counts(uint16_t* tables, CodePair* out) {
  std::size_t pairs = 0;
  each_used(tables, [&](std::size_t place) {
    uint32_t count = 0;
    for (std::size_t table = 0; table < kTables; ++table) {
      count += tables[table * kApart + place];
      tables[table * kApart + place] = 0;
    }
    const auto a = static_cast<uint8_t>(place);
    out[pairs] = {a, static_cast<uint8_t>(a ^ place >> 8), count};
    pairs += count > 0;
  });
  return pairs;
}

// Codes in the order of their values, as unsigned numbers.
template <CodeOrder kOrder>
HWY_INLINE hn::Vec<Codes> ordered(hn::Vec<Codes> codes) {
  const Codes d;
  const auto sign = hn::Set(d, 0x80);
  if constexpr (kOrder == CodeOrder::unsigned_int) return codes;
  if constexpr (kOrder == CodeOrder::signed_int) return hn::Xor(codes, sign);
  const auto below_zero = hn::Eq(hn::And(codes, sign), sign);
  return hn::Xor(codes, hn::IfThenElse(below_zero, hn::Set(d, 0xff), sign));
}

template <CodeOrder kOrder>
HWY_INLINE uint8_t most_apart(const uint8_t* a, const uint8_t* b, std::size_t count) {
  const Codes d;
  auto most = hn::Zero(d);
  for (std::size_t i = 0; i < count; i += hn::Lanes(d)) {
    const auto x = ordered<kOrder>(hn::LoadU(d, a + i));
    const auto y = ordered<kOrder>(hn::LoadU(d, b + i));
    most = hn::Max(most, hn::Sub(hn::Max(x, y), hn::Min(x, y)));
  }
  HWY_ALIGN uint8_t lanes[hn::MaxLanes(d)];
  hn::Store(most, d, lanes);
  return *std::max_element(lanes, lanes + hn::Lanes(d));
}

// `count` is a multiple of code_lanes().
uint8_t apart(CodeOrder order, const uint8_t* a, const uint8_t* b, std::size_t count) {
  switch (order) {
    case CodeOrder::unsigned_int:
      return most_apart<CodeOrder::unsigned_int>(a, b, count);
    case CodeOrder::signed_int:
      return most_apart<CodeOrder::signed_int>(a, b, count);
    default:
      return most_apart<CodeOrder::sign_and_size>(a, b, count);
  }
}
std::size_t code_lanes() { return hn::Lanes(Codes()); }

}  // namespace HWY_NAMESPACE
}  // namespace tensordiff::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tensordiff::kernels {

HWY_EXPORT(add_pairs);
HWY_EXPORT(take_counts);
HWY_EXPORT(apart);
HWY_EXPORT(code_lanes);

CodeCounts::CodeCounts() : tables_(std::make_unique<Tables>()), found_(kPairs) {}

std::span<const CodePair> CodeCounts::count(const uint8_t* a, const uint8_t* b, std::size_t count) {
  uint16_t* counts = tables_->counts;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(add_pairs)(a, b, count, counts);
  for (std::size_t i = done; i < count; ++i)
    ++counts[i % kTables * kTablesApart + (static_cast<std::size_t>(a[i] ^ b[i]) << 8 | a[i])];
  return {found_.data(), HWY_DYNAMIC_DISPATCH(take_counts)(counts, found_.data())};
}

uint8_t codes_apart(CodeOrder order, const uint8_t* a, const uint8_t* b, std::size_t count) {
  const std::size_t lanes = HWY_DYNAMIC_DISPATCH(code_lanes)();
  const std::size_t whole = count / lanes * lanes;
  return std::max(HWY_DYNAMIC_DISPATCH(apart)(order, a, b, whole),
                  reference::codes_apart(order, a + whole, b + whole, count - whole));
}

std::vector<CodePair> reference::count_codes(const uint8_t* a, const uint8_t* b,
                                             std::size_t count) {
  std::map<std::pair<uint8_t, uint8_t>, uint32_t> counts;
  for (std::size_t i = 0; i < count; ++i) ++counts[{static_cast<uint8_t>(a[i] ^ b[i]), a[i]}];
  std::vector<CodePair> pairs;
  for (const auto& [place, each] : counts)
    pairs.push_back({place.second, static_cast<uint8_t>(place.first ^ place.second), each});
  return pairs;
}

uint8_t reference::codes_apart(CodeOrder order, const uint8_t* a, const uint8_t* b,
                               std::size_t count) {
  const auto rank = [&](uint8_t code) -> int {
    if (order == CodeOrder::unsigned_int) return code;
    if (order == CodeOrder::signed_int) return static_cast<int8_t>(code);
    return code < 0x80 ? code : 0x7f - code;
  };
  int most = 0;
  for (std::size_t i = 0; i < count; ++i) most = std::max(most, std::abs(rank(a[i]) - rank(b[i])));
  return static_cast<uint8_t>(most);
}

}  // namespace tensordiff::kernels
#endif  // HWY_ONCE
