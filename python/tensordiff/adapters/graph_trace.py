"""Writes the folder of a capture whose run was not seen by hooks: tensors, and calls by names."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy

from ..arrays import DTYPES
from ..folder import prepare_folder
from ..golden import save
from ..trace_file import SCHEMA
from ..version import __version__


@dataclasses.dataclass
class Call:
    """One call, in the order of their ends: names of what it read and made."""

    kind: str
    """"function" or "module"."""
    name: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    path: str | None = None
    call: int = 0


def write_capture(folder: str | os.PathLike[str], values: Mapping[str, Any], calls: Sequence[Call],
                  *, framework: Mapping[str, Any], model: Mapping[str, Any],
                  parameters: Sequence[str] = (), notes: Sequence[str] = ()) -> None:
    """Tensors that cannot be saved are in the trace only, with the reason."""
    path = pathlib.Path(folder)
    prepare_folder(path)
    arrays = {name: value for name, value in values.items() if is_saved(value)}
    save(path / "tensors-00001.safetensors", arrays)
    known = set(parameters)
    ids: dict[str, int] = {}
    tensors: list[dict[str, Any]] = []

    def reference(name: str) -> Any:
        if not name:
            return None
        if name in known:
            return {"p": name}
        if name not in ids:
            ids[name] = len(tensors)
            tensors.append(_facts(name, values))
        return {"t": ids[name]}

    rows: list[dict[str, Any]] = []
    for at, call in enumerate(calls):
        place = {"path": call.path, "call": call.call} if call.path is not None else {}
        rows.append({"id": at, "end": at, "kind": call.kind, "name": call.name, "parent": None,
                     **place, "args": [reference(name) for name in call.inputs], "kwargs": {},
                     "out": {"l": [reference(name) for name in call.outputs]}})
    trace = {"schema": SCHEMA, "tool": f"tensordiff {__version__}", "framework": dict(framework),
             "rank": 0, "world": None, "complete": True, "model": dict(model),
             "notes": list(notes), "errors": [], "modules": [],
             "parameters": [{"name": name} for name in sorted(known)], "tensors": tensors,
             "calls": rows}
    beside = path / "trace.json.part"
    beside.write_text(json.dumps(trace), encoding="utf-8")
    os.replace(beside, path / "trace.json")


def is_array(value: Any) -> TypeGuard[numpy.ndarray[Any, Any]]:
    return isinstance(value, numpy.ndarray)


def is_saved(value: Any) -> bool:
    """Whether safetensors has the dtype."""
    return is_array(value) and value.dtype.name in DTYPES and value.dtype.name != "complex128"


def _facts(name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    value = values.get(name)
    facts: dict[str, Any] = {}
    if is_array(value):
        facts = {"dtype": value.dtype.name, "shape": list(value.shape)}
    if is_saved(value):
        facts["name"] = name
    elif name in values:
        facts["unsaved"] = type(value).__name__
    return facts
