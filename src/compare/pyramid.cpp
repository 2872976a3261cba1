#include "compare/pyramid.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "align/view.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/kernels/decode.h"
#include "compare/kernels/pool.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// So many columns are pooled at a time: rows of a transposed side share their cache lines then.
constexpr std::size_t kColumnsAtOnce = 1024;
// A piece of work: one row of cells, but no more columns than this.
constexpr std::size_t kColumnsOfPiece = 16 * kColumnsAtOnce;
constexpr std::size_t kGlance = 32;

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

// Both sides of a plane. Values are read as float where that is exact, else as double.
class Plane {
 public:
  static Result<Plane> open(const AlignedPair& pair, const Slice& slice) {
    TRY(check(pair.a.shape, slice));
    Plane plane;
    plane.a_ = TRY(Reader::open(plane_of(pair.a, slice)).in("A"));
    plane.b_ = TRY(Reader::open(plane_of(pair.b, slice)).in("B"));
    return plane;
  }

  uint64_t rows() const { return a_.view().shape[0]; }
  uint64_t columns() const { return a_.view().shape[1]; }
  bool intact() const { return a_.intact() && b_.intact(); }
  bool fits_float() const {
    return kernels::fits_float(a_.view().dtype) && kernels::fits_float(b_.view().dtype);
  }
  const Reader& side(Layer layer) const { return layer == Layer::a ? a_ : b_; }

 private:
  Reader a_, b_;
};

void decode_run(const Reader& reader, uint64_t first, std::span<float> out,
                std::vector<std::byte>& buffer) {
  const DType dtype = reader.view().dtype;
  const std::byte* elements = reader.raw(first, out.size(), buffer);
  // In a mapped file they may lie anywhere.
  if (reinterpret_cast<uintptr_t>(elements) % sizeof(float) != 0) {
    const std::size_t bytes = out.size() * item_bytes(dtype);
    buffer.resize(std::max(buffer.size(), bytes));
    std::memmove(buffer.data(), elements, bytes);
    elements = buffer.data();
  }
  kernels::decode(dtype, elements, out.size(), out.data());
}

// Of complex values the modulus.
void decode_run(const Reader& reader, uint64_t first, std::span<double> out,
                std::vector<std::byte>& /*buffer*/) {
  if (!is_complex(reader.view().dtype)) return reader.values(first, out.size(), out.data());
  std::vector<double> parts(2 * out.size());
  reader.components(first, out.size(), parts.data());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = std::hypot(parts[2 * i], parts[2 * i + 1]);
}

// Reads runs of the layers of a plane; each side once, however many layers are made of it.
template <class T>
class Runs {
 public:
  Runs(const Plane& plane, std::span<const Layer> layers) : plane_(plane) {
    for (const Layer layer : layers) {
      needs_a_ |= layer != Layer::b;
      needs_b_ |= layer != Layer::a;
    }
  }

  void read(uint64_t row, uint64_t column, std::size_t count) {
    const uint64_t first = row * plane_.columns() + column;
    count_ = count;
    if (needs_a_) read_side(Layer::a, first, a_);
    if (needs_b_) read_side(Layer::b, first, b_);
  }

  std::span<const T> of(Layer layer) {
    if (layer != Layer::distance) return {(layer == Layer::a ? a_ : b_).data(), count_};
    apart_.resize(std::max(apart_.size(), count_));
    kernels::distances(a_.data(), b_.data(), count_, apart_.data());
    return {apart_.data(), count_};
  }

 private:
  void read_side(Layer side, uint64_t first, std::vector<T>& out) {
    out.resize(std::max(out.size(), count_));
    decode_run(plane_.side(side), first, std::span(out).first(count_), buffer_);
  }

  const Plane& plane_;
  bool needs_a_ = false, needs_b_ = false;
  std::size_t count_ = 0;
  std::vector<T> a_, b_, apart_;
  std::vector<std::byte> buffer_;
};

// What becomes of the elements of one row of cells: gathered for each column first, whole rows at a
// time, and then for each cell.
template <class T>
class Most {
 public:
  void start(std::size_t columns) { keys_.assign(columns, 0); }
  void add(std::span<const T> values) {
    kernels::raise(values.data(), values.size(), keys_.data());
  }
  float cell(std::size_t first, std::size_t count) const {
    const auto from = keys_.begin() + static_cast<std::ptrdiff_t>(first);
    const auto most = *std::max_element(from, from + static_cast<std::ptrdiff_t>(count));
    return static_cast<float>(kernels::value_of<T>(most));
  }

 private:
  std::vector<kernels::Key<T>> keys_;
};

template <class T>
class Mean {
 public:
  void start(std::size_t columns) {
    sums_.assign(columns, 0);
    counts_.assign(columns, 0);
  }
  void add(std::span<const T> values) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      sums_[i] += static_cast<double>(values[i]);
      ++counts_[i];
    }
  }
  float cell(std::size_t first, std::size_t count) const {
    double sum = 0;
    uint64_t finite = 0;
    for (std::size_t i = first; i < first + count; ++i) {
      sum += sums_[i];
      finite += counts_[i];
    }
    return finite ? static_cast<float>(sum / static_cast<double>(finite)) : kNan;
  }

 private:
  std::vector<double> sums_;
  std::vector<uint64_t> counts_;
};

Picture empty_picture(Layer layer, const Rectangle& rectangle, uint64_t pool) {
  Picture picture;
  picture.layer = layer;
  picture.pool = pool;
  picture.rows = (rectangle.rows + pool - 1) / pool;
  picture.columns = (rectangle.columns + pool - 1) / pool;
  picture.cells.resize(picture.rows * picture.columns);
  return picture;
}

// What all pieces of some pictures of one rectangle share.
struct Work {
  const Plane& plane;
  Rectangle rectangle;
  uint64_t pool;
  std::span<const Layer> layers;

  // At most so many columns, but whole cells.
  uint64_t columns(std::size_t at_most) const { return std::max(pool, at_most / pool * pool); }
  uint64_t pieces_in_row() const {
    const uint64_t columns_each = columns(kColumnsOfPiece);
    return (rectangle.columns + columns_each - 1) / columns_each;
  }
};

struct Piece {
  std::size_t cell_row;
  uint64_t column, end;  // Columns of elements.
};

// Fills the cells of one piece from the elements under them.
template <class T, template <class> class Gather>
void pool_piece(const Work& work, const Piece& piece, std::vector<Picture>& pictures) {
  const Rectangle& all = work.rectangle;
  const uint64_t end = std::min(all.rows, (piece.cell_row + 1) * work.pool);
  const uint64_t step = work.columns(kColumnsAtOnce);
  Runs<T> runs(work.plane, work.layers);
  std::vector<Gather<T>> gathered(work.layers.size());
  for (uint64_t column = piece.column; column < piece.end; column += step) {
    const std::size_t width = std::min(step, piece.end - column);
    for (Gather<T>& each : gathered) each.start(width);
    for (uint64_t row = piece.cell_row * work.pool; row < end; ++row) {
      runs.read(all.row + row, all.column + column, width);
      for (std::size_t i = 0; i < gathered.size(); ++i) gathered[i].add(runs.of(work.layers[i]));
    }
    for (std::size_t i = 0; i < gathered.size(); ++i) {
      float* cell = pictures[i].cells.data() + piece.cell_row * pictures[i].columns;
      cell += column / work.pool;
      for (std::size_t at = 0; at < width; at += work.pool)
        *cell++ = gathered[i].cell(at, std::min<std::size_t>(work.pool, width - at));
    }
  }
}

// The same from a run in the middle of each cell.
template <class T, template <class> class Gather>
void glance_piece(const Work& work, const Piece& piece, std::vector<Picture>& pictures) {
  const Rectangle& all = work.rectangle;
  const uint64_t row = piece.cell_row * work.pool;
  const uint64_t middle = row + std::min(work.pool, all.rows - row) / 2;
  Runs<T> runs(work.plane, work.layers);
  Gather<T> gathered;
  for (uint64_t column = piece.column; column < piece.end; column += work.pool) {
    const uint64_t width = std::min(work.pool, all.columns - column);
    const std::size_t count = std::min<uint64_t>(kGlance, width);
    runs.read(all.row + middle, all.column + column + (width - count) / 2, count);
    for (std::size_t i = 0; i < work.layers.size(); ++i) {
      gathered.start(count);
      gathered.add(runs.of(work.layers[i]));
      const std::size_t at = piece.cell_row * pictures[i].columns + column / work.pool;
      pictures[i].cells[at] = gathered.cell(0, count);
    }
  }
}

template <class T, template <class> class Gather>
void fill(const Work& work, bool all, std::vector<Picture>& pictures) {
  const uint64_t in_row = work.pieces_in_row();
  const uint64_t columns = work.columns(kColumnsOfPiece);
  for_each_index(pictures[0].rows * in_row, [&](std::size_t i) {
    Piece piece{i / in_row, i % in_row * columns, 0};
    piece.end = std::min(work.rectangle.columns, piece.column + columns);
    if (all) return pool_piece<T, Gather>(work, piece, pictures);
    glance_piece<T, Gather>(work, piece, pictures);
  });
}

Result<std::vector<Picture>> draw(const Work& work, Pooling pooling, bool all) {
  std::vector<Picture> pictures;
  for (const Layer layer : work.layers)
    pictures.push_back(empty_picture(layer, work.rectangle, work.pool));
  const bool small = work.plane.fits_float();
  if (pooling == Pooling::mean)
    small ? fill<float, Mean>(work, all, pictures) : fill<double, Mean>(work, all, pictures);
  else
    small ? fill<float, Most>(work, all, pictures) : fill<double, Most>(work, all, pictures);
  if (!work.plane.intact()) return Error("the file was cut short while it was read");
  return pictures;
}

// One cell of half the size, from the up to 2 × 2 at `row`, `column` of the finer picture. Cells at
// the edge stand for fewer elements, which the mean of means would weigh too much; they are weighed
// by their area.
float halved_cell(const Picture& fine, const Rectangle& whole, std::size_t row, std::size_t column,
                  Pooling pooling) {
  const auto side = [&](std::size_t cell, uint64_t size) {
    return static_cast<double>(std::min(fine.pool, size - cell * fine.pool));
  };
  uint32_t most = 0;
  double sum = 0;
  double area = 0;
  for (std::size_t r = row; r < std::min(row + 2, fine.rows); ++r) {
    for (std::size_t c = column; c < std::min(column + 2, fine.columns); ++c) {
      const float value = fine.cells[r * fine.columns + c];
      most = std::max(most, kernels::key_of(value));
      if (std::isnan(value)) continue;
      const double weight = side(r, whole.rows) * side(c, whole.columns);
      sum += static_cast<double>(value) * weight;
      area += weight;
    }
  }
  if (pooling == Pooling::most) return kernels::value_of<float>(most);
  return area > 0 ? static_cast<float>(sum / area) : kNan;
}

Picture halved(const Picture& fine, const Rectangle& whole, Pooling pooling) {
  Picture coarse = empty_picture(fine.layer, whole, fine.pool * 2);
  for (std::size_t row = 0; row < coarse.rows; ++row)
    for (std::size_t column = 0; column < coarse.columns; ++column)
      coarse.cells[row * coarse.columns + column] =
          halved_cell(fine, whole, 2 * row, 2 * column, pooling);
  return coarse;
}

Result<Picture> draw_one(const AlignedPair& pair, const Slice& slice, const Rectangle& rectangle,
                         uint64_t pool, bool all) {
  const Plane plane = TRY(Plane::open(pair, slice));
  if (pool == 0 || !range_fits(rectangle.row, rectangle.rows, plane.rows()) ||
      !range_fits(rectangle.column, rectangle.columns, plane.columns()))
    return Error("the rectangle lies outside the slice of {} × {}", plane.rows(), plane.columns());
  if (rectangle.rows / pool > kPyramidCellsMax / (rectangle.columns / pool + 1))
    return Error("the picture would have more than {} cells", kPyramidCellsMax);
  const Work work{plane, rectangle, pool, {&slice.layer, 1}};
  std::vector<Picture> pictures = TRY(draw(work, slice.pooling, all));
  return std::move(pictures[0]);
}

}  // namespace

Result<Picture> pool(const AlignedPair& pair, const Slice& slice, const Rectangle& rectangle,
                     uint64_t pool) {
  return draw_one(pair, slice, rectangle, pool, true);
}

Result<Picture> glance(const AlignedPair& pair, const Slice& slice, const Rectangle& rectangle,
                       uint64_t pool) {
  return draw_one(pair, slice, rectangle, pool, false);
}

Result<std::vector<Picture>> pyramid(const AlignedPair& pair, const Slice& slice,
                                     std::span<const Layer> layers) {
  const Plane plane = TRY(Plane::open(pair, slice));
  const Rectangle whole{0, 0, plane.rows(), plane.columns()};
  uint64_t first = 1;
  const auto cells = [&](uint64_t size) { return (size + first - 1) / first; };
  while (cells(whole.rows) * cells(whole.columns) > kPyramidCellsMax) first *= 2;
  const Work work{plane, whole, first, layers};
  std::vector<Picture> finest_ones = TRY(draw(work, slice.pooling, true));
  std::vector<Picture> pictures;
  for (Picture& finest : finest_ones) {
    pictures.push_back(std::move(finest));
    while (std::max(pictures.back().rows, pictures.back().columns) > kPictureSide)
      pictures.push_back(halved(pictures.back(), whole, slice.pooling));
  }
  return pictures;
}

}  // namespace tensordiff
