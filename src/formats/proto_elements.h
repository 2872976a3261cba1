// Tensors whose elements are a list of numbers in a protobuf message, as ONNX and TensorFlow have
// them beside raw bytes.

#pragma once

#include "formats/protobuf.h"
#include "tensor/tensor.h"

namespace tensordiff {

// Where in the file of `source` these bytes lie. They must be a part of what it gave when opened.
ByteSource part_of(const ByteSource& source, const Bytes& opened, ByteView part);

// A list, and the message it lies in.
struct ProtoList {
  ProtoNumbers numbers;
  ByteSource source;
  Bytes file;

  // How many numbers there are, as varints or as so many bytes each. An error where malformed.
  Result<uint64_t> count_varints() const;
  Result<uint64_t> count_fixed(std::size_t item) const;

  // Numbers of fixed size, as they lie there.
  ByteSource fixed() const;
  // The low `item` bytes of each of `count` varints, made when first read.
  Result<ByteSource> varints(uint64_t count, std::size_t item) const;
};

}  // namespace tensordiff
