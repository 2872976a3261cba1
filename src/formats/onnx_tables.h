// What a debug build of ONNX Runtime writes where its node outputs go to SQLite.
//
//   Tensors(Step, Name, Value, DeviceType, …)   Value is a serialized TensorProto
//   Nodes(ExecutionCounter, Name, OpType, …)
//
// Rows stand in the order in which the tensors were first seen, which is that of computing. A step
// is a run of the session: where there are several, its number stands before the name.

#pragma once

#include "formats/format.h"

namespace tensordiff::onnx {

// Opens a TensorProto by itself.
using OpenTensor = Result<Catalog> (*)(const Input& input);

Result<Catalog> open_tables(const Input& input, OpenTensor open_tensor);

}  // namespace tensordiff::onnx
