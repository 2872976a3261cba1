// Reads fields off the front of a byte range.
//
// A read past the end returns zero and makes ok() false for good, so a parser reads a whole record
// and checks once, instead of after every field. A parser that loops on a count it has read checks
// ok() in the loop condition, so that a lie about the count costs nothing.

#pragma once

#include <bit>
#include <cstring>
#include <type_traits>

#include "base/byte_source.h"

namespace tensordiff {

class ByteCursor {
 public:
  explicit ByteCursor(ByteView bytes, std::endian order = std::endian::little)
      : all_(bytes), swap_(order != std::endian::native) {}

  bool ok() const { return ok_; }
  bool at_end() const { return position_ == all_.size(); }
  uint64_t position() const { return position_; }
  uint64_t remaining() const { return all_.size() - position_; }
  ByteView rest() const { return all_.subspan(position_); }

  uint8_t u8() { return number<uint8_t>(); }
  uint16_t u16() { return number<uint16_t>(); }
  uint32_t u32() { return number<uint32_t>(); }
  uint64_t u64() { return number<uint64_t>(); }
  int32_t i32() { return static_cast<int32_t>(number<uint32_t>()); }
  int64_t i64() { return static_cast<int64_t>(number<uint64_t>()); }
  float f32() { return std::bit_cast<float>(number<uint32_t>()); }
  double f64() { return std::bit_cast<double>(number<uint64_t>()); }

  ByteView take(uint64_t count) {
    if (!ok_ || count > remaining()) return fail(), ByteView{};
    const ByteView taken = all_.subspan(position_, count);
    position_ += count;
    return taken;
  }
  void skip(uint64_t count) { take(count); }
  void seek(uint64_t position) {
    if (position > all_.size()) return fail();
    position_ = position;
  }
  void fail() { ok_ = false; }

 private:
  template <class T>
  T number() {
    const ByteView field = take(sizeof(T));
    if (field.empty()) return 0;
    T value;
    std::memcpy(&value, field.data(), sizeof(T));
    if constexpr (sizeof(T) == 2) {
      if (swap_) value = __builtin_bswap16(value);
    } else if constexpr (sizeof(T) == 4) {
      if (swap_) value = __builtin_bswap32(value);
    } else if constexpr (sizeof(T) == 8) {
      if (swap_) value = __builtin_bswap64(value);
    }
    return value;
  }

  ByteView all_;
  uint64_t position_ = 0;
  bool ok_ = true;
  bool swap_;
};

}  // namespace tensordiff
