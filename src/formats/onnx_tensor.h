// One tensor of an ONNX model: a TensorProto, or a SparseTensorProto.

#pragma once

#include <functional>
#include <map>
#include <string>

#include "formats/format.h"
#include "formats/protobuf.h"

namespace tensordiff::onnx {

// The fields of a TensorProto.
struct TensorFields {
  std::string_view name;
  Shape shape;
  uint64_t type = 0;
  bool segment = false;
  std::optional<ByteView> raw;
  ProtoNumbers floats, int32s, int64s, doubles, uint64s;
  std::vector<std::string_view> strings;
  std::map<std::string_view, std::string_view> external;
  bool is_external = false;

  // Takes the fields of a message; those of a second one are added, as protobuf wants it.
  Result<void> read(ByteView message);
};

// What tensors need to know of the file they are in.
class TensorReader {
 public:
  TensorReader(const Input& input, const Bytes& file) : input_(input), file_(file) {}

  // Why there is none is for the tensor's own row.
  Result<View> view_of(const TensorFields& fields);
  Result<View> sparse(const TensorFields& values, const TensorFields& indices, Shape shape);

 private:
  Result<View> stored(DType dtype, const TensorFields& fields);
  Result<ByteSource> external_data(const TensorFields& fields, uint64_t needed);
  Result<ByteSource> listed_data(DType dtype, const TensorFields& fields, uint64_t elements);
  Result<ByteSource> listed_bytes(DType dtype, const TensorFields& fields, uint64_t elements);

  const Input& input_;
  Bytes file_;
  std::map<std::string, ByteSource, std::less<>> files_;  // Of external data, by location.
};

inline constexpr uint64_t kString = 8;  // The type of tensors of strings.

}  // namespace tensordiff::onnx
