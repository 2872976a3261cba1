// The names a pickle may use for plain data, and what each stands for. One table, no behaviour:
// whatever is not in it is a reference to code, which is reported and never looked up.

#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tensor/dtype.h"

namespace tensordiff::pickle {

enum class Meaning : uint8_t {
  unknown,

  // Python's own.
  dict,      // Keys and values
  sequence,  // Items
  bytes,     // bytes(...) and bytearray(...)
  encode,    // _codecs.encode(text, "latin1"): bytes as protocol 2 writes them
  complex,
  reconstructor,  // copyreg: an object, whose class is the first argument
  tagged,         // A value and the name of its type: the value
  plain,          // A value without numbers to compare: slice, range, torch.device

  // torch
  dtype,
  storage_type,
  untyped_storage,
  layout,  // torch.serialization._get_layout("torch.sparse_coo")
  quantization_scheme,
  load_from_bytes,  // A whole torch file in a bytes object
  tensor_class,     // torch.FloatTensor, Parameter: the state holds what there is
  rebuild_tensor,   // storage, offset, size, stride, ...
  rebuild_tensor_v3,
  rebuild_parameter,
  rebuild_quantized,
  rebuild_sparse,
  rebuild_nested,
  rebuild_meta,
  rebuild_wrapper,
  rebuild_from_type,
  rebuild_from_numpy,
  rebuild_from_tensor,

  // numpy
  array_type,  // numpy.ndarray, only ever named
  array,       // _reconstruct, with everything in its state
  array_from_buffer,
  array_scalar,
  array_dtype,
};

struct DataName {
  std::string_view name;
  Meaning meaning;
  std::optional<DType> dtype = std::nullopt;  // Of a type; nothing where it cannot be read.
  bool quantized = false;                     // The storage type of a quantised tensor.
};

// The name as Python 3 and today's torch and numpy write it.
std::string usual_spelling(std::string_view global);

// What a global stands for; the row of Meaning::unknown where it is code. Knows the other spellings
// of the same thing: Python 2's modules, numpy._core, torch.cuda's storages.
const DataName& data_name(std::string_view global);

}  // namespace tensordiff::pickle
