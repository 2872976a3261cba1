#include "compare/pyramid.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include "align/view.h"
#include "base/parallel.h"
#include "base/text.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// What a cell gathers.
struct Cell {
  double most = 0;
  double sum = 0;
  uint64_t finite = 0;
  bool empty = true;

  void add(double value) {
    if (empty || std::isnan(value) || std::abs(value) > std::abs(most)) {
      if (!std::isnan(most)) most = value;
    }
    empty = false;
    if (!std::isfinite(value)) return;
    sum += value;
    ++finite;
  }

  // A run of values, nearly always all finite: then without a branch for each.
  void add(std::span<const double> values) {
    double low = values[0];
    double high = values[0];
    double total = 0;
    for (const double value : values) {
      low = std::min(low, value);
      high = std::max(high, value);
      total += value;
    }
    // A sum that is not finite has something in it that is not; of x and -x the first counts.
    if (!std::isfinite(total) || (low < 0 && -low == high)) {
      for (const double value : values) add(value);
      return;
    }
    const double largest = -low > high ? low : high;
    if (!std::isnan(most) && (empty || std::abs(largest) > std::abs(most))) most = largest;
    empty = false;
    sum += total;
    finite += values.size();
  }
};

// The two axes of the slice as a matrix.
View plane_of(View view, const Slice& slice) {
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis)
    if (axis != slice.row_axis && axis != slice.column_axis)
      view = narrowed(view, axis, slice.index[axis], 1);
  std::vector<uint64_t> order = {slice.row_axis, slice.column_axis};
  for (std::size_t axis = 0; axis < view.shape.size(); ++axis)
    if (axis != slice.row_axis && axis != slice.column_axis) order.push_back(axis);
  view = permuted(view, order);
  while (view.shape.size() > 2) view = squeezed(view, view.shape.size() - 1);
  return view;
}

Result<void> check(const Shape& shape, const Slice& slice) {
  if (slice.row_axis >= shape.size() || slice.column_axis >= shape.size() ||
      slice.row_axis == slice.column_axis)
    return Error("a slice needs two different axes of {}", shape_text(shape));
  if (slice.index.size() != shape.size())
    return Error("the index of a slice has {} axes, the tensor {}", slice.index.size(),
                 shape.size());
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    if (axis != slice.row_axis && axis != slice.column_axis && slice.index[axis] >= shape[axis])
      return Error("index {} lies outside axis {} of {}", slice.index[axis], axis,
                   shape_text(shape));
  return {};
}

// Reads runs of one layer of a plane.
class Plane {
 public:
  static Result<Plane> open(const AlignedPair& pair, const Slice& slice) {
    TRY(check(pair.a.shape, slice));
    Plane plane;
    plane.layer_ = slice.layer;
    plane.a_ = TRY(Reader::open(plane_of(pair.a, slice)).in("a"));
    plane.b_ = TRY(Reader::open(plane_of(pair.b, slice)).in("b"));
    return plane;
  }

  uint64_t rows() const { return a_.view().shape[0]; }
  uint64_t columns() const { return a_.view().shape[1]; }
  bool intact() const { return a_.intact() && b_.intact(); }

  void read(uint64_t row, uint64_t column, std::vector<double>& out) const {
    const uint64_t first = row * columns() + column;
    if (layer_ != Layer::distance) return read_side(layer_ == Layer::a ? a_ : b_, first, out);
    std::vector<double> other(out.size());
    read_side(a_, first, out);
    read_side(b_, first, other);
    for (std::size_t i = 0; i < out.size(); ++i) {
      const bool finite = std::isfinite(out[i]) && std::isfinite(other[i]);
      out[i] = finite ? std::abs(other[i] - out[i]) : std::numeric_limits<double>::quiet_NaN();
    }
  }

 private:
  // Of complex values the modulus.
  static void read_side(const Reader& reader, uint64_t first, std::vector<double>& out) {
    if (!is_complex(reader.view().dtype)) return reader.values(first, out.size(), out.data());
    std::vector<double> parts(2 * out.size());
    reader.values(first, out.size(), parts.data());
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = std::hypot(parts[2 * i], parts[2 * i + 1]);
  }

  Layer layer_ = Layer::distance;
  Reader a_, b_;
};

Picture empty_picture(const Rectangle& rectangle, uint64_t pool) {
  Picture picture;
  picture.pool = pool;
  picture.rows = (rectangle.rows + pool - 1) / pool;
  picture.columns = (rectangle.columns + pool - 1) / pool;
  picture.most.resize(picture.rows * picture.columns);
  picture.mean.resize(picture.rows * picture.columns);
  return picture;
}

// Fills one row of cells from the elements under it.
void pool_row(const Plane& plane, const Rectangle& rectangle, std::size_t cell_row,
              Picture& picture) {
  std::vector<Cell> cells(picture.columns);
  std::vector<double> values(rectangle.columns);
  const uint64_t first = cell_row * picture.pool;
  const uint64_t end = std::min(rectangle.rows, first + picture.pool);
  for (uint64_t row = first; row < end; ++row) {
    plane.read(rectangle.row + row, rectangle.column, values);
    std::span<const double> rest = values;
    for (Cell& cell : cells) {
      const std::size_t width = std::min<std::size_t>(picture.pool, rest.size());
      cell.add(rest.first(width));
      rest = rest.subspan(width);
    }
  }
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const Cell& cell = cells[i];
    const double mean = cell.finite ? cell.sum / static_cast<double>(cell.finite) : kNan;
    picture.most[cell_row * picture.columns + i] = static_cast<float>(cell.most);
    picture.mean[cell_row * picture.columns + i] = static_cast<float>(mean);
  }
}

Result<Picture> pool_plane(const Plane& plane, const Rectangle& rectangle, uint64_t pool) {
  Picture picture = empty_picture(rectangle, pool);
  for_each_index(picture.rows, [&](std::size_t row) { pool_row(plane, rectangle, row, picture); });
  if (!plane.intact()) return Error("the file was cut short while it was read");
  return picture;
}

// Half the size: each cell from 2 × 2 cells. Cells at the edge stand for fewer elements, which the
// mean of means would weigh too much; they are weighed by their area.
Picture halved(const Picture& fine, const Rectangle& whole) {
  Picture coarse = empty_picture(whole, fine.pool * 2);
  const auto side = [&](std::size_t cell, uint64_t size) {
    return static_cast<double>(std::min(fine.pool, size - cell * fine.pool));
  };
  for (std::size_t row = 0; row < coarse.rows; ++row) {
    for (std::size_t column = 0; column < coarse.columns; ++column) {
      Cell most;
      double sum = 0;
      double area = 0;
      for (std::size_t r = 2 * row; r < std::min(2 * row + 2, fine.rows); ++r) {
        for (std::size_t c = 2 * column; c < std::min(2 * column + 2, fine.columns); ++c) {
          const std::size_t at = r * fine.columns + c;
          most.add(fine.most[at]);
          if (std::isnan(fine.mean[at])) continue;
          const double weight = side(r, whole.rows) * side(c, whole.columns);
          sum += fine.mean[at] * weight;
          area += weight;
        }
      }
      coarse.most[row * coarse.columns + column] = static_cast<float>(most.most);
      coarse.mean[row * coarse.columns + column] = area > 0 ? static_cast<float>(sum / area) : kNan;
    }
  }
  return coarse;
}

}  // namespace

Result<Picture> pool(const AlignedPair& pair, const Slice& slice, const Rectangle& rectangle,
                     uint64_t pool) {
  const Plane plane = TRY(Plane::open(pair, slice));
  if (pool == 0 || !range_fits(rectangle.row, rectangle.rows, plane.rows()) ||
      !range_fits(rectangle.column, rectangle.columns, plane.columns()))
    return Error("the rectangle lies outside the slice of {} × {}", plane.rows(), plane.columns());
  if (rectangle.rows / pool > kPyramidCellsMax / (rectangle.columns / pool + 1))
    return Error("the picture would have more than {} cells", kPyramidCellsMax);
  return pool_plane(plane, rectangle, pool);
}

Result<std::vector<Picture>> pyramid(const AlignedPair& pair, const Slice& slice) {
  const Plane plane = TRY(Plane::open(pair, slice));
  const Rectangle whole{0, 0, plane.rows(), plane.columns()};
  uint64_t first = 1;
  const auto cells = [&](uint64_t size) { return (size + first - 1) / first; };
  while (cells(whole.rows) * cells(whole.columns) > kPyramidCellsMax) first *= 2;
  std::vector<Picture> pictures = {TRY(pool_plane(plane, whole, first))};
  while (std::max(pictures.back().rows, pictures.back().columns) > kPictureSide)
    pictures.push_back(halved(pictures.back(), whole));
  return pictures;
}

}  // namespace tensordiff
