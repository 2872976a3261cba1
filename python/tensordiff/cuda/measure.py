"""The sums over a pair of CUDA tensors, from which the engine makes its metrics."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy
import torch

from .compiler import kernel

# The kernels' types by torch's names. Half precision and f32 have a fast kernel.
_TYPES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16",
    "float8_e4m3fn": "E4M3", "float8_e5m2": "E5M2", "float8_e4m3fnuz": "E4M3FNUZ",
    "float8_e5m2fnuz": "E5M2FNUZ", "float8_e8m0fnu": "E8M0", "int64": "I64", "int32": "I32",
    "int16": "I16", "int8": "I8", "uint64": "U64", "uint32": "U32", "uint16": "U16", "uint8": "U8",
    "bool": "U8", "complex64": "C64", "complex128": "C128"}
_FAST = {"F32": 4, "BF16": 8, "F16": 8}  # Elements in 16 bytes.
_PACKED = (9, 0)  # From this device on packed.cu is for BF16.
# From fine to coarse: steps are counted in the coarser type of a pair.
_WITH_STEPS = ("F64", "F32", "F16", "BF16")
_BYTES_WITH_STEPS = ("E4M3", "E5M2", "E4M3FNUZ", "E5M2FNUZ", "E8M0")
# Above this the guess of a reciprocal in fast.cu is no normal float.
_LARGE = 8e37

# Of a block, and blocks on each multiprocessor: the fastest of five on an H200 (bench/cuda.py).
_THREADS = 512
_BLOCKS = 1
_THREADS_ANY = 256  # For the general kernel, which needs more registers.

_MOMENTS = [("count", "f8"), ("mean", "f8"), ("m2", "f8"), ("min", "f8"), ("max", "f8"),
            ("zeros", "u8"), ("nan", "u8"), ("inf", "u8")]
# The layout of Sums in sums.cuh.
LAYOUT = numpy.dtype([
    ("a", _MOMENTS), ("b", _MOMENTS),
    *((name, "f8") for name in (
        "count", "values", "mean_a", "mean_b", "m2_a", "m2_b", "co", "d_abs", "d_squared",
        "d_relative", "max_abs", "max_rel", "rtol_needed")),
    *((name, "u8") for name in (
        "equal", "exceeding", "mismatch", "agreeing", "mismatch_at", "agreeing_at", "max_abs_at",
        "ulp")),
    ("pivot_a", "f8"), ("pivot_b", "f8")])


def measure(a: torch.Tensor, b: torch.Tensor, atol: float, rtol: float) -> Any:
    """A record of LAYOUT for two tensors of one shape on one device; None for types that it
    cannot take together (64-bit integers or 8-bit floats with another type).

    Raises CudaError where there is no compiler.
    """
    type_a, type_b = (_TYPES.get(str(each.dtype).removeprefix("torch.")) for each in (a, b))
    if type_a is None or type_b is None or not _together(type_a, type_b):
        return None
    a, b = plain(a), plain(b)
    with torch.cuda.device(a.device):
        if type_a == type_b and type_a in _FAST:
            sums = _measure_fast(a, b, type_a, atol, rtol)
            if _is_sound(sums, _is_packed(type_a, a.device.index)):
                return sums
        return merged(_start_any(a, b, (type_a, type_b), 0, atol, rtol))


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """In row-major order, with the signs that torch puts off."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _together(type_a: str, type_b: str) -> bool:
    alone = ("I64", "U64", *_BYTES_WITH_STEPS)
    return type_a == type_b or type_a not in alone and type_b not in alone


def _is_packed(kind: str, device: int) -> bool:
    return kind == "BF16" and torch.cuda.get_device_capability(device) >= _PACKED


def _is_sound(sums: Any, packed: bool) -> bool:
    """Whether all values were such as the fast kernel is made for."""
    if packed:
        return bool(numpy.isfinite(sums["d_abs"]))
    largest = max(abs(float(sums[side][end])) for side in ("a", "b") for end in ("min", "max"))
    return bool(numpy.isfinite(sums["d_abs"])) and largest < _LARGE


def _measure_fast(a: torch.Tensor, b: torch.Tensor, kind: str, atol: float, rtol: float) -> Any:
    row = 32 * _FAST[kind]
    rows = a.numel() // row if a.data_ptr() % 16 == 0 and b.data_ptr() % 16 == 0 else 0
    parts: list[torch.Tensor] = []
    if rows:
        blocks = min(_BLOCKS * _multiprocessors(a.device.index), -(-rows // (_THREADS // 32)))
        found = _room(blocks, a.device)
        which = "packed" if _is_packed(kind, a.device.index) else "fast"
        compiled = kernel(a.device.index, f"{which}.cu", f"measure_{which}",
                          (kind, f"THREADS={_THREADS}", f"BLOCKS={_BLOCKS}"))
        compiled.start(blocks, _THREADS, (
            ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(b.data_ptr()), ctypes.c_uint64(rows),
            ctypes.c_double(atol), ctypes.c_double(rtol), ctypes.c_void_p(found.data_ptr())))
        parts.append(found)
    if rows * row < a.numel() or not rows:
        parts.append(_start_any(a, b, (kind, kind), rows * row, atol, rtol))
    return merged(torch.cat(parts))


def _start_any(a: torch.Tensor, b: torch.Tensor, types: tuple[str, str], first: int, atol: float,
               rtol: float) -> torch.Tensor:
    count = a.numel() - first
    blocks = max(1, min(_multiprocessors(a.device.index), -(-count // _THREADS_ANY)))
    found = _room(blocks, a.device)
    compiled = kernel(a.device.index, "general.cu", "measure_any", (
        f"A={types[0]}", f"B={types[1]}", f"STEPS={_steps(*types)}", f"THREADS={_THREADS_ANY}"))
    compiled.start(blocks, _THREADS_ANY, (
        ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(b.data_ptr()), ctypes.c_uint64(first),
        ctypes.c_uint64(a.numel()), ctypes.c_double(atol), ctypes.c_double(rtol),
        ctypes.c_void_p(found.data_ptr())))
    return found


def _steps(type_a: str, type_b: str) -> str:
    if type_a == type_b and type_a in _BYTES_WITH_STEPS:
        return type_a
    if type_a in _WITH_STEPS and type_b in _WITH_STEPS:
        return max(type_a, type_b, key=_WITH_STEPS.index)
    return "NO_TYPE"


def _room(blocks: int, device: torch.device) -> torch.Tensor:
    return torch.empty((blocks, LAYOUT.itemsize // 8), dtype=torch.int64, device=device)


@functools.cache
def _multiprocessors(device: int) -> int:
    return int(torch.cuda.get_device_properties(device).multi_processor_count)


def merged(parts: torch.Tensor) -> Any:
    """One record from those of all blocks, always in the same order."""
    return merged_rows(parts.cpu().numpy().view(LAYOUT).reshape(-1))


def merged_rows(rows: Any) -> Any:
    """The same for an array of LAYOUT."""
    total = numpy.zeros((), LAYOUT)
    for name in LAYOUT.names or ():
        if name in ("a", "b", "pivot_a", "pivot_b"):
            continue
        values = rows[name]
        if name in ("max_abs", "max_rel", "rtol_needed", "ulp"):
            total[name] = values.max()
        elif name in ("mismatch_at", "agreeing_at"):
            total[name] = values.min()
        elif name == "max_abs_at":
            total[name] = values[rows["max_abs"] == rows["max_abs"].max()].min()
        elif name not in ("mean_a", "mean_b", "m2_a", "m2_b", "co"):
            total[name] = values.sum()
    count = rows["values"]
    mean_a, total["m2_a"], apart_a = _centred(count, rows["mean_a"], rows["m2_a"])
    mean_b, total["m2_b"], apart_b = _centred(count, rows["mean_b"], rows["m2_b"])
    pivots = {side: float(rows[f"pivot_{side}"][0]) for side in ("a", "b")}
    total["mean_a"], total["mean_b"] = pivots["a"] + mean_a, pivots["b"] + mean_b
    total["co"] = (rows["co"] + count * apart_a * apart_b).sum()
    for side in ("a", "b"):
        of_side, to = rows[side], total[side]
        mean, to["m2"], _ = _centred(of_side["count"], of_side["mean"], of_side["m2"])
        to["mean"] = pivots[side] + mean if of_side["count"].any() else 0.0
        to["min"], to["max"] = of_side["min"].min(), of_side["max"].max()
        for name in ("count", "zeros", "nan", "inf"):
            to[name] = of_side[name].sum()
    return total


def _centred(count: Any, mean: Any, m2: Any) -> tuple[float, float, Any]:
    """The mean of all, the squares about it, and how far each block's mean is from it."""
    all_of_them = count.sum()
    if all_of_them == 0:
        return 0.0, 0.0, mean * 0
    pivot = mean[numpy.argmax(count)]
    middle = pivot + (count * (mean - pivot)).sum() / all_of_them
    apart = numpy.where(count > 0, mean - middle, 0.0)
    return float(middle), float((m2 + count * apart * apart).sum()), apart
