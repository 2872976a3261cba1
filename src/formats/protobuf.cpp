#include "formats/protobuf.h"

namespace tensordiff {
namespace {

constexpr int kGroupsMax = 100;  // Inside each other.

}  // namespace

uint64_t read_varint(ByteCursor& cursor) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 70; shift += 7) {
    const uint64_t byte = cursor.u8();
    if (shift == 63 && byte > 1) break;  // More than 64 bits.
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  cursor.fail();
  return 0;
}

std::optional<uint64_t> ProtoReader::varint() {
  const uint64_t value = read_varint(cursor_);
  if (cursor_.ok()) return value;
  fault_ = "a number that is cut short or too long";
  return std::nullopt;
}

std::optional<ProtoField> ProtoReader::next() {
  while (fault_.empty() && !cursor_.at_end()) {
    const std::optional<uint64_t> key = varint();
    if (!key) return std::nullopt;
    ProtoField field;
    field.number = static_cast<uint32_t>(*key >> 3);
    field.wire = static_cast<ProtoField::Wire>(*key & 7);
    if (field.number == 0 || *key >> 3 > UINT32_MAX >> 3) {
      fault_ = "a field without a number";
      return std::nullopt;
    }
    switch (*key & 7) {
      case 0:
        field.value = varint().value_or(0);
        break;
      case 1:
        field.value = cursor_.u64();
        break;
      case 2:
        field.bytes = cursor_.take(varint().value_or(0));
        break;
      case 3:
        skip_group(field.number);
        continue;
      case 5:
        field.value = cursor_.u32();
        break;
      default:
        fault_ = "a field of no known form";
        return std::nullopt;
    }
    if (cursor_.ok()) return field;
    if (fault_.empty()) fault_ = "a field is longer than its message";
  }
  return std::nullopt;
}

// Up to the end that belongs to this start. Nested ones are counted, not followed.
void ProtoReader::skip_group(uint32_t number) {
  std::vector<uint32_t> open = {number};
  while (!open.empty()) {
    const std::optional<uint64_t> key = varint();
    if (!key) return;
    const auto inner = static_cast<uint32_t>(*key >> 3);
    switch (*key & 7) {
      case 0:
        if (!varint()) return;
        break;
      case 1:
        cursor_.skip(8);
        break;
      case 2:
        cursor_.skip(varint().value_or(0));
        break;
      case 3:
        open.push_back(inner);
        break;
      case 4:
        if (inner != open.back()) fault_ = "a group that ends another";
        open.pop_back();
        break;
      case 5:
        cursor_.skip(4);
        break;
      default:
        fault_ = "a field of no known form";
    }
    if (open.size() > kGroupsMax) fault_ = "groups nested too deeply";
    if (!cursor_.ok() && fault_.empty()) fault_ = "a field is longer than its message";
    if (!fault_.empty()) return;
  }
}

Result<void> ProtoReader::finish() const {
  if (!fault_.empty())
    return Error("malformed protobuf at byte {}: {}", cursor_.position(), fault_);
  return {};
}

uint64_t ProtoNumbers::bytes() const {
  uint64_t sum = single.size();
  for (const ByteView each : packed) sum += each.size();
  return sum;
}

void ProtoNumbers::add(const ProtoField& field) {
  uint64_t value = field.value;
  switch (field.wire) {
    case ProtoField::Wire::bytes:
      if (single.empty())
        packed.push_back(field.bytes);
      else
        single += as_text(field.bytes);  // Their order counts.
      return;
    case ProtoField::Wire::varint:
      for (; value >= 0x80; value >>= 7) single += static_cast<char>(value | 0x80);
      single += static_cast<char>(value);
      return;
    default:
      for (int left = field.wire == ProtoField::Wire::fixed64 ? 8 : 4; left > 0;
           --left, value >>= 8)
        single += static_cast<char>(value);
  }
}

std::string ProtoNumbers::joined() const {
  std::string all;
  all.reserve(bytes());
  for (const ByteView each : packed) all += as_text(each);
  return all + single;
}

Result<std::vector<uint64_t>> ProtoNumbers::varints(uint64_t most) const {
  const std::string all = joined();
  ByteCursor cursor(as_bytes(all));
  std::vector<uint64_t> values;
  while (!cursor.at_end()) {
    values.push_back(read_varint(cursor));
    if (!cursor.ok()) return Error("a malformed list of numbers");
    if (values.size() > most) return Error("more than {} numbers", most);
  }
  return values;
}

}  // namespace tensordiff
