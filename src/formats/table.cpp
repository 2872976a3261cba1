// A table ends with a footer of 48 bytes: where the block of meta data lies, where the index lies
// (offset and size as varints), padding and a magic number. The index is a block whose values are
// the places of the data blocks. A block is followed by one byte, 0 as it is or 1 for snappy, and
// the masked CRC-32C of both. In a block:
//
//   entries: varint shared, varint fresh, varint value bytes; fresh bytes of the key, the value
//   u32 places where a key stands in full, and u32 how many there are
//
// The first `shared` bytes of a key are those of the key before it.

#include "formats/table.h"

#include "base/byte_cursor.h"
#include "base/checked_math.h"
#include "base/text.h"
#include "formats/checksum.h"
#include "formats/limits.h"
#include "formats/protobuf.h"
#include "formats/snappy.h"

namespace tensordiff {
namespace {

constexpr uint64_t kMagic = 0xdb4775248b80fb57;
constexpr uint64_t kFooterBytes = 48;
constexpr uint64_t kTrailerBytes = 5;
constexpr uint64_t kBlockBytesMax = 256ULL << 20;
constexpr uint64_t kKeyBytesMax = 1 << 16;

struct BlockHandle {
  uint64_t offset;
  uint64_t bytes;
};

BlockHandle read_handle(ByteCursor& cursor) {
  const uint64_t offset = read_varint(cursor);
  return {offset, read_varint(cursor)};
}

class TableReader {
 public:
  TableReader(const Bytes& file, const Limits& limits) : file_(file), limits_(limits) {}

  Result<std::vector<TableEntry>> read() {
    if (!is_table(file_)) return Error("no table: its last bytes are not a table's");
    ByteCursor footer(file_.view.last(kFooterBytes));
    read_handle(footer);  // Of meta data, which these files have none of.
    const BlockHandle index = read_handle(footer);
    if (!footer.ok()) return Error("its footer is malformed");
    const std::vector<TableEntry> blocks = TRY(read_block(index).in("index"));
    std::vector<TableEntry> entries;
    for (const TableEntry& block : blocks) {
      ByteCursor cursor(block.value.view);
      const BlockHandle place = read_handle(cursor);
      if (!cursor.ok()) return Error("a place in its index is malformed");
      for (TableEntry& entry : TRY(read_block(place))) entries.push_back(std::move(entry));
      if (entries.size() > limits_.tensors_max)
        return limit_hit("tensors", fmt::format("more than {} entries", limits_.tensors_max));
    }
    return entries;
  }

 private:
  Result<Bytes> block_bytes(const BlockHandle& place) {
    const std::optional<uint64_t> whole = checked_add(place.bytes, kTrailerBytes);
    if (!whole || !range_fits(place.offset, *whole, file_.size() - kFooterBytes))
      return Error("{} bytes at {} lie outside the table", place.bytes, place.offset);
    const Bytes block = file_.slice(place.offset, place.bytes);
    ByteCursor trailer(file_.view.subspan(place.offset + place.bytes, kTrailerBytes));
    const ByteView summed = file_.view.subspan(place.offset, place.bytes + 1);
    const unsigned compression = trailer.u8();
    if (masked(crc32c(summed)) != trailer.u32()) return Error("its checksum does not match");
    if (compression == 0) return block;
    if (compression != 1) return Error("its compression {} is not known", compression);
    std::string plain = TRY(unsnappy(block.view, kBlockBytesMax));
    expanded_ += plain.size();
    if (expanded_ > limits_.expanded_bytes_max)
      return limit_hit("expanded", fmt::format("it unpacks to more than {}",
                                               human_bytes(limits_.expanded_bytes_max)));
    return bytes_of(std::move(plain));
  }

  Result<std::vector<TableEntry>> read_block(const BlockHandle& place) {
    const std::string where = fmt::format("block at {}", place.offset);
    const Bytes block = TRY(block_bytes(place).in(where));
    if (block.size() < 4) return Error("{}: too short", where);
    ByteCursor tail(block.view.last(4));
    const uint64_t restarts = tail.u32();
    if (restarts > (block.size() - 4) / 4) return Error("{}: malformed", where);
    ByteCursor cursor(block.view.first(block.size() - 4 - 4 * restarts));
    std::vector<TableEntry> entries;
    std::string key;
    while (!cursor.at_end()) {
      const uint64_t shared = read_varint(cursor);
      const uint64_t fresh = read_varint(cursor);
      const uint64_t bytes = read_varint(cursor);
      const ByteView rest = cursor.take(fresh);
      const uint64_t begin = cursor.position();
      cursor.skip(bytes);
      if (!cursor.ok() || shared > key.size() || shared + fresh > kKeyBytesMax)
        return Error("{}: malformed", where);
      key.resize(shared);
      key += as_text(rest);
      entries.push_back({key, block.slice(begin, bytes)});
    }
    return entries;
  }

  const Bytes& file_;
  const Limits& limits_;
  uint64_t expanded_ = 0;
};

}  // namespace

bool is_table(const Bytes& file) {
  if (file.size() < kFooterBytes) return false;
  ByteCursor end(file.view.last(8));
  return end.u64() == kMagic;
}

Result<std::vector<TableEntry>> read_table(const Bytes& file, const Limits& limits) {
  return TableReader(file, limits).read();
}

}  // namespace tensordiff
