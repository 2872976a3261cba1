// Reads the tables of an SQLite database: https://www.sqlite.org/fileformat2.html
//
// Rows are found by walking the B-tree of their table. What is too large for the page of its row
// goes on in a chain of overflow pages. Every page is visited at most once, and the rows of a table
// together take no more bytes than the file has, so a hostile file costs no more than its size.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_source.h"

namespace tensordiff {

class SqliteRow;

struct SqliteTable {
  uint32_t root = 0;                 // The page that its tree starts at.
  std::vector<std::string> columns;  // In lower case.

  // The number of a column; all names are in lower case. SIZE_MAX: there is none.
  std::size_t column(std::string_view name) const;
};

class SqliteFile {
 public:
  static bool recognises(ByteView file);
  static Result<SqliteFile> open(const Bytes& file);

  // Table names are compared without regard to case, as SQL does.
  Result<SqliteTable> table(std::string_view name) const;
  Result<void> each_row(const SqliteTable& table,
                        const std::function<Result<void>(const SqliteRow& row)>& take) const;

 private:
  friend class SqliteRow;
  class Walk;

  Result<ByteView> page(uint32_t number) const;

  Bytes file_;
  uint32_t page_bytes_ = 0;
  uint32_t usable_ = 0;  // Bytes of a page that are not reserved for extensions.
};

// One row, valid while it is handed out.
class SqliteRow {
 public:
  // Integers and text; nothing where the column holds something else.
  std::optional<int64_t> integer(std::size_t column) const;
  Result<std::string> text(std::size_t column) const;
  bool is_blob(std::size_t column) const;
  // Put together from its pages when it is asked for.
  ByteSource blob(std::size_t column) const;

 private:
  friend class SqliteFile;
  struct Value {
    uint64_t type = 0;  // As the format numbers them: 0 null, 1–6 integers, even ≥ 12 blobs.
    uint64_t offset = 0, bytes = 0;  // In the payload.
  };

  Result<void> read(const SqliteFile& file, ByteView local, uint64_t size, uint32_t overflow);
  using Piece = std::function<Result<void>(ByteView piece)>;
  Result<void> pieces(uint64_t offset, uint64_t count, const Piece& take) const;
  Result<std::string> bytes(uint64_t offset, uint64_t count) const;

  const SqliteFile* file_ = nullptr;
  ByteView local_;         // What of the payload is on the page of the row.
  uint64_t size_ = 0;      // Of the payload.
  uint32_t overflow_ = 0;  // The page that it goes on at.
  std::vector<Value> values_;
};

}  // namespace tensordiff
