#include "diagnose/operators/windows.h"

#include <fmt/format.h>

#include <algorithm>

namespace tensordiff::operators {

std::optional<uint64_t> Windows::under(const Extents& in, const Extents& out, uint64_t row,
                                       uint64_t place) const {
  const std::size_t axes = kernel.size();
  uint64_t step = 1, found = 0;
  for (std::size_t axis = axes; axis-- > 0;) {
    const uint64_t out_size = out.rows_by_axis[axis + 1], in_size = in.rows_by_axis[axis + 1];
    const auto at =
        static_cast<int64_t>(row % out_size * stride + place % kernel[axis] * dilation) - padding;
    if (at < 0 || at >= static_cast<int64_t>(in_size)) return std::nullopt;
    found += static_cast<uint64_t>(at) * step;
    step *= in_size;
    row /= out_size;
    place /= kernel[axis];
  }
  return found + row * step;
}

uint64_t Windows::places() const {
  uint64_t product = 1;
  for (const uint64_t size : kernel) product *= size;
  return product;
}

std::string Windows::text() const {
  return fmt::format("stride {}, padding {} in front, dilation {}", stride, padding, dilation);
}

std::vector<Windows> windows_for(const Extents& in, const Extents& out,
                                 const std::vector<uint64_t>& kernel) {
  std::vector<Windows> found;
  if (in.rows_by_axis.size() != kernel.size() + 1 ||
      in.rows_by_axis.size() != out.rows_by_axis.size() ||
      in.rows_by_axis[0] != out.rows_by_axis[0])
    return found;
  const uint64_t most = *std::ranges::max_element(kernel);
  for (const uint64_t dilation : {1, 2, 3, 4, 6})
    for (const uint64_t stride : {uint64_t{1}, uint64_t{2}, uint64_t{3}, uint64_t{4}, uint64_t{5},
                                  uint64_t{8}, uint64_t{16}, most}) {
      for (uint64_t padding = 0; padding <= dilation * (most - 1) || padding == 0; ++padding) {
        bool fits = true;
        for (std::size_t axis = 0; axis < kernel.size() && fits; ++axis) {
          const uint64_t size = in.rows_by_axis[axis + 1],
                         reach = dilation * (kernel[axis] - 1) + 1;
          const auto gives = [&](uint64_t all) {
            return all >= reach && (all - reach) / stride + 1 == out.rows_by_axis[axis + 1];
          };
          fits =
              gives(size + 2 * padding) || gives(size + 2 * padding + 1) || gives(size + padding);
        }
        if (fits) found.push_back({kernel, stride, dilation, static_cast<int64_t>(padding)});
      }
      if (most == 1 && stride == most) break;
    }
  return found;
}

}  // namespace tensordiff::operators
