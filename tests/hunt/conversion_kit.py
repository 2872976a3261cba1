"""Conversions that remember what each tensor was made of, so that mistakes can be planted in one.

A converter takes tensors of A by Kit.get(), changes them with the steps below and puts them under
their names in B with Kit.put(). Each step can be left out for one tensor (Kit.skip).
"""

import json
import re
import struct

import numpy as np


def pattern_of(name):
    return re.sub(r"\d+", "#", name)


class Made:
    """A tensor of B, and the names of A that it was made of."""

    def __init__(self, value, sources):
        self.value = value
        self.sources = frozenset(sources)


class Kit:
    def __init__(self, a, skip=None):
        self.a, self.b = a, {}
        self.skip = skip or {}  # Step to the names of A that it leaves out.
        self.done = {}  # Step to all that went through it.
        self.unread = set(a)

    def has(self, name):
        return name in self.a

    def get(self, name):
        self.unread.discard(name)
        return Made(self.a[name], [name])

    def put(self, name, made):
        assert name not in self.b, name
        self.b[name] = made

    def step(self, step, made, change, silent=True):
        """A change that a mistake may leave out where the shape stays."""
        value = change(made.value)
        if value.shape == made.value.shape and not np.array_equal(value, made.value):
            self.done.setdefault(step, []).append(made.sources)
        if made.sources in self.skip.get(step, ()) and value.shape == made.value.shape:
            value = made.value
        return Made(value, made.sources)

    def t(self, made):
        return self.step("transpose", made, lambda value: value.T if value.ndim == 2 else value)

    def axes(self, made, *order):
        return self.step("axes", made, lambda value: value.transpose(order))

    def reshape(self, made, *shape):
        return Made(made.value.reshape(shape), made.sources)

    def add(self, made, number):
        return self.step("offset", made, lambda value: value + np.float32(number))

    def map(self, made, function):
        return Made(function(made.value), made.sources)

    def to_pairs(self, made, head):
        """Rows of q or k: halves of each head become neighbours."""

        def change(value):
            shape = value.shape
            return value.reshape(-1, 2, head // 2, *shape[1:]).swapaxes(1, 2).reshape(shape)

        return self.step("rope", made, change)

    def to_halves(self, made, head):
        def change(value):
            shape = value.shape
            return value.reshape(-1, head // 2, 2, *shape[1:]).swapaxes(1, 2).reshape(shape)

        return self.step("rope", made, change)

    def join(self, parts, axis=0):
        sources = frozenset().union(*(part.sources for part in parts))
        shapes = {part.value.shape for part in parts}
        values = [part.value for part in parts]
        if len(shapes) == 1 and len(parts) < 5:
            self.done.setdefault("order", []).append(sources)
        if sources in self.skip.get("order", ()):
            values[-1], values[-2] = values[-2], values[-1]
        return Made(np.concatenate(values, axis), sources)

    def stack(self, parts, axis=0):
        sources = frozenset().union(*(part.sources for part in parts))
        values = [part.value for part in parts]
        self.done.setdefault("stack", []).append(sources)
        if sources in self.skip.get("stack", ()):
            values[-1], values[-2] = values[-2], values[-1]
        return Made(np.stack(values, axis), sources)

    def by_head(self, parts, heads):
        """q, k and v, each of some heads, as groups of one key head with its queries."""
        sources = frozenset().union(*(part.sources for part in parts))
        pieces = [part.value.reshape(heads, -1, *part.value.shape[1:]) for part in parts]
        value = np.concatenate(pieces, 1)
        value = value.reshape(-1, *value.shape[2:])
        made = Made(np.concatenate([part.value for part in parts]), sources)
        return self.step("by_head", made, lambda _: value)

    def cut(self, made, sizes, axis=0):
        """The parts of a fused tensor."""
        pieces = np.split(made.value, np.cumsum(sizes)[:-1], axis)
        return [Made(np.ascontiguousarray(piece), made.sources) for piece in pieces]


def in_half(b):
    return {
        name: Made(
            (
                made.value.astype(np.float16)
                if made.value.dtype == np.float32 and made.value.ndim > 1
                else made.value
            ),
            made.sources,
        )
        for name, made in b.items()
    }


DTYPES = {"float32": "F32", "float16": "F16", "int64": "I64", "bfloat16": "BF16"}


def write_safetensors(path, tensors):
    header, data, at = {}, [], 0
    for name, value in tensors.items():
        raw = np.ascontiguousarray(value).tobytes()
        header[name] = {
            "dtype": DTYPES[str(value.dtype)],
            "shape": list(value.shape),
            "data_offsets": [at, at + len(raw)],
        }
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data))


def _text(text):
    raw = text.encode()
    if len(raw) < 32:
        return bytes([0xA0 + len(raw)]) + raw
    return (
        b"\xd9" + bytes([len(raw)]) + raw
        if len(raw) < 256
        else b"\xda" + struct.pack(">H", len(raw)) + raw
    )


def _number(number):
    return bytes([number]) if number < 128 else b"\xce" + struct.pack(">I", number)


def _packed(node):
    if isinstance(node, dict):
        return (
            b"\xde"
            + struct.pack(">H", len(node))
            + b"".join(_text(key) + _packed(value) for key, value in node.items())
        )
    inner = (
        b"\x93"
        + bytes([0x90 + node.ndim])
        + b"".join(_number(size) for size in node.shape)
        + _text(str(node.dtype))
    )
    raw = np.ascontiguousarray(node).tobytes()
    inner += b"\xc6" + struct.pack(">I", len(raw)) + raw
    return b"\xc9" + struct.pack(">I", len(inner)) + b"\x01" + inner


def write_msgpack(path, tensors):
    """As Flax writes it: nested maps by the parts of the names."""
    root = {}
    for name, value in tensors.items():
        node = root
        *folders, leaf = name.split("/")
        for folder in folders:
            node = node.setdefault(folder, {})
        node[leaf] = value
    path.write_bytes(_packed(root))


def write_npz(path, tensors):
    with open(path, "wb") as file:
        np.savez(file, **tensors)


def write_gguf(path, tensors, architecture):
    text = lambda value: struct.pack("<Q", len(value.encode())) + value.encode()
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), 1)
    out += text("general.architecture") + struct.pack("<I", 8) + text(architecture)
    data, at = [], 0
    for name, value in tensors.items():
        out += text(name) + struct.pack("<I", value.ndim)
        out += b"".join(struct.pack("<Q", size) for size in reversed(value.shape))
        kind = {"float32": 0, "float16": 1}[str(value.dtype)]
        out += struct.pack("<IQ", kind, at)
        raw = np.ascontiguousarray(value).tobytes()
        raw += b"\0" * (-len(raw) % 32)
        data.append(raw)
        at += len(raw)
    out += b"\0" * (-len(out) % 32)
    path.write_bytes(out + b"".join(data))
