#include "formats/matlab_array.h"

#include <algorithm>
#include <cstring>

#include "base/text.h"
#include "formats/pickle/derived.h"
#include "tensor/reader.h"

namespace tensordiff {
namespace {

constexpr std::size_t kPiece = 4096;  // Elements converted at a time.

Strides by_column(const Shape& shape) {
  Strides strides;
  uint64_t step = 1;  // Unsigned: beside an axis of size 0 the others may be of any size, and wrap.
  for (const uint64_t size : shape) {
    strides.push_back(static_cast<int64_t>(step));
    step *= size ? size : 1;
  }
  return strides;
}

template <class T>
void store(const double* values, std::size_t count, std::byte* out) {
  for (std::size_t i = 0; i < count; ++i) {
    const T value = static_cast<T>(values[i]);
    std::memcpy(out + i * sizeof(T), &value, sizeof(T));
  }
}

// A smaller type holds no value that the larger one lacks, so nothing is rounded; a float in an
// integer array, and a signed number in an unsigned one, are refused before.
void store_as(DType dtype, const double* values, std::size_t count, std::byte* out) {
  switch (dtype) {
    case DType::f32:
      return store<float>(values, count, out);
    case DType::i64:
      return store<int64_t>(values, count, out);
    case DType::u64:
      return store<uint64_t>(values, count, out);
    case DType::i32:
      return store<int32_t>(values, count, out);
    case DType::u32:
      return store<uint32_t>(values, count, out);
    case DType::i16:
      return store<int16_t>(values, count, out);
    case DType::u16:
      return store<uint16_t>(values, count, out);
    default:
      return store<double>(values, count, out);
  }
}

bool is_signed(DType dtype) {
  return dtype == DType::i8 || dtype == DType::i16 || dtype == DType::i32 || dtype == DType::i64;
}

bool can_store(DType dtype, DType stored) {
  if (dtype == DType::f64 || dtype == DType::f32) return true;
  return is_integer(stored) && item_bytes(stored) < item_bytes(dtype) &&
         (is_signed(dtype) || !is_signed(stored));
}

void convert(const MatlabNumbers& numbers, const Bytes& bytes, uint64_t first,
             std::vector<double>& values) {
  const std::size_t item = item_bytes(numbers.stored);
  std::vector<std::byte> raw(values.size() * item);
  std::memcpy(raw.data(), bytes.view.data() + first * item, raw.size());
  if (numbers.swapped) swap_bytes(numbers.stored, raw.data(), values.size());
  decode(numbers.stored, raw.data(), values.size(), values.data());
}

// All elements in the order in which they are stored, as the array's own type.
Result<View> converted(const MatlabNumbers& numbers, uint64_t count) {
  const std::size_t item = item_bytes(numbers.dtype), parts = numbers.complex ? 2 : 1;
  const DType dtype = !numbers.complex              ? numbers.dtype
                      : numbers.dtype == DType::f32 ? DType::c64
                                                    : DType::c128;
  const auto open = [numbers, item, parts]() -> Result<pickle::Fill> {
    return pickle::Fill([numbers, item, parts](uint64_t first, std::size_t amount, std::byte* out) {
      std::vector<double> real, imaginary, both;
      for (std::size_t done = 0; done < amount; done += kPiece) {
        const std::size_t now = std::min(kPiece, amount - done);
        real.resize(now);
        convert(numbers, numbers.real, first + done, real);
        std::byte* to = out + done * item * parts;
        if (parts == 1) {
          store_as(numbers.dtype, real.data(), now, to);
          continue;
        }
        imaginary.resize(now);
        convert(numbers, numbers.imaginary, first + done, imaginary);
        both.resize(2 * now);
        for (std::size_t i = 0; i < now; ++i) both[2 * i] = real[i], both[2 * i + 1] = imaginary[i];
        store_as(numbers.dtype, both.data(), 2 * now, to);
      }
    });
  };
  return pickle::made_in_order(dtype, {count}, open);
}

// As one axis.
Result<View> flat_view(const MatlabNumbers& numbers, uint64_t count) {
  const uint64_t bytes = count * item_bytes(numbers.stored);
  for (const Bytes* part : {&numbers.real, &numbers.imaginary})
    if ((part == &numbers.real || numbers.complex) && part->size() != bytes)
      return Error("{} bytes stored, but its shape needs {}", part->size(), bytes);
  if (numbers.complex && !is_float(numbers.dtype)) return Error("complex integers are not read");
  const bool same = numbers.dtype == numbers.stored ||
                    (numbers.dtype == DType::boolean && numbers.stored == DType::u8);
  if (!numbers.complex && same) {
    View view = TRY(contiguous_view(numbers.dtype, {count}, ByteSource(numbers.real)));
    view.swapped = numbers.swapped && item_bytes(numbers.dtype) > 1;
    return view;
  }
  if (!can_store(numbers.dtype, numbers.stored))
    return Error("an array of {} stored as {}", name_of(numbers.dtype), name_of(numbers.stored));
  return converted(numbers, count);
}

}  // namespace

Result<View> matlab_view(const MatlabNumbers& numbers) {
  const std::optional<uint64_t> count = element_count(numbers.shape);
  if (!count || numbers.shape.size() > kRankMax)
    return Error("shape {} is too large", shape_text(numbers.shape));
  const View flat = TRY(flat_view(numbers, *count));
  if (*count == 0) return contiguous_view(flat.dtype, numbers.shape, ByteSource());
  View view = TRY(
      strided_view(flat.dtype, numbers.shape, by_column(numbers.shape), 0, flat.parts[0].source));
  view.swapped = flat.swapped;
  return view;
}

Result<View> matlab_sparse_view(MatlabNumbers numbers, const Bytes& rows, const Bytes& starts,
                                const Limits& limits) {
  if (numbers.shape.size() != 2) return Error("a sparse array that is not a matrix");
  if (starts.size() % 4 != 0 || starts.size() / 4 != numbers.shape[1] + 1)
    return Error("{} bytes of column starts for {} columns", starts.size(), numbers.shape[1]);
  uint32_t held = 0;
  std::memcpy(&held, starts.view.data() + starts.size() - 4, 4);
  if (numbers.swapped) held = __builtin_bswap32(held);
  // Logical values may be single bytes although they are said to be float64.
  if (numbers.logical && numbers.real.size() == held) numbers.stored = DType::u8;
  const uint64_t item = item_bytes(numbers.stored);
  if (held > rows.size() / 4 || held > numbers.real.size() / item ||
      (numbers.complex && held > numbers.imaginary.size() / item))
    return Error("fewer values stored than the {} that its columns hold", held);
  // Room for more values than there are is allowed, and not looked at.
  numbers.real = numbers.real.slice(0, held * item);
  if (numbers.complex) numbers.imaginary = numbers.imaginary.slice(0, held * item);
  const auto indices = [&](const Bytes& bytes, uint64_t count) -> Result<View> {
    View view = TRY(contiguous_view(DType::i32, {count}, ByteSource(bytes)));
    view.swapped = numbers.swapped;
    return view;
  };
  View columns = TRY(indices(starts, numbers.shape[1] + 1));
  View others = TRY(indices(rows, held));
  View values = TRY(flat_view(numbers, held));
  pickle::Compressed parts{std::move(columns), std::move(others), std::move(values), true};
  return pickle::sparse_compressed(std::move(parts), numbers.shape, limits);
}

// A row for each value: where it is, counted from 1, and its one or two parts; then the shape.
Result<View> matlab_sparse4_view(const MatlabNumbers& numbers, const Limits& limits) {
  const uint64_t rows = numbers.shape[0], columns = numbers.shape[1];
  if (rows == 0 || (columns != 3 && columns != 4))
    return Error("a sparse matrix as a table of shape {}", shape_text(numbers.shape));
  if (numbers.complex) return Error("a sparse matrix as a table of complex numbers");
  std::vector<double> table(rows * columns);  // As many numbers as the file has.
  const View flat = TRY(flat_view(numbers, table.size()));
  const Reader reader = TRY(Reader::open(flat));
  reader.values(0, table.size(), table.data());
  const auto whole = [](double value) { return value >= 0 && value < 0x1p53; };
  std::string indices, values;
  const auto place = [&](uint64_t row, uint64_t column) -> Result<int64_t> {
    const double value = table[column * rows + row];
    if (!whole(value)) return Error("an index that is not a whole number");
    return static_cast<int64_t>(value);
  };
  const uint64_t count = rows - 1;
  for (const uint64_t column : {0, 1}) {
    for (uint64_t row = 0; row < count; ++row) {
      const int64_t index = TRY(place(row, column)) - 1;
      indices.append(reinterpret_cast<const char*>(&index), sizeof(index));
    }
  }
  for (uint64_t row = 0; row < count; ++row)
    for (uint64_t column = 2; column < columns; ++column)
      values.append(reinterpret_cast<const char*>(&table[column * rows + row]), sizeof(double));
  const int64_t height = TRY(place(count, 0)), width = TRY(place(count, 1));
  const Shape shape{static_cast<uint64_t>(height), static_cast<uint64_t>(width)};
  const DType dtype = columns == 4 ? DType::c128 : DType::f64;
  View where = TRY(contiguous_view(DType::i64, {2, count}, ByteSource(bytes_of(indices))));
  View what = TRY(contiguous_view(dtype, {count}, ByteSource(bytes_of(values))));
  return pickle::sparse_coo(std::move(where), std::move(what), shape, limits);
}

}  // namespace tensordiff
