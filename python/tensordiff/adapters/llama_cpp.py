"""What llama.cpp's llama-eval-callback prints, as a capture.

    from tensordiff.adapters.llama_cpp import capture_eval_callback, corners
    capture_eval_callback("eval.log", "port")

The text has the first and last three values along each axis, and the sum of all. So a tensor is
kept as its corners, with shape (6, 6) for a matrix; corners(array) makes the same of a reference:

    tensordiff.compare({"l_out-0": corners(hidden)}, "port")

Four decimals are printed: compare with atol=5e-5 or more.
"""

from __future__ import annotations

import dataclasses
import os
import pathlib
import re
from collections.abc import Iterator
from typing import Any

import numpy

from .graph_trace import Call, write_capture

_EDGE = 3  # Values at each end of an axis.
# "name = (f32)  OP(source{4, 2, 1, 1}, other{...}}) = {4, 2, 1, 1}"
_HEAD = re.compile(r"^\s*\S*?:?\s+(?P<name>\S.*?) = \((?P<dtype>\w+)\)\s+(?P<op>\w+)\("
                   r"(?P<sources>.*)\) = \{(?P<shape>[\d, ]+)\}\s*$")
_SOURCE = re.compile(r"([^{},][^{}]*)\{[\d, ]*\}")
_NUMBER = re.compile(r"-?(?:\d+\.\d+|inf|nan)")


class EvalTextError(ValueError):
    """A text that is not what llama-eval-callback prints."""


@dataclasses.dataclass
class Printed:
    """One tensor of the text. The shape has the fastest axis last, as in PyTorch."""

    name: str
    dtype: str
    op: str
    sources: list[str]
    shape: tuple[int, ...]
    corners: Any
    sum: float | None


def read_eval_callback(text: str) -> Iterator[Printed]:
    """All tensors of the text, in the order of computing."""
    head: re.Match[str] | None = None
    numbers: list[float] = []
    for line in text.splitlines():
        found = _HEAD.match(line)
        if found:
            if head is not None:
                yield _printed(head, numbers, None)
            head, numbers = found, []
        elif head is not None and line.strip().startswith("sum = "):
            yield _printed(head, numbers, float(line.partition("= ")[2]))
            head = None
        elif head is not None and line.lstrip().startswith("["):
            numbers += [float(each) for each in _NUMBER.findall(line)]
    if head is not None:
        yield _printed(head, numbers, None)


def _printed(head: re.Match[str], numbers: list[float], total: float | None) -> Printed:
    sizes = [int(each) for each in head["shape"].split(",")]
    shape = tuple(reversed(sizes))
    while len(shape) > 1 and shape[0] == 1:
        shape = shape[1:]
    kept = tuple(min(size, 2 * _EDGE) for size in shape)
    if len(numbers) != int(numpy.prod(kept)):
        raise EvalTextError(f"{head['name']}: {len(numbers)} values printed, but its shape "
                            f"{list(shape)} needs {int(numpy.prod(kept))}")
    values = numpy.array(numbers, dtype=numpy.float32).reshape(kept)
    sources = [each.strip(" ,") for each in _SOURCE.findall(head["sources"])]
    return Printed(head["name"].strip(), head["dtype"], head["op"], sources, shape, values, total)


def corners(array: Any) -> Any:
    """The first and last three values along each axis of an array, leading axes of 1 left out."""
    kept: Any = numpy.asarray(array)
    while kept.ndim > 1 and kept.shape[0] == 1:
        kept = kept[0]
    for axis, size in enumerate(kept.shape):
        if size > 2 * _EDGE:
            places = [*range(_EDGE), *range(size - _EDGE, size)]
            kept = numpy.take(kept, places, axis)
    return numpy.ascontiguousarray(kept)


def capture_eval_callback(text: str | os.PathLike[str], folder: str | os.PathLike[str]) -> int:
    """Writes the tensors of a text file to a folder; returns how many. The last call of each name
    counts, since llama.cpp computes one batch after another."""
    path = pathlib.Path(text)
    found = list(read_eval_callback(path.read_text(encoding="utf-8", errors="replace")))
    if not found:
        raise EvalTextError(f"{path}: no tensor of llama-eval-callback in it")
    names = {each.name for each in found}
    calls = [Call("function", each.op, [name for name in each.sources if name in names],
                  [each.name]) for each in found]
    write_capture(folder, {each.name: each.corners for each in found}, calls,
                  framework={"producer": "llama-eval-callback"}, model={"class": "llama.cpp"},
                  notes=["tensors are corners: the first and last 3 values along each axis"])
    return len(names)
