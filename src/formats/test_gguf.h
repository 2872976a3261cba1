// For tests: GGUF files written field by field, in any version and byte order.

#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "formats/test_files.h"

namespace tensordiff::test_files {

struct GgufTensor {
  std::string name;
  std::vector<uint64_t> sizes;  // Fastest first, as the file has them.
  uint32_t type;
  std::string data;
  int64_t moved = 0;  // Added to its offset.
};

class Gguf {
 public:
  explicit Gguf(uint32_t version = 3, bool big_endian = false)
      : version_(version), big_endian_(big_endian) {}

  template <class T>
  std::string number(T value) const {
    std::string bytes = le(value);
    if (big_endian_) std::ranges::reverse(bytes);
    return bytes;
  }
  std::string length(uint64_t value) const {
    return version_ == 1 ? number(static_cast<uint32_t>(value)) : number(value);
  }
  std::string string(std::string_view text) const {
    return length(text.size()) + std::string(text);
  }

  // `value` is as the file has it.
  Gguf& key(std::string_view name, uint32_t type, const std::string& value) {
    keys_ += string(name) + number(type) + value;
    ++key_count_;
    return *this;
  }
  Gguf& text(std::string_view name, std::string_view value) { return key(name, 8, string(value)); }

  Gguf& tensor(const GgufTensor& tensor) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    const uint64_t offset = data_.size() + static_cast<uint64_t>(tensor.moved);
    tensors_ += string(tensor.name) + number(static_cast<uint32_t>(tensor.sizes.size()));
    for (const uint64_t size : tensor.sizes) tensors_ += length(size);
    tensors_ += number(tensor.type) + number(offset);
    data_ += tensor.data;
    ++tensor_count_;
    return *this;
  }

  std::string file() const {
    std::string bytes = "GGUF" + number(version_) + length(tensor_count_ + more_tensors) +
                        length(key_count_ + more_keys) + keys_ + tensors_;
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    return bytes + data_;
  }

  uint64_t alignment = 32;
  uint64_t more_tensors = 0, more_keys = 0;  // Than there are: a lie.

 private:
  uint32_t version_;
  bool big_endian_;
  std::string keys_, tensors_, data_;
  uint64_t key_count_ = 0, tensor_count_ = 0;
};

}  // namespace tensordiff::test_files
