"""Makes the files that bench.py compares, in safetensors and npy, with numpy alone."""
import json
import os
import struct

import numpy as np

CHUNK = 1 << 22


def to_bf16(values):
    """float32 rounded to nearest even, as the upper 16 bits."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def encode(values, dtype):
    if dtype == "BF16":
        return to_bf16(values)
    if dtype == "F8_E4M3":  # Any pattern but the two NaN; near the value is near enough for timing.
        return (np.clip(np.abs(values) * 16, 0, 0x7E).astype(np.uint8)
                | (np.signbit(values).astype(np.uint8) << 7))
    if dtype.startswith("F8_"):  # As above; codes with a full exponent are NaN or infinite in E5M2.
        return (np.clip(np.abs(values) * 16, 1, 0x7A).astype(np.uint8)
                | (np.signbit(values).astype(np.uint8) << 7))
    if dtype == "BOOL":
        return (values > 0).astype(np.uint8)
    if dtype == "U8":
        values = np.abs(values)
    types = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64,
             "I32": np.int32, "I16": np.int16, "I8": np.int8, "U8": np.uint8}
    return values.astype(types[dtype])


ITEM = {"F64": 8, "I64": 8, "F32": 4, "I32": 4, "BF16": 2, "F16": 2, "I16": 2, "I8": 1, "U8": 1,
        "BOOL": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1}


def chunks(count, seed, noise):
    """Normal float32 values, the same for the same seed; with noise, moved by a few roundings."""
    random = np.random.default_rng(seed)
    other = np.random.default_rng(seed + 1)
    for first in range(0, count, CHUNK):
        values = random.standard_normal(min(CHUNK, count - first), dtype=np.float32)
        if noise:
            values *= 1 + noise * other.standard_normal(values.size, dtype=np.float32)
        yield values


def safetensors(path, dtype, count, noise=0.0, shape=None, scale=1.0):
    header = json.dumps({"w": {"dtype": dtype, "shape": shape or [count],
                               "data_offsets": [0, count * ITEM[dtype]]}})
    header += " " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        for values in chunks(count, 1, noise):
            file.write(encode(values * scale if scale != 1 else values, dtype).tobytes())


def sparse(path, count, last):
    """float32 zeros that take no room on the disk, but for the last element."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [count], "data_offsets": [0, count * 4]}})
    header += " " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        file.truncate(file.tell() + count * 4)
        file.seek(-4, os.SEEK_END)
        file.write(struct.pack("<f", last))


def npy(path, side, noise=0.0, fortran=False):
    """A square float32 matrix; with `fortran`, column after column."""
    array = np.lib.format.open_memmap(path, "w+", np.float32, (side, side), fortran_order=fortran)
    flat = array.T.reshape(-1) if fortran else array.reshape(-1)
    first = 0
    for values in chunks(side * side, 1, noise):
        flat[first:first + values.size] = values
        first += values.size


def many_tensors(path, tensors, elements, noise=0.0):
    entries, size = {}, elements * 4
    for i in range(tensors):
        entries[f"model.layers.{i // 10}.part{i % 10}.weight"] = {
            "dtype": "F32", "shape": [elements], "data_offsets": [i * size, (i + 1) * size]}
    header = json.dumps(entries)
    header += " " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        for values in chunks(tensors * elements, 1, noise):
            file.write(values.tobytes())


def once(path, make, *arguments, **options):
    """Makes a file unless it is there, whole."""
    if not os.path.exists(path):
        make(path + ".part", *arguments, **options)
        os.rename(path + ".part", path)
    return path


def warm(*paths):
    """Reads files into the page cache."""
    for path in paths:
        with open(path, "rb") as file:
            while file.read(8 << 20):
                pass
