// For tests: protobuf messages written field by field.

#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/test_files.h"

namespace tensordiff::test_files {

inline std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

inline std::string proto_key(uint32_t number, unsigned wire) { return varint(number << 3 | wire); }
inline std::string proto(uint32_t number, uint64_t value) {
  return proto_key(number, 0) + varint(value);
}
inline std::string proto(uint32_t number, std::string_view bytes) {
  return proto_key(number, 2) + varint(bytes.size()) + std::string(bytes);
}
inline std::string proto_f32(uint32_t number, float value) {
  return proto_key(number, 5) + f32(value);
}

inline std::string varints(const std::vector<int64_t>& values) {
  std::string bytes;
  for (const int64_t value : values) bytes += varint(static_cast<uint64_t>(value));
  return bytes;
}

}  // namespace tensordiff::test_files
