#include "formats/proto_elements.h"

#include <algorithm>
#include <memory>

#include "formats/pickle/derived.h"

namespace tensordiff {
namespace {

// The list in one piece, with what keeps it alive.
Bytes in_one_piece(const ProtoList& list) {
  if (list.numbers.single.empty() && list.numbers.packed.size() == 1)
    return {list.numbers.packed[0], list.file.owner};
  return bytes_of(list.numbers.joined());
}

}  // namespace

ByteSource part_of(const ByteSource& source, const Bytes& opened, ByteView part) {
  if (part.empty()) return source.slice(0, 0);
  return source.slice(static_cast<uint64_t>(part.data() - opened.view.data()), part.size());
}

Result<uint64_t> ProtoList::count_varints() const {
  const Bytes all = in_one_piece(*this);
  ByteCursor cursor(all.view);
  uint64_t count = 0;
  for (; !cursor.at_end(); ++count) {
    read_varint(cursor);
    if (!cursor.ok()) return Error("its list of numbers is malformed");
  }
  return count;
}

Result<uint64_t> ProtoList::count_fixed(std::size_t item) const {
  if (numbers.bytes() % item != 0)
    return Error("its list of {} bytes holds no whole numbers of {}", numbers.bytes(), item);
  return numbers.bytes() / item;
}

ByteSource ProtoList::fixed() const {
  if (numbers.single.empty() && numbers.packed.size() == 1)
    return part_of(source, file, numbers.packed[0]);
  return ByteSource(bytes_of(numbers.joined()));
}

Result<ByteSource> ProtoList::varints(uint64_t count, std::size_t item) const {
  const auto open = [list = *this, item]() -> Result<pickle::Fill> {
    const auto all = std::make_shared<const Bytes>(in_one_piece(list));
    const auto cursor = std::make_shared<ByteCursor>(all->view);
    // Called for one piece after another.
    return pickle::Fill([all, cursor, item](uint64_t, std::size_t wanted, std::byte* out) {
      for (std::size_t i = 0; i < wanted; ++i) {
        uint64_t value = read_varint(*cursor);
        for (std::size_t byte = 0; byte < item; ++byte, value >>= 8)
          *out++ = static_cast<std::byte>(value & 0xff);
      }
    });
  };
  constexpr DType kBySize[] = {DType::u8, DType::u8, DType::u16, DType::u16, DType::u32};
  const DType dtype = item == 8 ? DType::u64 : kBySize[item];
  const View view = TRY(pickle::made_in_order(dtype, {count}, open));
  return view.parts[0].source;
}

}  // namespace tensordiff
