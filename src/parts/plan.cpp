#include "parts/plan.h"

#include <algorithm>
#include <numeric>

namespace tensordiff {
namespace {

// What a pair costs beside its bytes, so that many small pairs are shared out evenly, too. Assumed:
// it changes how even the parts are, and no result.
constexpr uint64_t kPairBytes = 65536;

uint64_t bytes_of(const Tensor& tensor, const std::optional<Section>& section) {
  uint64_t bytes = 0;
  for (const View& shard : tensor.shards) bytes += stored_bytes(shard.dtype, shard.elements());
  if (tensor.shards.empty()) bytes = tensor.bytes();
  if (!section || section->index >= section->elements.size()) return bytes;
  const double all = std::accumulate(section->elements.begin(), section->elements.end(), 0.0);
  const double share = static_cast<double>(section->elements[section->index]) / std::max(all, 1.0);
  return static_cast<uint64_t>(static_cast<double>(bytes) * share);
}

__extension__ using Wide = unsigned __int128;

}  // namespace

std::vector<uint64_t> costs_of(const Pairing& pairing) {
  std::vector<uint64_t> costs;
  costs.reserve(pairing.matching.pairs.size());
  // Sizes come from files. With this limit the sum of all of them cannot overflow.
  constexpr uint64_t kCostMax = uint64_t{1} << 56;
  for (const Pair& pair : pairing.matching.pairs) {
    const uint64_t a = bytes_of(pairing.a.tensors[pair.a], pair.section_a);
    const uint64_t b = bytes_of(pairing.b.tensors[pair.b], pair.section_b);
    costs.push_back(std::min(a, kCostMax) + std::min(b, kCostMax) + kPairBytes);
  }
  return costs;
}

std::vector<Slice> plan_part(std::span<const uint64_t> costs, const PartNumber& number) {
  Wide total = 0;
  for (const uint64_t cost : costs) total += cost;
  const Wide begin = total * (number.part - 1) / number.of, end = total * number.part / number.of;
  std::vector<Slice> slices;
  Wide at = 0;
  for (std::size_t pair = 0; pair < costs.size() && at < end; ++pair) {
    const uint64_t cost = costs[pair];
    const Wide first = std::max(at, begin), last = std::min(at + cost, end);
    if (first < last)
      slices.push_back(
          {pair, {static_cast<uint64_t>(first - at), static_cast<uint64_t>(last - at), cost}});
    at += cost;
  }
  return slices;
}

}  // namespace tensordiff
