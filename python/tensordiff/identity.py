"""Which tensor is which: a number for each value that a run computes.

A tensor object tells little: views make new objects of old values, and an object that is written
in place has a new value. A value is known by the storage it lies in, the place and strides there,
the dtype, and the number of writes to the storage. The address of a storage cannot come again
while a weak reference to it is held: that lets the bytes go and keeps only the small object.
"""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from .torch_versions import storage_of

Key = tuple[Any, ...]

# Below this many storages it is not worth looking for dead ones.
_SWEEP_MIN = 4096


class _Storage:
    __slots__ = ("cdata", "keys", "last_write", "ref", "writes")

    def __init__(self, ref: StorageWeakRef) -> None:
        untyped: Any = ref
        self.ref = ref
        self.cdata: int = untyped.cdata
        self.writes = 0  # Counted here in inference mode only, where torch does not count.
        self.keys: list[Key] = []
        self.last_write: int | None = None


class Identities:
    """Numbers tensors from 0 in the order in which they are first seen."""

    def __init__(self) -> None:
        self.count = 0
        self._ids: dict[Key, int] = {}
        self._storages: dict[int, _Storage] = {}
        self._sweep_at = _SWEEP_MIN
        # Sparse tensors have no storage: the object itself stands for the value.
        self._objects: dict[int, tuple[weakref.ref[torch.Tensor], int]] = {}

    def find(self, tensor: torch.Tensor) -> int | None:
        """The number of a tensor that was seen before."""
        if not _has_storage(tensor):
            ref, number = self._objects.get(id(tensor), (None, -1))
            return number if ref is not None and ref() is tensor else None
        return self._ids.get(self._key(tensor)[0])

    def of(self, tensor: torch.Tensor) -> tuple[int, bool, int | None]:
        """The number of a tensor, whether it is new, and which call wrote to its storage last,
        through whatever view."""
        if not _has_storage(tensor):
            found = self.find(tensor)
            if found is not None:
                return found, False, None
            self._objects[id(tensor)] = (weakref.ref(tensor), self.count)
            self.count += 1
            return self.count - 1, True, None
        key, storage = self._key(tensor)
        found = self._ids.get(key)
        if found is not None:
            return found, False, storage.last_write
        number = self.count
        self.count += 1
        storage.keys.append(key)
        self._ids[key] = number
        if len(self._storages) > self._sweep_at:
            self._sweep()
        return number, True, storage.last_write

    def written(self, tensor: torch.Tensor, call: int | None = None) -> None:
        """Tells that the storage of this tensor was written in place, by that call."""
        if not _has_storage(tensor):
            return
        storage = self._storage(tensor)
        storage.last_write = call
        if tensor.is_inference():
            storage.writes += 1

    def _storage(self, tensor: torch.Tensor) -> _Storage:
        untyped = storage_of(tensor)
        address: int = untyped._cdata
        storage = self._storages.get(address)
        if storage is None:
            storage = self._storages[address] = _Storage(StorageWeakRef(untyped))
        return storage

    def _key(self, tensor: torch.Tensor) -> tuple[Key, _Storage]:
        storage = self._storage(tensor)
        version = -1 - storage.writes if tensor.is_inference() else tensor._version
        # conj() and the imaginary part of it share all but a flag with what they are made of.
        flags = (tensor.is_conj(), tensor.is_neg())
        return (storage.cdata, tensor.storage_offset(), tensor.shape, tensor.stride(),
                tensor.dtype, version, flags), storage

    def _sweep(self) -> None:
        for address in [a for a, s in self._storages.items() if s.ref.expired()]:
            for key in self._storages.pop(address).keys:
                self._ids.pop(key, None)
        self._sweep_at = max(_SWEEP_MIN, 2 * len(self._storages))


def _has_storage(tensor: torch.Tensor) -> bool:
    return tensor.layout == torch.strided and not tensor.is_quantized
