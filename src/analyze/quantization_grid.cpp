#include "analyze/quantization_grid.h"

#include <algorithm>
#include <cmath>

#include "analyze/group_sums.h"
#include "analyze/patch.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr std::size_t kLeastValues = 8;  // Fewer lie on a grid by chance.
constexpr double kNearlyAll = 0.9;
constexpr std::size_t kSegment = 256;  // The largest block that is tried, below a row.
constexpr std::size_t kSegments = 24;
constexpr std::size_t kRowMax = 4096;

// Euclid's algorithm for numbers that are only nearly multiples.
double common_step(double x, double y, double slack) {
  while (y > slack) {
    const double rest = std::fmod(x, y);
    x = y;
    // Just short of a multiple is a multiple.
    y = std::min(rest, y - rest) <= slack ? 0 : rest;
  }
  return x;
}

double precision_of(DType dtype) {
  const int bits = info(dtype).mantissa_bits;
  return bits < 0 ? 0 : std::ldexp(1.0, -bits - 1);
}

// How many of the sets lie on a grid each, and what these are like.
std::optional<BlockGrid> judge(const std::vector<std::vector<double>>& sets, double precision,
                               std::string block) {
  BlockGrid found{std::move(block), 0, 0};
  std::vector<double> steps;
  std::size_t told = 0;
  for (const std::vector<double>& values : sets) {
    const auto [least, most] = std::ranges::minmax(values);
    if (least == most) continue;  // Zeros all over say nothing.
    ++told;
    const std::optional<Grid> grid = grid_of(values, precision);
    if (!grid) continue;
    steps.push_back(grid->step);
    found.levels = std::max(found.levels, grid->levels);
  }
  if (steps.empty() || static_cast<double>(steps.size()) < kNearlyAll * static_cast<double>(told))
    return std::nullopt;
  std::ranges::sort(steps);
  found.step = steps[steps.size() / 2];
  return found;
}

std::vector<std::vector<double>> cut(const std::vector<std::vector<double>>& sets,
                                     std::size_t size) {
  std::vector<std::vector<double>> pieces;
  for (const std::vector<double>& set : sets)
    for (std::size_t at = 0; at + size <= set.size(); at += size)
      pieces.emplace_back(set.begin() + static_cast<std::ptrdiff_t>(at),
                          set.begin() + static_cast<std::ptrdiff_t>(at + size));
  return pieces;
}

std::vector<double> values_at(const Reader& reader, uint64_t first, std::size_t count) {
  std::vector<double> values(count);
  reader.values(first, count, values.data());
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.empty()) values.push_back(0);
  return values;
}

}  // namespace

std::optional<Grid> grid_of(std::span<const double> values, double precision) {
  if (values.size() < kLeastValues) return std::nullopt;
  std::vector<double> sorted(values.begin(), values.end());
  std::ranges::sort(sorted);
  const double range = sorted.back() - sorted.front();
  const double slack = 4 * precision * std::max(std::abs(sorted.front()), std::abs(sorted.back()));
  double step = 0;
  for (std::size_t i = 1; i < sorted.size(); ++i) {
    const double gap = sorted[i] - sorted[i - 1];
    if (gap <= slack) continue;
    step = step == 0 ? gap : common_step(std::max(step, gap), std::min(step, gap), slack);
    if (range > static_cast<double>(kGridLevelsMax) * step) return std::nullopt;
  }
  // Steps that are no wider than the rounding of the values are not to be seen.
  if (step <= 4 * slack) return std::nullopt;
  return Grid{step, static_cast<uint64_t>(std::llround(range / step)) + 1};
}

Result<std::optional<BlockGrid>> find_blocks(const View& view) {
  const uint64_t elements = view.elements();
  const Extents extents = extents_of(view.shape);
  if (is_complex(view.dtype) || elements < kLeastValues) return std::optional<BlockGrid>();
  const double precision = precision_of(view.dtype);
  const Reader reader = TRY(Reader::open(view));

  std::vector<std::vector<double>> rows, segments;
  const auto width = static_cast<std::size_t>(std::min<uint64_t>(extents.columns, kRowMax));
  for (const uint64_t row : spread(extents.rows, kSegments / 3))
    rows.push_back(values_at(reader, row * extents.columns, width));
  std::vector<std::vector<double>> whole(1);
  for (const std::vector<double>& row : rows)
    whole[0].insert(whole[0].end(), row.begin(), row.end());
  if (std::optional<BlockGrid> found = judge(whole, precision, "tensor")) return found;
  if (std::optional<BlockGrid> found = judge(rows, precision, "row")) return found;

  const uint64_t in_all = elements / kSegment;
  for (const uint64_t segment : spread(in_all, kSegments))
    segments.push_back(values_at(reader, segment * kSegment, kSegment));
  if (!reader.intact()) return Error("the file was cut short while it was read");
  for (const std::size_t size : {256, 128, 64, 32, 16})
    if (auto found = judge(cut(segments, size), precision, std::to_string(size))) return found;
  return std::optional<BlockGrid>();
}

}  // namespace tensordiff
