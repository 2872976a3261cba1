#include "formats/sqlite.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/byte_cursor.h"
#include "base/text.h"
#include "formats/inflate.h"

namespace tensordiff {
namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr uint64_t kFileHeader = 100;
constexpr uint8_t kLeaf = 0x0d, kInterior = 0x05;  // Of tables; indexes have others.
constexpr int kDepthMax = 32;  // A tree of two children a page has 2^32 pages at this depth.
constexpr uint64_t kColumnsMax = 2000;  // SQLite's own limit.

// Seven bits a byte, the highest first; the ninth byte has eight.
uint64_t varint(ByteCursor& cursor) {
  uint64_t value = 0;
  for (int i = 0; i < 8; ++i) {
    const uint8_t byte = cursor.u8();
    value = value << 7U | (byte & 0x7fU);
    if (byte < 0x80) return value;
  }
  return value << 8U | cursor.u8();
}

// The bytes that a value of a type takes, as the format has it.
uint64_t bytes_of_type(uint64_t type) {
  constexpr uint64_t kFixed[] = {0, 1, 2, 3, 4, 6, 8, 8, 0, 0, 0, 0};
  return type < std::size(kFixed) ? kFixed[type] : (type - 12) / 2;
}

// "create table T (Step int not null, Name text, primary key (Step, Name))": Step, Name.
std::vector<std::string> columns_in(std::string_view sql) {
  std::vector<std::string> columns;
  const std::size_t open = sql.find('(');
  if (open == std::string_view::npos) return columns;
  int depth = 0;
  std::string piece;
  const auto take = [&] {
    const std::string_view text =
        std::string_view(piece).substr(std::min(piece.size(), piece.find_first_not_of(" \t\r\n")));
    std::string word = lower(text.substr(0, text.find_first_of(" \t\r\n(")));
    std::erase_if(word, [](char c) { return c == '"' || c == '`' || c == '[' || c == ']'; });
    constexpr std::string_view kNoColumns[] = {"primary", "unique",     "foreign",
                                               "check",   "constraint", ""};
    if (std::ranges::find(kNoColumns, word) == std::end(kNoColumns)) columns.push_back(word);
    piece.clear();
  };
  for (const char c : sql.substr(open + 1)) {
    if (c == ')' && depth == 0) break;
    depth += (c == '(') - (c == ')');
    if (c == ',' && depth == 0)
      take();
    else
      piece += c;
  }
  take();
  return columns;
}

}  // namespace

std::size_t SqliteTable::column(std::string_view name) const {
  const auto found = std::ranges::find(columns, name);
  return found == columns.end() ? SIZE_MAX : static_cast<std::size_t>(found - columns.begin());
}

bool SqliteFile::recognises(ByteView file) { return as_text(file).starts_with(kMagic); }

Result<SqliteFile> SqliteFile::open(const Bytes& file) {
  if (!recognises(file.view)) return Error("it does not start with 'SQLite format 3'");
  if (file.size() < kFileHeader) return Error("the header is cut short: {} bytes", file.size());
  ByteCursor cursor(file.view, std::endian::big);
  cursor.skip(kMagic.size());
  SqliteFile result;
  result.file_ = file;
  const uint32_t stored = cursor.u16();
  result.page_bytes_ = stored == 1 ? 65536 : stored;
  if (result.page_bytes_ < 512 || (result.page_bytes_ & (result.page_bytes_ - 1)) != 0)
    return Error("pages of {} bytes: not a size that SQLite has", result.page_bytes_);
  cursor.skip(2);  // Versions of the format.
  result.usable_ = result.page_bytes_ - cursor.u8();
  if (result.usable_ < 480) return Error("pages of {} usable bytes: too few", result.usable_);
  cursor.seek(28);
  const uint64_t pages = cursor.u32();
  if (pages * result.page_bytes_ != file.size())
    return Error("{} bytes, but {} pages of {} need {}", file.size(), pages, result.page_bytes_,
                 pages * result.page_bytes_);
  cursor.seek(56);
  if (const uint32_t encoding = cursor.u32(); encoding != 1)
    return Error("text in encoding {}: only UTF-8 is read", encoding);
  return result;
}

Result<ByteView> SqliteFile::page(uint32_t number) const {
  if (number == 0 || number > file_.size() / page_bytes_)
    return Error("there is no page {}", number);
  return file_.view.subspan(uint64_t{number - 1} * page_bytes_, usable_);
}

// The tree of one table.
class SqliteFile::Walk {
 public:
  using Take = std::function<Result<void>(const SqliteRow& row)>;

  Walk(const SqliteFile& file, const Take& take)
      : file_(file), take_(take), seen_(file.file_.size() / file.page_bytes_ + 1, false) {}

  Result<void> visit(uint32_t number, int depth) {
    const ByteView page = TRY(file_.page(number));
    if (depth > kDepthMax) return Error("a tree of pages is deeper than {}", kDepthMax);
    if (seen_[number]) return Error("page {} belongs to a table twice", number);
    seen_[number] = true;
    const uint64_t start = number == 1 ? kFileHeader : 0;
    ByteCursor cursor(page, std::endian::big);
    cursor.seek(start);
    const uint8_t kind = cursor.u8();
    if (kind != kLeaf && kind != kInterior)
      return Error("page {} does not belong to a table", number);
    cursor.skip(2);
    const uint64_t cells = cursor.u16();
    cursor.skip(3);
    const uint32_t last = kind == kInterior ? cursor.u32() : 0;
    for (uint64_t i = 0; i < cells && cursor.ok(); ++i) {
      ByteCursor cell(page, std::endian::big);
      cell.seek(cursor.u16());
      if (kind == kInterior)
        TRY(visit(cell.u32(), depth + 1));
      else
        TRY(row(cell).in(fmt::format("page {}, row {}", number, i)));
    }
    if (!cursor.ok()) return Error("page {}: {} cells do not fit", number, cells);
    return kind == kInterior ? visit(last, depth + 1) : Result<void>();
  }

 private:
  // A payload that does not fit its page keeps `least` bytes there, or what fills whole pages.
  Result<void> row(ByteCursor& cell) {
    const uint64_t size = varint(cell);
    varint(cell);  // The number of the row.
    const uint64_t usable = file_.usable_, most = usable - 35;
    uint64_t local = size;
    if (size > most) {
      const uint64_t least = (usable - 12) * 32 / 255 - 23;
      local = least + (size - least) % (usable - 4);
      if (local > most) local = least;
    }
    const ByteView bytes = cell.take(local);
    const uint32_t overflow = size > most ? cell.u32() : 0;
    if (!cell.ok() || size > file_.file_.size() - taken_) return Error("it is cut short");
    taken_ += size;
    SqliteRow row;
    TRY(row.read(file_, bytes, size, overflow));
    return take_(row);
  }

  const SqliteFile& file_;
  const Take& take_;
  std::vector<bool> seen_;
  uint64_t taken_ = 0;  // Bytes of all rows so far.
};

Result<void> SqliteFile::each_row(
    const SqliteTable& table, const std::function<Result<void>(const SqliteRow& row)>& take) const {
  return Walk(*this, take).visit(table.root, 0);
}

Result<SqliteTable> SqliteFile::table(std::string_view name) const {
  // The first page is the table of tables: type, name, table, root page, text of its creation.
  SqliteTable found;
  const auto look = [&](const SqliteRow& row) -> Result<void> {
    const std::string kind = TRY(row.text(0)), called = TRY(row.text(1));
    if (kind != "table" || lower(called) != lower(name)) return {};
    const std::optional<int64_t> root = row.integer(3);
    if (!root || *root < 1 || *root > UINT32_MAX) return Error("table {} has no pages", name);
    found.root = static_cast<uint32_t>(*root);
    found.columns = columns_in(TRY(row.text(4)));
    return {};
  };
  TRY(each_row({.root = 1, .columns = {}}, look));
  if (found.root == 0) return Error("it has no table '{}'", name);
  return found;
}

Result<void> SqliteRow::read(const SqliteFile& file, ByteView local, uint64_t size,
                             uint32_t overflow) {
  file_ = &file, local_ = local, size_ = size, overflow_ = overflow;
  ByteCursor head(local, std::endian::big);
  const uint64_t bytes = varint(head);
  uint64_t at = bytes;
  while (head.ok() && head.position() < bytes && values_.size() < kColumnsMax) {
    const uint64_t type = varint(head);
    const uint64_t count = bytes_of_type(type);
    if (!head.ok() || at > size || count > size - at) return Error("its columns do not fit it");
    values_.push_back({type, at, count});
    at += count;
  }
  if (!head.ok() || head.position() != bytes) return Error("its columns do not fit it");
  return {};
}

std::optional<int64_t> SqliteRow::integer(std::size_t column) const {
  if (column >= values_.size()) return std::nullopt;
  const Value& value = values_[column];
  if (value.type == 8 || value.type == 9) return static_cast<int64_t>(value.type) - 8;
  if (value.type < 1 || value.type > 6) return std::nullopt;
  const Result<std::string> stored = bytes(value.offset, value.bytes);
  if (!stored.ok()) return std::nullopt;
  uint64_t number = (stored.value()[0] & 0x80) != 0 ? UINT64_MAX : 0;  // Its sign, if shorter.
  for (const char byte : stored.value()) number = number << 8U | static_cast<uint8_t>(byte);
  return static_cast<int64_t>(number);
}

Result<std::string> SqliteRow::text(std::size_t column) const {
  if (column >= values_.size() || values_[column].type < 13 || values_[column].type % 2 == 0)
    return Error("column {} holds no text", column);
  return bytes(values_[column].offset, values_[column].bytes);
}

bool SqliteRow::is_blob(std::size_t column) const {
  return column < values_.size() && values_[column].type >= 12 && values_[column].type % 2 == 0;
}

ByteSource SqliteRow::blob(std::size_t column) const {
  const Value value = values_[column];
  if (value.offset + value.bytes <= local_.size())
    return ByteSource(Bytes{local_.subspan(value.offset, value.bytes), file_->file_.owner});
  return {value.bytes, [file = *file_, row = *this, value]() -> Result<Bytes> {
            SqliteRow own = row;
            own.file_ = &file;
            if (value.bytes <= kInflateInMemoryMax)
              return bytes_of(TRY(own.bytes(value.offset, value.bytes)));
            SpillFile spill = TRY(SpillFile::create());
            TRY(own.pieces(value.offset, value.bytes,
                           [&](ByteView piece) { return spill.append(piece); }));
            return std::move(spill).map();
          }};
}

Result<std::string> SqliteRow::bytes(uint64_t offset, uint64_t count) const {
  std::string out;
  out.reserve(count);
  TRY(pieces(offset, count, [&](ByteView piece) {
    out += as_text(piece);
    return Result<void>();
  }));
  return out;
}

// Overflow pages hold the number of the next one and then bytes.
Result<void> SqliteRow::pieces(uint64_t offset, uint64_t count, const Piece& take) const {
  const auto part = [&](ByteView piece, uint64_t at) {  // `at`: where it stands in the payload.
    const uint64_t from = std::max(offset, at), to = std::min(offset + count, at + piece.size());
    return from < to ? take(piece.subspan(from - at, to - from)) : Result<void>();
  };
  TRY(part(local_, 0));
  uint64_t at = local_.size();
  for (uint32_t next = overflow_; at < offset + count;) {
    ByteCursor page(TRY(file_->page(next)), std::endian::big);
    next = page.u32();
    const ByteView here = page.take(std::min(page.remaining(), size_ - at));
    TRY(part(here, at));
    at += here.size();
  }
  return {};
}

}  // namespace tensordiff
