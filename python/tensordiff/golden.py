"""Arrays as a safetensors file, for the golden mode of the pytest plugin; numpy only."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
from typing import Any

import numpy

from .arrays import side_of

_STORED = {"f8_e4m3": "F8_E4M3", "f8_e5m2": "F8_E5M2", "f8_e8m0": "F8_E8M0", "bool": "BOOL"}


def save(path: pathlib.Path, value: Any) -> None:
    """Writes all arrays of a structure; the file is whole or not there."""
    arrays, alive = side_of(value)
    if isinstance(arrays, str):
        raise TypeError("golden values are arrays, not a path")
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    offset = 0
    # The widest first, so that each is aligned.
    for name, dtype, shape, strides, address in sorted(arrays, key=lambda a: -_size(a[1])):
        if dtype in ("c128", "f8_e4m3fnuz", "f8_e5m2fnuz"):
            raise TypeError(f"{name}: safetensors has no dtype {dtype}")
        data = _bytes(_size(dtype), shape, strides, address)
        header[name] = {"dtype": _STORED.get(dtype, dtype.upper()), "shape": shape,
                        "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
        parts.append(data)
    del alive
    text = json.dumps(header).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    with open(beside, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.writelines(parts)
    os.replace(beside, path)


def _size(dtype: str) -> int:
    if dtype == "bool" or dtype.startswith("f8"):
        return 1
    return int(dtype.lstrip("iufcb")) // 8


def _bytes(size: int, shape: list[int], strides: list[int], address: int) -> bytes:
    if 0 in shape:
        return b""
    last = sum((n - 1) * step for n, step in zip(shape, strides))
    memory: Any = (ctypes.c_char * ((last + 1) * size)).from_address(address)
    flat = numpy.frombuffer(memory, dtype=f"V{size}")
    view = numpy.lib.stride_tricks.as_strided(flat, shape, [step * size for step in strides])
    return view.tobytes()
