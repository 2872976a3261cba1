// Sparse tensors, filled out. Every coordinate is checked before anything is written at it.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "base/text.h"
#include "formats/limits.h"
#include "formats/pickle/derived.h"
#include "tensor/reader.h"

namespace tensordiff::pickle {
namespace {

uint16_t bf16_bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t f16_bits(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const float size = std::fabs(value);
  if (std::isnan(value)) return sign | 0x7e00;
  if (size == 0) return sign;
  if (size >= 65520) return sign | 0x7c00;  // Rounds to more than the largest, 65504.
  // Steps are 2^-24 up to 2^-14 and grow with the exponent from there on.
  int exponent = 0;
  std::frexp(size, &exponent);  // size = m * 2^exponent with m in [0.5, 1).
  const int step = std::max(exponent - 11, -24);
  const auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(size, -step)));
  return static_cast<uint16_t>(sign | ((static_cast<uint32_t>(step + 24) << 10) + steps));
}

template <class T>
void add_as(const std::byte* value, std::size_t count, std::byte* sum) {
  for (std::size_t i = 0; i < count; ++i) {
    T a, b;
    std::memcpy(&a, sum + i * sizeof a, sizeof a);
    std::memcpy(&b, value + i * sizeof b, sizeof b);
    if constexpr (std::is_integral_v<T>) {
      a = static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                         static_cast<std::make_unsigned_t<T>>(b));  // Wraps, as torch does.
    } else {
      a += b;
    }
    std::memcpy(sum + i * sizeof a, &a, sizeof a);
  }
}

void add_half(DType dtype, const std::byte* value, std::byte* sum) {
  const auto total = static_cast<float>(decode_one(dtype, sum) + decode_one(dtype, value));
  const uint16_t bits = dtype == DType::f16 ? f16_bits(total) : bf16_bits(total);
  std::memcpy(sum, &bits, sizeof bits);
}

// Adds one element to another. Small floats do not add: torch has no sparse tensors of them.
Result<void> add_element(DType dtype, const std::byte* value, std::byte* sum) {
  switch (dtype) {
    case DType::f64:
      return add_as<double>(value, 1, sum), Result<void>();
    case DType::f32:
      return add_as<float>(value, 1, sum), Result<void>();
    case DType::c64:
      return add_as<float>(value, 2, sum), Result<void>();
    case DType::c128:
      return add_as<double>(value, 2, sum), Result<void>();
    case DType::f16:
    case DType::bf16:
      return add_half(dtype, value, sum), Result<void>();
    case DType::i64:
    case DType::u64:
      return add_as<uint64_t>(value, 1, sum), Result<void>();
    case DType::i32:
    case DType::u32:
      return add_as<uint32_t>(value, 1, sum), Result<void>();
    case DType::i16:
    case DType::u16:
      return add_as<uint16_t>(value, 1, sum), Result<void>();
    case DType::i8:
    case DType::u8:
      return add_as<uint8_t>(value, 1, sum), Result<void>();
    case DType::boolean:
      return *sum |= *value, Result<void>();
    default:
      return Error("a sparse tensor of {}", name_of(dtype));
  }
}

// The whole tensor in memory, and the values still to be put into it, in their order.
class Dense {
 public:
  static Result<Dense> open(const View& values, const Shape& shape) {
    Dense dense(TRY(Reader::open(values)));
    dense.memory_.resize(element_count(shape).value_or(0) * dense.item_);
    return dense;
  }

  // Adds values [first, first + count) to `count` elements from `at` on.
  Result<void> add(uint64_t first, uint64_t count, uint64_t at) {
    const DType dtype = values_.view().dtype;
    auto* out = reinterpret_cast<std::byte*>(memory_.data()) + at * item_;
    constexpr uint64_t kPiece = 4096;
    for (uint64_t done = 0; done < count; done += kPiece) {
      const std::size_t now = std::min(kPiece, count - done);
      const std::byte* from = values_.raw(first + done, now, buffer_);
      for (std::size_t i = 0; i < now; ++i)
        TRY(add_element(dtype, from + i * item_, out + (done + i) * item_));
    }
    return {};
  }
  Result<Bytes> finish() && { return bytes_of(std::move(memory_)); }

 private:
  explicit Dense(Reader values)
      : values_(std::move(values)), item_(item_bytes(values_.view().dtype)) {}

  Reader values_;
  std::size_t item_;
  std::string memory_;
  std::vector<std::byte> buffer_;
};

// More coordinates or values than this, a view that repeats a few of them without end, is an
// attack.
constexpr uint64_t kCoordinatesMax = 1ULL << 27;
constexpr uint64_t kValuesMax = 1ULL << 30;

// As exact integers; -1 for what can be none.
Result<std::vector<int64_t>> coordinates(const View& view) {
  if (view.dtype != DType::i64 && view.dtype != DType::i32)
    return Error("coordinates of type {}", name_of(view.dtype));
  if (view.elements() > kCoordinatesMax) return Error("more than {} coordinates", kCoordinatesMax);
  const Reader reader = TRY(Reader::open(view));
  std::vector<int64_t> out(view.elements());
  std::vector<double> values(4096);
  for (uint64_t done = 0; done < out.size(); done += values.size()) {
    const std::size_t now = std::min<uint64_t>(values.size(), out.size() - done);
    reader.values(done, now, values.data());  // Exact below 2^53, which no coordinate reaches.
    for (std::size_t i = 0; i < now; ++i)
      out[done + i] = std::fabs(values[i]) < 1e15 ? static_cast<int64_t>(values[i]) : -1;
  }
  return out;
}

Result<View> made_whole(const View& values, const Shape& shape, const Limits& limits,
                        ByteSource::Make make) {
  const std::optional<uint64_t> count = element_count(shape);
  const uint64_t item = item_bytes(values.dtype);
  if (values.elements() > kValuesMax) return Error("more than {} values", kValuesMax);
  if (!count || *count > limits.dense_bytes_max / item)
    return limit_hit("dense", fmt::format("sparse tensor of shape {} is larger than {} once filled "
                                          "out",
                                          shape_text(shape), human_bytes(limits.dense_bytes_max)));
  return contiguous_view(values.dtype, shape, ByteSource(*count * item, std::move(make)));
}

Error outside(const Shape& shape) {
  return Error("a coordinate outside the shape {}", shape_text(shape));
}

Result<Bytes> fill_coo(const View& indices, const View& values, const Shape& shape) {
  const std::vector<int64_t> index = TRY(coordinates(indices));
  const uint64_t axes = indices.shape[0], count = indices.shape[1];
  uint64_t run = 1;  // Elements of one value: the axes that are not sparse.
  for (std::size_t axis = axes; axis < shape.size(); ++axis) run *= shape[axis];
  Dense dense = TRY(Dense::open(values, shape));
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t at = 0;
    for (uint64_t axis = 0; axis < axes; ++axis) {
      const int64_t here = index[axis * count + i];
      if (here < 0 || static_cast<uint64_t>(here) >= shape[axis]) return outside(shape);
      at = at * shape[axis] + static_cast<uint64_t>(here);
    }
    TRY(dense.add(i * run, run, at * run));
  }
  return std::move(dense).finish();
}

Result<Bytes> fill_compressed(const Compressed& parts, const Shape& shape) {
  const std::vector<int64_t> starts = TRY(coordinates(parts.starts));
  const std::vector<int64_t> others = TRY(coordinates(parts.others));
  const bool blocks = parts.values.shape.size() == 3;
  const uint64_t rows = blocks ? parts.values.shape[1] : 1;
  const uint64_t columns = blocks ? parts.values.shape[2] : 1;
  const auto count = static_cast<int64_t>(others.size());
  Dense dense = TRY(Dense::open(parts.values, shape));
  for (std::size_t line = 0; line + 1 < starts.size(); ++line) {
    if (starts[line] < 0 || starts[line] > starts[line + 1] || starts[line + 1] > count)
      return Error("starts of rows that do not ascend");
    for (int64_t i = starts[line]; i < starts[line + 1]; ++i) {
      const auto across = static_cast<uint64_t>(others[static_cast<std::size_t>(i)]);
      if (across >= (parts.by_column ? shape[0] / rows : shape[1] / columns)) return outside(shape);
      const uint64_t row = (parts.by_column ? across : line) * rows;
      const uint64_t column = (parts.by_column ? line : across) * columns;
      for (uint64_t r = 0; r < rows; ++r)
        TRY(dense.add((static_cast<uint64_t>(i) * rows + r) * columns, columns,
                      (row + r) * shape[1] + column));
    }
  }
  return std::move(dense).finish();
}

}  // namespace

Result<View> sparse_coo(View indices, View values, Shape shape, const Limits& limits) {
  const bool fits = indices.shape.size() == 2 && indices.shape[0] <= shape.size() &&
                    !values.shape.empty() && values.shape[0] == indices.shape[1] &&
                    values.shape.size() - 1 == shape.size() - indices.shape[0] &&
                    std::equal(values.shape.begin() + 1, values.shape.end(),
                               shape.begin() + static_cast<std::ptrdiff_t>(indices.shape[0]));
  if (!fits)
    return Error("coordinates {} and values {} do not fit the shape {}", shape_text(indices.shape),
                 shape_text(values.shape), shape_text(shape));
  return made_whole(values, shape, limits, [=] { return fill_coo(indices, values, shape); });
}

Result<View> sparse_compressed(Compressed parts, Shape shape, const Limits& limits) {
  const std::size_t rank = parts.values.shape.size();
  if (shape.size() != 2 || (rank != 1 && rank != 3) || parts.starts.shape.size() != 1 ||
      parts.others.shape.size() != 1)
    return Error("compressed sparse tensors of more than two axes are not supported");
  const uint64_t rows = rank == 3 ? parts.values.shape[1] : 1;
  const uint64_t columns = rank == 3 ? parts.values.shape[2] : 1;
  const uint64_t lines = parts.by_column ? shape[1] : shape[0];
  const uint64_t step = parts.by_column ? columns : rows;
  const bool fits = rows > 0 && columns > 0 && shape[0] % rows == 0 && shape[1] % columns == 0 &&
                    parts.starts.shape[0] == lines / step + 1 &&
                    parts.others.shape[0] == parts.values.shape[0];
  if (!fits)
    return Error("starts {}, coordinates {} and values {} do not fit the shape {}",
                 shape_text(parts.starts.shape), shape_text(parts.others.shape),
                 shape_text(parts.values.shape), shape_text(shape));
  return made_whole(parts.values, shape, limits, [=] { return fill_compressed(parts, shape); });
}

}  // namespace tensordiff::pickle
