#include "formats/pickle/globals.h"

#include <unordered_map>

namespace tensordiff::pickle {
namespace {

using enum Meaning;

constexpr DataName kUnknown = {"", unknown};

// clang-format off
constexpr DataName kNames[] = {
    {"builtins.dict", dict},
    {"builtins.list", sequence},
    {"builtins.tuple", sequence},
    {"builtins.set", sequence},
    {"builtins.frozenset", sequence},
    {"builtins.bytes", bytes},
    {"builtins.bytearray", bytes},
    {"builtins.complex", complex},
    {"builtins.slice", plain},
    {"builtins.range", plain},
    {"builtins.xrange", plain},
    {"builtins.object", plain},
    {"collections.OrderedDict", dict},
    {"collections.defaultdict", dict},
    {"collections.Counter", dict},
    {"_codecs.encode", encode},
    {"copyreg._reconstructor", reconstructor},
    {"copyreg.__newobj__", reconstructor},
    {"copyreg.__newobj_ex__", reconstructor},

    {"torch.Size", sequence},
    {"torch.device", plain},
    {"torch.strided", plain},
    {"torch.serialization._get_layout", layout},
    {"torch.per_tensor_affine", quantization_scheme},
    {"torch.per_channel_affine", quantization_scheme},
    {"torch.per_channel_affine_float_qparams", quantization_scheme},
    {"torch.storage._load_from_bytes", load_from_bytes},
    {"torch.storage.TypedStorage", storage_type},
    {"torch.storage._TypedStorage", storage_type},
    {"torch.storage.UntypedStorage", untyped_storage},
    {"torch.storage._UntypedStorage", untyped_storage},
    {"torch.UntypedStorage", untyped_storage},
    {"torch.DoubleStorage", storage_type, DType::f64},
    {"torch.FloatStorage", storage_type, DType::f32},
    {"torch.HalfStorage", storage_type, DType::f16},
    {"torch.BFloat16Storage", storage_type, DType::bf16},
    {"torch.LongStorage", storage_type, DType::i64},
    {"torch.IntStorage", storage_type, DType::i32},
    {"torch.ShortStorage", storage_type, DType::i16},
    {"torch.CharStorage", storage_type, DType::i8},
    {"torch.ByteStorage", storage_type, DType::u8},
    {"torch.BoolStorage", storage_type, DType::boolean},
    {"torch.ComplexFloatStorage", storage_type, DType::c64},
    {"torch.ComplexDoubleStorage", storage_type, DType::c128},
    {"torch.QInt8Storage", storage_type, DType::i8, true},
    {"torch.QUInt8Storage", storage_type, DType::u8, true},
    {"torch.QInt32Storage", storage_type, DType::i32, true},
    {"torch.QUInt4x2Storage", storage_type, std::nullopt, true},
    {"torch.QUInt2x4Storage", storage_type, std::nullopt, true},

    {"torch.float64", dtype, DType::f64},
    {"torch.float32", dtype, DType::f32},
    {"torch.float16", dtype, DType::f16},
    {"torch.bfloat16", dtype, DType::bf16},
    {"torch.float8_e4m3fn", dtype, DType::f8_e4m3},
    {"torch.float8_e5m2", dtype, DType::f8_e5m2},
    {"torch.float8_e4m3fnuz", dtype, DType::f8_e4m3fnuz},
    {"torch.float8_e5m2fnuz", dtype, DType::f8_e5m2fnuz},
    {"torch.float8_e8m0fnu", dtype, DType::f8_e8m0},
    {"torch.float4_e2m1fn_x2", dtype},
    {"torch.int64", dtype, DType::i64},
    {"torch.int32", dtype, DType::i32},
    {"torch.int16", dtype, DType::i16},
    {"torch.int8", dtype, DType::i8},
    {"torch.uint64", dtype, DType::u64},
    {"torch.uint32", dtype, DType::u32},
    {"torch.uint16", dtype, DType::u16},
    {"torch.uint8", dtype, DType::u8},
    {"torch.bool", dtype, DType::boolean},
    {"torch.complex32", dtype},
    {"torch.complex64", dtype, DType::c64},
    {"torch.complex128", dtype, DType::c128},
    {"torch.qint8", dtype, DType::i8, true},
    {"torch.quint8", dtype, DType::u8, true},
    {"torch.qint32", dtype, DType::i32, true},
    {"torch.quint4x2", dtype, std::nullopt, true},
    {"torch.quint2x4", dtype, std::nullopt, true},
    {"torch.bits8", dtype},
    {"torch.bits16", dtype},
    {"torch.bits1x8", dtype},
    {"torch.bits2x4", dtype},
    {"torch.bits4x2", dtype},

    {"torch.jit._pickle.build_intlist", sequence},
    {"torch.jit._pickle.build_tensorlist", sequence},
    {"torch.jit._pickle.build_doublelist", sequence},
    {"torch.jit._pickle.build_boollist", sequence},
    {"torch.jit._pickle.restore_type_tag", tagged},

    {"torch.Tensor", tensor_class},
    {"torch._tensor.Tensor", tensor_class},
    {"torch.tensor.Tensor", tensor_class},
    {"torch.nn.parameter.Parameter", tensor_class},
    {"torch.nn.parameter.Buffer", tensor_class},
    {"torch.autograd.variable.Variable", tensor_class},
    {"torch.DoubleTensor", tensor_class},
    {"torch.FloatTensor", tensor_class},
    {"torch.HalfTensor", tensor_class},
    {"torch.BFloat16Tensor", tensor_class},
    {"torch.LongTensor", tensor_class},
    {"torch.IntTensor", tensor_class},
    {"torch.ShortTensor", tensor_class},
    {"torch.CharTensor", tensor_class},
    {"torch.ByteTensor", tensor_class},
    {"torch.BoolTensor", tensor_class},
    {"torch._utils._rebuild_tensor", rebuild_tensor},
    {"torch._utils._rebuild_tensor_v2", rebuild_tensor},
    {"torch._utils._rebuild_tensor_v3", rebuild_tensor_v3},
    {"torch._utils._rebuild_parameter", rebuild_parameter},
    {"torch._utils._rebuild_parameter_with_state", rebuild_parameter},
    {"torch._utils._rebuild_qtensor", rebuild_quantized},
    {"torch._utils._rebuild_sparse_tensor", rebuild_sparse},
    {"torch._utils._rebuild_sparse_csr_tensor", rebuild_sparse},
    {"torch._utils._rebuild_nested_tensor", rebuild_nested},
    {"torch._utils._rebuild_meta_tensor_no_storage", rebuild_meta},
    {"torch._utils._rebuild_wrapper_subclass", rebuild_wrapper},
    {"torch._utils._rebuild_device_tensor_from_numpy", rebuild_from_numpy},
    {"torch._utils._rebuild_xla_tensor", rebuild_from_numpy},
    {"torch._utils._rebuild_device_tensor_from_cpu_tensor", rebuild_from_tensor},
    {"torch._tensor._rebuild_from_type", rebuild_from_type},
    {"torch._tensor._rebuild_from_type_v2", rebuild_from_type},

    {"numpy.ndarray", array_type},
    {"numpy.core.multiarray._reconstruct", array},
    {"numpy.core.numeric._frombuffer", array_from_buffer},
    {"numpy.core.multiarray.scalar", array_scalar},
    {"numpy.dtype", array_dtype},
    {"numpy.dtypes.Float64DType", array_dtype, DType::f64},
    {"numpy.dtypes.Float32DType", array_dtype, DType::f32},
    {"numpy.dtypes.Float16DType", array_dtype, DType::f16},
    {"numpy.dtypes.Int64DType", array_dtype, DType::i64},
    {"numpy.dtypes.Int32DType", array_dtype, DType::i32},
    {"numpy.dtypes.Int16DType", array_dtype, DType::i16},
    {"numpy.dtypes.Int8DType", array_dtype, DType::i8},
    {"numpy.dtypes.UInt64DType", array_dtype, DType::u64},
    {"numpy.dtypes.UInt32DType", array_dtype, DType::u32},
    {"numpy.dtypes.UInt16DType", array_dtype, DType::u16},
    {"numpy.dtypes.UInt8DType", array_dtype, DType::u8},
    {"numpy.dtypes.BoolDType", array_dtype, DType::boolean},
    {"numpy.dtypes.Complex64DType", array_dtype, DType::c64},
    {"numpy.dtypes.Complex128DType", array_dtype, DType::c128},
    {"ml_dtypes.bfloat16", dtype, DType::bf16},
    {"ml_dtypes.float8_e4m3fn", dtype, DType::f8_e4m3},
    {"ml_dtypes.float8_e5m2", dtype, DType::f8_e5m2},
    {"ml_dtypes.float8_e4m3fnuz", dtype, DType::f8_e4m3fnuz},
    {"ml_dtypes.float8_e5m2fnuz", dtype, DType::f8_e5m2fnuz},
    {"ml_dtypes.float8_e8m0fnu", dtype, DType::f8_e8m0},
};

// The same things under other names: a prefix and what it stands for.
constexpr std::pair<std::string_view, std::string_view> kSpellings[] = {
    {"__builtin__.", "builtins."},
    {"copy_reg.", "copyreg."},
    {"numpy._core.", "numpy.core."},
    {"torch.cuda.", "torch."},
};
// clang-format on

}  // namespace

std::string usual_spelling(std::string_view global) {
  std::string spelled(global);
  for (const auto& [other, ours] : kSpellings)
    if (global.starts_with(other)) spelled = std::string(ours).append(global.substr(other.size()));
  return spelled;
}

const DataName& data_name(std::string_view global) {
  static const auto table = [] {
    std::unordered_map<std::string_view, const DataName*> rows;
    for (const DataName& row : kNames) rows.emplace(row.name, &row);
    return rows;
  }();
  const auto found = table.find(usual_spelling(global));
  return found == table.end() ? kUnknown : *found->second;
}

}  // namespace tensordiff::pickle
