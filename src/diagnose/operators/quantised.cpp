#include "diagnose/operators/quantised.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace tensordiff::operators {
namespace {

constexpr int kWidths[] = {8, 4};
// What shares a scale: the whole tensor, one output, or so many inputs of one output.
constexpr uint64_t kWhole = 0, kRow = 1;
constexpr uint64_t kBlocks[] = {kWhole, kRow, 32, 64, 128};

// In float32, as converters do it: what is near the middle of two levels goes the same way.
void round_to_levels(std::span<double> values, double most, int width) {
  const float levels = std::exp2(static_cast<float>(width - 1)) - 1;
  const float scale = static_cast<float>(most) / levels;
  if (scale == 0) return;
  for (double& value : values)
    value =
        std::clamp(std::nearbyint(static_cast<float>(value) / scale), -levels - 1, levels) * scale;
}

double most_of(std::span<const double> values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

std::string_view shared_by(uint64_t block) {
  return block == kWhole ? "the whole tensor" : (block == kRow ? "each output" : "each block");
}

}  // namespace

std::vector<Quantised> quantised_ways(const TablePtr& weight) {
  std::vector<Quantised> ways;
  const std::optional<double> largest = weight->largest();
  if (!largest) return ways;
  for (const int width : kWidths)
    for (const uint64_t block : kBlocks) {
      if (block > kRow && weight->columns() % block != 0) continue;
      const auto change = [=](std::span<double> row) {
        const uint64_t size = block > kRow ? block : row.size();
        for (uint64_t at = 0; at < row.size(); at += size)
          round_to_levels(row.subspan(at, size),
                          block == kWhole ? *largest : most_of(row.subspan(at, size)), width);
      };
      ways.push_back({std::make_shared<Table>(weight, change),
                      fmt::format("B's weight is quantized to {} bits, with one scale for {}",
                                  width, shared_by(block)),
                      std::log2(std::size(kWidths) * std::size(kBlocks)),
                      {{"bits", static_cast<double>(width)}}});
    }
  return ways;
}

}  // namespace tensordiff::operators
