#include "diagnose/operators/planes.h"

#include "align/view.h"
#include "tensor/reader.h"

namespace tensordiff::operators {
namespace {

constexpr uint64_t kHeldMax = uint64_t{1} << 20;  // Values: 8 MB.

// +1 or −1, by the position alone.
double sign_at(uint64_t position) {
  uint64_t x = position + 0x9e3779b97f4a7c15U;  // The mixer of splitmix64.
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return ((x ^ (x >> 31)) & 1) == 0 ? 1 : -1;
}

}  // namespace

std::optional<Plane> plane_of(const View& view, const Extent& extent, Layout layout) {
  if (is_complex(view.dtype) || view.parts.empty() || view.shape.size() < 2) return std::nullopt;
  Plane plane;
  plane.extents.layout = layout;
  if (layout == Layout::channels) {
    const std::size_t rank = view.shape.size();
    if (rank < 3) return std::nullopt;
    std::vector<uint64_t> order = {0};
    for (uint64_t axis = 2; axis < rank; ++axis) order.push_back(axis);
    order.push_back(1);
    plane.view = permuted(view, order);
  } else {
    const TokenView tokens = by_tokens(view, layout == Layout::plain ? Extent{} : extent);
    plane.view = tokens.view;
    plane.extents.features = tokens.features;
    if (tokens.axis) plane.extents.rows_by_axis = {tokens.batch, tokens.tokens};
  }
  if (plane.extents.rows_by_axis.empty()) {
    const Shape& shape = plane.view.shape;
    if (shape.size() < 2) return std::nullopt;
    plane.extents.rows_by_axis.assign(shape.begin(), shape.end() - 1);
    plane.extents.features = shape.back();
  }
  return plane;
}

const std::vector<double>& PlaneValues::all() const {
  if (held_) return *held_;
  held_.emplace();
  const Result<Reader> reader = Reader::open(plane_.view);
  if (!reader.ok()) return *held_;
  held_->resize(extents().rows() * extents().features);
  reader.value().values(0, held_->size(), held_->data());
  if (!reader.value().intact()) held_->clear();
  return *held_;
}

Block PlaneValues::at(const Grid& grid, double unit) const {
  const uint64_t rows = extents().rows(), features = extents().features;
  Block block{grid.columns.empty() ? features : grid.columns.size()};
  const bool small = rows * features <= kHeldMax;
  std::optional<Reader> reader;
  if (!small) {
    Result<Reader> opened = Reader::open(plane_.view);
    if (!opened.ok()) return {};
    reader = std::move(opened).value();
  } else if (all().empty()) {
    return {};
  }
  std::vector<double> line(features);
  block.values.reserve(grid.rows.size() * block.features);
  for (const uint64_t row : grid.rows) {
    if (row >= rows) return {};
    const double* values = small ? all().data() + row * features : line.data();
    if (!small) reader->values(row * features, features, line.data());
    for (uint64_t i = 0; i < block.features; ++i) {
      const uint64_t column = grid.columns.empty() ? i : grid.columns[i];
      const double off = unit == 0 ? 0 : unit * sign_at(row * features + column);
      block.values.push_back(values[column] * (1 + off));
    }
  }
  if (reader && !reader->intact()) return {};
  return block;
}

}  // namespace tensordiff::operators
