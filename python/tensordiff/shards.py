"""Writes tensors as they come into safetensors files of bounded size.

A file keeps 64 KiB for its header, which is filled in when the file closes. The format allows no
holes, and readers want aligned tensors: those whose size is no multiple of 8 bytes are held back
while they are small, and go last, the best aligned first; a large one gets a file of its own.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any, BinaryIO

import torch

SHARD_BYTES = 256 << 20
HEADER_BYTES = 64 << 10
_HELD_BYTES = 64 << 10
_ALIGNMENT = 8
_STAGING_BYTES = 4 << 20

# The dtypes of the format by torch's names; what torch lacks in an older version is left out.
_NAMES = {
    "float64": "F64", "float32": "F32", "float16": "F16", "bfloat16": "BF16",
    "int64": "I64", "int32": "I32", "int16": "I16", "int8": "I8", "uint8": "U8",
    "uint64": "U64", "uint32": "U32", "uint16": "U16", "bool": "BOOL", "complex64": "C64",
    "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0",
}
DTYPES: dict[torch.dtype, str] = {
    getattr(torch, name): stored for name, stored in _NAMES.items() if hasattr(torch, name)}


class ShardWriter:
    """Appends tensors to `folder`/tensors-00001.safetensors and its successors."""

    def __init__(self, folder: pathlib.Path, shard_bytes: int = SHARD_BYTES) -> None:
        self.folder = folder
        self.shard_bytes = shard_bytes
        self.files: list[str] = []
        self.bytes = 0
        self._file: BinaryIO | None = None
        self._entries: dict[str, dict[str, Any]] = {}
        self._held: list[tuple[str, torch.Tensor]] = []
        self._offset = 0
        self._header = 0
        self._held_bytes = 0
        self._staging: torch.Tensor | None = None

    def add(self, name: str, tensor: torch.Tensor) -> None:
        """Writes a strided tensor of a dtype in DTYPES; its bytes are copied before this returns.

        Raises OSError where the disk does not take them.
        """
        size = tensor.numel() * tensor.element_size()
        entry = len(json.dumps(name)) + 128 + 24 * tensor.dim()  # Never less than it will take.
        total = self._offset + self._held_bytes + size
        full = self._header + entry > HEADER_BYTES - 256 or total > self.shard_bytes
        if self._file is not None and full:
            self.close()
        if size % _ALIGNMENT == 0:
            self._open()
            self._write(name, tensor)
        elif size < _HELD_BYTES:
            self._open()
            self._held.append((name, tensor.detach().to("cpu", copy=True)))
            self._held_bytes += size
        else:
            self.close()
            self._open()
            self._write(name, tensor)
            self.close()
        self._header += entry

    def close(self) -> None:
        """Ends the current file: what was held back, then the header."""
        file, self._file = self._file, None
        if file is None:
            return
        try:
            self._file = file
            for name, tensor in sorted(self._held, key=lambda held: -_alignment(held[1])):
                self._write(name, tensor)
            header: dict[str, Any] = {"__metadata__": {"format": "pt"}, **self._entries}
            text = json.dumps(header, separators=(",", ":")).encode()
            room = HEADER_BYTES - 8
            assert len(text) <= room
            file.seek(0)
            _write_all(file, memoryview(room.to_bytes(8, "little") + text.ljust(room)))
        finally:
            self._file = None
            self._held, self._held_bytes = [], 0
            file.close()

    def _open(self) -> None:
        if self._file is not None:
            return
        name = f"tensors-{len(self.files) + 1:05}.safetensors"
        self._file = open(self.folder / name, "wb", buffering=0)
        self.files.append(name)
        self._entries, self._held = {}, []
        self._offset = self._header = self._held_bytes = 0
        self._file.seek(HEADER_BYTES)

    def _write(self, name: str, tensor: torch.Tensor) -> None:
        assert self._file is not None
        start = self._offset
        for part in self._bytes_of(tensor.detach()):
            _write_all(self._file, part)
            self._offset += len(part)
        self.bytes += self._offset - start
        self._entries[name] = {"dtype": DTYPES[tensor.dtype], "shape": list(tensor.shape),
                               "data_offsets": [start, self._offset]}

    def _bytes_of(self, tensor: torch.Tensor) -> Any:
        """The bytes in row-major order, a piece at a time, through one buffer where needed."""
        if tensor.numel() == 0:
            return
        plain = tensor.device.type == "cpu" and not tensor.is_conj() and not tensor.is_neg()
        if plain and tensor.is_contiguous():
            yield _memory(tensor.view(-1).view(torch.uint8))
            return
        if self._staging is None:
            with torch.inference_mode(False):  # It is written to outside of that mode too.
                self._staging = torch.empty(_STAGING_BYTES, dtype=torch.uint8, device="cpu")
        yield from _staged(tensor, self._staging)


def _staged(tensor: torch.Tensor, staging: torch.Tensor) -> Any:
    size = tensor.numel() * tensor.element_size()
    if size <= staging.numel():
        room = staging[:size].view(tensor.dtype).view(tensor.shape)
        room.copy_(tensor)
        yield _memory(staging[:size])
        return
    if tensor.dim() == 1:
        step = staging.numel() // tensor.element_size()
        for begin in range(0, tensor.numel(), step):
            yield from _staged(tensor[begin:begin + step], staging)
        return
    rows = max(1, staging.numel() // (size // tensor.shape[0]))
    for begin in range(0, tensor.shape[0], rows):
        part = tensor[begin:begin + rows]
        yield from _staged(part if part.shape[0] > 1 else part[0], staging)


def _memory(flat: torch.Tensor) -> memoryview:
    array: Any = flat.numpy()
    return memoryview(array)


def _alignment(tensor: torch.Tensor) -> int:
    size = tensor.numel() * tensor.element_size()
    return size & -size


def _write_all(file: BinaryIO, data: memoryview) -> None:
    while len(data) > 0:
        data = data[file.write(data):]
