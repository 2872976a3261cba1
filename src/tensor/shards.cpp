#include "tensor/shards.h"

#include <algorithm>
#include <cmath>

#include "tensor/sample.h"

namespace tensordiff {
namespace {

constexpr std::size_t kSample = 256;

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::vector<double> sample_of(const View& view) {
  const Result<Reader> reader = Reader::open(view);
  if (!reader.ok()) return {};
  return values_at(reader.value(), sample_positions(view.elements(), kSample));
}

}  // namespace

std::vector<View> distinct_shards(const Tensor& tensor) {
  if (tensor.shards.empty()) return {tensor.view};
  std::vector<View> distinct;
  std::vector<std::vector<double>> samples;
  for (const View& shard : tensor.shards) {
    std::vector<double> sample = sample_of(shard);
    bool copy = false;
    for (std::size_t i = 0; i < distinct.size() && !copy && !sample.empty(); ++i)
      copy = distinct[i].shape == shard.shape && std::ranges::equal(samples[i], sample, same);
    if (copy) continue;
    distinct.push_back(shard);
    samples.push_back(std::move(sample));
  }
  return distinct;
}

}  // namespace tensordiff
