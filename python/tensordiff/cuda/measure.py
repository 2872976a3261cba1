"""The sums over a pair of CUDA tensors, from which the engine makes its metrics."""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy
import torch

from .compiler import Kernel, kernel

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
# B's squares come from A's in packed.cu: below this part of them 3 of 16 digits are lost.
_SMALL = 2.0 ** -10
# Above this the guess of a reciprocal in fast.cu is no normal float.
_LARGE = 8e37

# Of a block, and blocks on each multiprocessor: the fastest of five on an H200 (bench/cuda.py).
_THREADS = 512
_BLOCKS = 1
_STAGES = 4  # Vectors on their way to a thread.
_UNROLL = {"F32": 1, "BF16": 4, "F16": 2}  # Copies of the loop's body.
_COPIES_AHEAD = (8, 0)  # From this device on memory is copied while threads compute.
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
            sums = total(_measure_fast(a, b, type_a, atol, rtol))
            if _is_sound(sums, _is_packed(type_a, a.device.index)):
                return sums
        found = _room(_blocks_any(a.numel(), a.device.index), a.device)
        return total(_start_any(a, b, (type_a, type_b), 0, atol, rtol, found))


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """In row-major order, with the signs that torch puts off."""
    return tensor.detach().resolve_conj().resolve_neg().contiguous()


def _together(type_a: str, type_b: str) -> bool:
    alone = ("I64", "U64", *_BYTES_WITH_STEPS)
    return type_a == type_b or type_a not in alone and type_b not in alone


def _is_packed(kind: str, device: int) -> bool:
    return kind == "BF16" and _capability(device) >= _PACKED


def _is_sound(sums: Any, packed: bool) -> bool:
    """Whether all values were such as the fast kernel is made for."""
    if packed:
        count = max(1.0, float(sums["count"]))
        m2 = [float(sums[f"m2_{side}"]) / count for side in ("a", "b")]
        power = [float(sums[f"mean_{side}"]) ** 2 + of_side for side, of_side in zip("ab", m2)]
        small = m2[1] < _SMALL * m2[0] or power[1] < _SMALL * power[0]
        return bool(numpy.isfinite(sums["d_abs"])) and not small
    largest = max(abs(float(sums[side][end])) for side in ("a", "b") for end in ("min", "max"))
    return bool(numpy.isfinite(sums["d_abs"])) and largest < _LARGE


def _measure_fast(a: torch.Tensor, b: torch.Tensor, kind: str, atol: float, rtol: float) -> Any:
    device, row = a.device.index, 32 * _FAST[kind]
    rows = a.numel() // row if a.data_ptr() % 16 == 0 and b.data_ptr() % 16 == 0 else 0
    blocks = min(_BLOCKS * _multiprocessors(device), -(-rows // (_THREADS // 32)))
    left = a.numel() - rows * row
    found = _room(blocks + _blocks_any(left, device) * (left > 0 or not rows), a.device)
    if rows:
        stages = _STAGES if _capability(device) >= _COPIES_AHEAD else 2
        _fast_kernel(device, kind, _THREADS, _BLOCKS, stages, _UNROLL[kind]).start(
            blocks, _THREADS, (
                ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(b.data_ptr()), ctypes.c_uint64(rows),
                ctypes.c_double(atol), ctypes.c_double(rtol), ctypes.c_void_p(found.data_ptr())),
            shared=stages * 2 * _THREADS * 16)
    if len(found) > blocks:
        _start_any(a, b, (kind, kind), rows * row, atol, rtol, found[blocks:])
    return found


@functools.cache
def _fast_kernel(device: int, kind: str, threads: int, blocks: int, stages: int,
                 unroll: int) -> Kernel:
    which = "packed" if _is_packed(kind, device) else "fast"
    return kernel(device, f"{which}.cu", f"measure_{which}", (
        kind, f"THREADS={threads}", f"BLOCKS={blocks}", f"STAGES={stages}", f"UNROLL={unroll}"))


@functools.cache
def _capability(device: int) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)


def _blocks_any(count: int, device: int) -> int:
    return max(1, min(_multiprocessors(device), -(-count // _THREADS_ANY)))


def _start_any(a: torch.Tensor, b: torch.Tensor, types: tuple[str, str], first: int, atol: float,
               rtol: float, found: torch.Tensor) -> torch.Tensor:
    compiled = kernel(a.device.index, "general.cu", "measure_any", (
        f"A={types[0]}", f"B={types[1]}", f"STEPS={_steps(*types)}", f"THREADS={_THREADS_ANY}"))
    compiled.start(len(found), _THREADS_ANY, (
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
    cuda: Any = torch.cuda
    return int(cuda.get_device_properties(device).multi_processor_count)


def total(parts: torch.Tensor) -> Any:
    """One record from those of all blocks."""
    found = _room(1, parts.device)
    kernel(parts.device.index, "total.cu", "measure_total", ("THREADS=32",)).start(1, 32, (
        ctypes.c_void_p(parts.data_ptr()), ctypes.c_uint32(len(parts)),
        ctypes.c_void_p(found.data_ptr())))
    return from_zero(found.cpu().numpy().view(LAYOUT)[0, 0])


def from_zero(sums: Any) -> Any:
    """Means that count from 0; in the kernels they count from the pivots."""
    for side in ("a", "b"):
        sums[f"mean_{side}"] += sums[f"pivot_{side}"]
        if sums[side]["count"]:
            sums[side]["mean"] += sums[f"pivot_{side}"]
    return sums
