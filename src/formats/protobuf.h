// Reads protobuf messages off the wire, without a schema and without copying.
//
// A message is a sequence of fields: a varint of field number and wire type, then a varint (0), 8
// bytes (1), a length and so many bytes (2) or 4 bytes (5). Groups (3, 4) are skipped. Whoever
// reads a message loops over its fields and asks finish() at the end, which says what was wrong.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/byte_cursor.h"
#include "base/byte_source.h"
#include "base/result.h"

namespace tensordiff {

struct ProtoField {
  enum class Wire : uint8_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

  uint32_t number = 0;
  Wire wire = Wire::varint;
  uint64_t value = 0;  // Of a number.
  ByteView bytes;      // Of a string, a message or a packed list.

  bool is(uint32_t wanted, Wire form) const { return number == wanted && wire == form; }
  bool is_bytes(uint32_t wanted) const { return is(wanted, Wire::bytes); }
  bool is_varint(uint32_t wanted) const { return is(wanted, Wire::varint); }
  std::string_view text() const { return as_text(bytes); }
};

class ProtoReader {
 public:
  explicit ProtoReader(ByteView message) : cursor_(message) {}

  // The next field; nothing at the end, or where the message is malformed.
  std::optional<ProtoField> next();

  // Whether all of the message was read and none of it is malformed.
  Result<void> finish() const;

 private:
  void skip_group(uint32_t number);
  std::optional<uint64_t> varint();

  ByteCursor cursor_;
  std::string fault_;
};

// One varint; the cursor fails where there is none.
uint64_t read_varint(ByteCursor& cursor);

// A repeated number, which may come packed, one by one, or both.
struct ProtoNumbers {
  std::vector<ByteView> packed;  // Lists as they lie in the message,
  std::string single;            // and what came by itself, in the same form.

  bool empty() const { return bytes() == 0; }
  uint64_t bytes() const;
  // Takes a field of this list; varints stay varints, others their bytes.
  void add(const ProtoField& field);
  // All of it, as if it had come packed.
  std::string joined() const;
  // As varints. An error where they are malformed or more than `most`.
  Result<std::vector<uint64_t>> varints(uint64_t most) const;
};

}  // namespace tensordiff
