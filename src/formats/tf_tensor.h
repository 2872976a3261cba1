// TensorFlow's tensors in messages: dtypes, shapes and TensorProto, with values that repeat.

#pragma once

#include <optional>
#include <string>

#include "base/byte_source.h"
#include "base/result.h"
#include "tensor/tensor.h"

namespace tensordiff::tf {

inline constexpr uint64_t kString = 7;

// The element type of a DataType; an error that names what it is where it has no numbers.
Result<DType> dtype_of(uint64_t type);

// TensorShapeProto. An error where an axis has no size.
Result<Shape> read_shape(ByteView message);

// A TensorProto: its type, and its view where it has numbers.
struct TensorValue {
  uint64_t type = 0;
  Result<View> view = Error("no tensor");
  std::string strings;  // What stands for the elements, where these are strings.
};
// What is known of it from elsewhere: V1 checkpoints leave both out.
struct KnownTensor {
  uint64_t type;
  Shape shape;
};
// `message` lies in `file`, which `source` gave.
Result<TensorValue> read_tensor(ByteView message, const ByteSource& source, const Bytes& file,
                                const std::optional<KnownTensor>& known = std::nullopt);

}  // namespace tensordiff::tf
