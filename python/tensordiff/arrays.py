"""Arrays of numpy, torch, jax and others as the engine takes them: where they lie, not copied."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import numpy

from .untyped import is_mapping, is_sequence

# Name, dtype, shape, strides in elements, address.
Array = tuple[str, str, list[int], list[int], int]
Side = str | list[Array]

# dtypes by the names that numpy (with ml_dtypes) and torch have for them.
DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16",
    "float8_e4m3fn": "f8_e4m3", "float8_e5m2": "f8_e5m2", "float8_e4m3fnuz": "f8_e4m3fnuz",
    "float8_e5m2fnuz": "f8_e5m2fnuz", "float8_e8m0fnu": "f8_e8m0",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8",
    "uint64": "u64", "uint32": "u32", "uint16": "u16", "uint8": "u8", "bool": "bool",
    "complex64": "c64", "complex128": "c128",
}


def side_of(value: Any) -> tuple[Side, list[Any]]:
    """What the engine takes for a path, a dict of arrays, a module or an array.

    The second part has to stay alive while the engine runs.
    """
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value), []
    arrays: list[Array] = []
    alive: list[Any] = []
    for name, leaf in named_arrays(value):
        array, owner = _array(name, leaf)
        arrays.append(array)
        alive.append(owner)
    return arrays, alive


def named_arrays(value: Any) -> Iterator[tuple[str, Any]]:
    """Every array of a nested structure, with its path as name."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        value = value.state_dict()
    if _is_array(value):
        yield "tensor", value
        return
    yield from _walk(value, "")


def _walk(value: Any, name: str) -> Iterator[tuple[str, Any]]:
    if is_mapping(value):
        parts = [(str(key), each) for key, each in value.items()]
    elif is_sequence(value) and not _is_array(value):
        parts = [(str(at), each) for at, each in enumerate(value)]
    elif value is None or isinstance(value, (str, bytes)):
        return  # Names and notes beside the tensors, as in a training state.
    elif _is_array(value) or isinstance(value, (bool, int, float, complex)):
        yield name or "tensor", value
        return
    else:
        raise TypeError(f"{name or 'the input'}: {type(value).__name__} is neither an array nor a "
                        "structure of arrays")
    for key, each in parts:
        yield from _walk(each, f"{name}.{key}" if name else key)


def _is_array(value: Any) -> bool:
    torch = sys.modules.get("torch")
    return (torch is not None and isinstance(value, torch.Tensor)
            or isinstance(value, (numpy.ndarray, numpy.generic))
            or hasattr(value, "__dlpack__") or hasattr(value, "__array__"))


def _array(name: str, value: Any) -> tuple[Array, Any]:
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        return _torch(name, value)
    return _numpy(name, value)


def _torch(name: str, tensor: Any) -> tuple[Array, Any]:
    import torch
    if tensor.layout != torch.strided or tensor.is_quantized:
        kind = "quantized" if tensor.is_quantized else str(tensor.layout).removeprefix("torch.")
        raise TypeError(f"{name}: a {kind} tensor; pass it as dense, or dequantized")
    if tensor.device.type == "meta":
        raise TypeError(f"{name}: a tensor on 'meta' has no values")
    # The address knows nothing of a negation or conjugation that torch puts off.
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu()
    dtype = DTYPES.get(str(tensor.dtype).removeprefix("torch."))
    if dtype is None:
        raise TypeError(f"{name}: dtype {tensor.dtype} is not supported")
    return (name, dtype, list(tensor.shape), list(tensor.stride()), tensor.data_ptr()), tensor


def _numpy(name: str, value: Any) -> tuple[Array, Any]:
    array: Any = numpy.asarray(value)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    dtype = DTYPES.get(array.dtype.name)
    if dtype is None:
        raise TypeError(f"{name}: dtype {array.dtype} is not supported")
    size = array.dtype.itemsize
    if any(stride < 0 or stride % size for stride in array.strides):
        array = numpy.ascontiguousarray(array)
    strides = [stride // size for stride in array.strides]
    return (name, dtype, list(array.shape), strides, array.ctypes.data), array
