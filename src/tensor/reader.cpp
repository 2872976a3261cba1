#include "tensor/reader.h"

#include <algorithm>
#include <cstring>

#include "tensor/blocks.h"

namespace tensordiff {
namespace {

// The part that holds an index. Parts cover the view, so there always is one.
std::size_t part_at(const View& view, std::span<const uint64_t> index) {
  for (std::size_t p = 0; p + 1 < view.parts.size(); ++p) {
    const Part& part = view.parts[p];
    bool inside = true;
    for (std::size_t axis = 0; axis < index.size() && inside; ++axis)
      inside = index[axis] - part.origin[axis] < part.shape[axis];  // Unsigned: below wraps.
    if (inside) return p;
  }
  return view.parts.size() - 1;
}

// An index without memory from the heap, but for absurd shapes: samples ask for millions of single
// elements.
class Index {
 public:
  explicit Index(std::span<const uint64_t> index) : Index(index.size()) {
    std::ranges::copy(index, at_);
  }
  Index(const Shape& shape, uint64_t position) : Index(shape.size()) {
    for (std::size_t axis = rank_; axis-- > 0; position /= shape[axis])
      at_[axis] = position % shape[axis];
  }
  Index(const Index&) = delete;

  std::span<uint64_t> span() { return {at_, rank_}; }

 private:
  explicit Index(std::size_t rank) : rank_(rank) {
    if (rank <= kUsual) return;
    many_.resize(rank);
    at_ = many_.data();
  }

  static constexpr std::size_t kUsual = 16;
  uint64_t few_[kUsual];
  std::vector<uint64_t> many_;
  uint64_t* at_ = few_;
  std::size_t rank_;
};

// One summand of a sum, as a view of its own.
View term_of(const View& sum, std::size_t term) {
  View view = sum;
  view.terms = 1;
  std::erase_if(view.parts, [&](const Part& part) { return part.term != term; });
  return view;
}

void copy_strided(const std::byte* from, int64_t step_bytes, std::size_t item, std::size_t count,
                  std::byte* to) {
  const auto copy = [&]<std::size_t kItem>() {
    for (std::size_t i = 0; i < count; ++i, from += step_bytes, to += kItem)
      std::memcpy(to, from, kItem);
  };
  switch (item) {
    case 1:
      return copy.operator()<1>();
    case 2:
      return copy.operator()<2>();
    case 4:
      return copy.operator()<4>();
    case 8:
      return copy.operator()<8>();
    default:
      return copy.operator()<16>();
  }
}

// Element `at` of a packed type: `bits` bits, the first element in the lowest bits of the first
// byte, as the writers that exist do it.
std::byte unpack(ByteView bytes, uint64_t at, unsigned bits) {
  const uint64_t bit = at * bits;
  unsigned word = std::to_integer<unsigned>(bytes[bit / 8]);
  if (bit % 8 + bits > 8) word |= std::to_integer<unsigned>(bytes[bit / 8 + 1]) << 8;
  return static_cast<std::byte>(word >> bit % 8 & ((1U << bits) - 1));
}

}  // namespace

Result<Reader> Reader::open(const View& view) {
  Reader reader;
  reader.view_ = view;
  if (view.terms > 1) {
    for (std::size_t term = 0; term < view.terms; ++term)
      reader.terms_.push_back(TRY(open(term_of(view, term))));
    return reader;
  }
  if (is_undecoded(view.dtype)) return Error("values of {} are not decoded", name_of(view.dtype));
  for (const Part& part : view.parts) {
    if (!part.packed && is_made(view.dtype))
      return Error("elements of {} are never stored", name_of(view.dtype));
    reader.bytes_.push_back(TRY(part.source.open()));
    std::vector<Reader>& inputs = reader.inputs_.emplace_back();
    for (std::size_t i = 0; part.packed && i < part.packed->inputs.size(); ++i)
      inputs.push_back(TRY(open(part.packed->inputs[i])));
  }
  reader.in_place_ =
      view.contiguous() && !view.swapped && is_plain(view.dtype) && !view.parts[0].packed;
  return reader;
}

const std::byte* Reader::raw(uint64_t first, std::size_t count,
                             std::vector<std::byte>& buffer) const {
  const std::size_t item = item_bytes(view_.dtype);
  if (in_place_) return bytes_[0].view.data() + (view_.parts[0].offset + first) * item;
  if (buffer.size() < count * item) buffer.resize(count * item);
  if (!terms_.empty()) {
    add_terms(first, count, buffer.data());
    return buffer.data();
  }
  gather(first, count, buffer.data());
  if (view_.swapped && is_plain(view_.dtype)) swap_bytes(view_.dtype, buffer.data(), count);
  return buffer.data();
}

void Reader::values(uint64_t first, std::size_t count, double* out) const {
  if (!is_complex(view_.dtype)) return components(first, count, out);
  std::vector<double> parts(2 * count);
  components(first, count, parts.data());
  for (std::size_t i = 0; i < count; ++i) out[i] = parts[2 * i];
}

void Reader::components(uint64_t first, std::size_t count, double* out) const {
  // In bounded pieces, so that a caller who asks for much costs little.
  constexpr std::size_t kPiece = 4096;
  const std::size_t parts = is_complex(view_.dtype) ? 2 : 1;
  std::vector<std::byte> buffer;
  for (std::size_t done = 0; done < count; done += kPiece) {
    const std::size_t piece = std::min(kPiece, count - done);
    decode(view_.dtype, raw(first + done, piece, buffer), piece, out + done * parts);
  }
}

double Reader::value(uint64_t position) const {
  if (!terms_.empty()) {
    double sum = 0;
    for (const Reader& term : terms_) sum += term.value(position);
    return sum;
  }
  if (in_place_)
    return decode_one(view_.dtype, bytes_[0].view.data() + (view_.parts[0].offset + position) *
                                                               item_bytes(view_.dtype));
  std::byte element[16];
  if (view_.shape.empty()) {
    copy_run(0, view_.parts[0].offset, 0, 1, element);
  } else {
    gather_run(Index(view_.shape, position).span(), 1, element);
  }
  if (view_.swapped && is_plain(view_.dtype)) swap_bytes(view_.dtype, element, 1);
  return decode_one(view_.dtype, element);
}

// Adds in float64 and rounds once, to the type that all terms are stored in.
void Reader::add_terms(uint64_t first, std::size_t count, std::byte* out) const {
  std::vector<double> sums(count), values(count);
  for (const Reader& term : terms_) {
    term.values(first, count, values.data());
    for (std::size_t i = 0; i < count; ++i) sums[i] += values[i];
  }
  encode(view_.dtype, sums.data(), count, out);
}

bool Reader::intact() const {
  if (!std::ranges::all_of(terms_, &Reader::intact)) return false;
  const auto intact = [](const auto& each) { return each.intact(); };
  return std::ranges::all_of(bytes_, intact) &&
         std::ranges::all_of(
             inputs_, [&](const auto& inputs) { return std::ranges::all_of(inputs, intact); });
}

// Copies `count` elements of a part that lie `step` elements apart.
void Reader::copy_run(std::size_t part, uint64_t element, int64_t step, std::size_t count,
                      std::byte* out) const {
  const ByteView bytes = bytes_[part].view;
  if (const Packed* packed = view_.parts[part].packed.get()) {
    std::vector<float> values(count);
    packed->decode(inputs_[part], element, step, count, values.data());
    std::memcpy(out, values.data(), count * sizeof(float));
    return;
  }
  if (is_in_blocks(view_.dtype)) {
    const Blocks blocks{view_.dtype, view_.swapped, bytes};
    return blocks.read(element, step, count, out);
  }
  if (is_packed(view_.dtype)) {
    for (std::size_t i = 0; i < count; ++i, element += static_cast<uint64_t>(step))
      out[i] = unpack(bytes, element, info(view_.dtype).bits);
    return;
  }
  const std::size_t item = item_bytes(view_.dtype);
  copy_strided(bytes.data() + element * item, step * static_cast<int64_t>(item), item, count, out);
}

void Reader::gather(uint64_t first, std::size_t count, std::byte* out) const {
  const std::size_t item = item_bytes(view_.dtype);
  if (view_.shape.empty()) return copy_run(0, view_.parts[0].offset, 0, 1, out);
  // Row by row of the last axis: only the first row may start in the middle.
  Index from(view_.shape, first);
  const std::span<uint64_t> index = from.span();
  const std::size_t last = index.size() - 1;
  while (count > 0) {
    const std::size_t run = std::min<uint64_t>(count, view_.shape[last] - index[last]);
    gather_run(index, run, out);
    out += run * item;
    count -= run;
    index[last] = 0;
    for (std::size_t axis = last; axis-- > 0;) {
      if (++index[axis] < view_.shape[axis]) break;
      index[axis] = 0;
    }
  }
}

void Reader::gather_run(std::span<const uint64_t> index, std::size_t count, std::byte* out) const {
  const std::size_t item = item_bytes(view_.dtype);
  const std::size_t last = index.size() - 1;
  Index moving(index);
  const std::span<uint64_t> at = moving.span();
  while (count > 0) {
    const std::size_t p = part_at(view_, at);
    const Part& part = view_.parts[p];
    uint64_t element = part.offset;
    for (std::size_t axis = 0; axis < at.size(); ++axis)
      element += (at[axis] - part.origin[axis]) * static_cast<uint64_t>(part.strides[axis]);
    const uint64_t left = part.origin[last] + part.shape[last] - at[last];
    const std::size_t run = std::min<uint64_t>(count, left);
    copy_run(p, element, part.strides[last], run, out);
    out += run * item;
    count -= run;
    at[last] += run;
  }
}

}  // namespace tensordiff
