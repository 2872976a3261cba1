"""trace.json, schema tensordiff.trace/1: who called whom, with which tensors."""

from __future__ import annotations

import json
import os
import pathlib
import platform
from typing import Any

import torch

from .observe import Observer
from .source import lines_of
from .torch_versions import backward_runs, named_tensors, storage_of
from .trace_file import SCHEMA
from .version import __version__


class TraceWriter:
    """Collects the calls and tensors of a run, and writes them."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self.calls: list[dict[str, Any]] = []
        self.tensors: list[dict[str, Any]] = []
        self._parameters: dict[int, str] = {}
        self._facts: list[dict[str, Any]] = []
        self._read_parameters(observer.model)

    def add(self, record: dict[str, Any]) -> int:
        number = len(self.calls)
        record["id"] = number
        if backward_runs():  # A backward runs: checkpointing.
            record["phase"] = "recompute"
        self.calls.append(record)
        return number

    def parameter_name(self, tensor: torch.Tensor) -> str | None:
        """The name of a parameter or buffer of the model."""
        return self._parameters.get(id(tensor))

    def _read_parameters(self, model: torch.nn.Module) -> None:
        first: dict[Any, dict[str, Any]] = {}
        for name, tensor in named_tensors(model):
            self._parameters.setdefault(id(tensor), name)
            strided = tensor.layout == torch.strided
            place = (storage_of(tensor)._cdata, tensor.storage_offset()) if strided \
                else id(tensor)
            if place in first and tensor.numel() > 0:
                first[place].setdefault("tied", []).append(name)
                continue
            first[place] = {"name": name, "dtype": str(tensor.dtype).removeprefix("torch."),
                            "shape": list(tensor.shape)}
            self._facts.append(first[place])

    def write(self, path: pathlib.Path, *, rank: int, world: int | None, complete: bool,
              errors: list[dict[str, Any]], compiled: str) -> None:
        """Writes a file beside and renames it: a trace.json is always whole."""
        observer = self._observer
        modules = [{"path": path, "class": type(module).__name__,
                    **({"aliases": observer.aliases[module]} if module in observer.aliases else {})}
                   for module, path in observer.paths.items()]
        head = {
            "schema": SCHEMA, "tool": f"tensordiff {__version__}", "framework": _framework(),
            "rank": rank, "world": world, "complete": complete,
            "model": _model(observer.model), "notes": _notes(observer, compiled),
            "errors": errors, "modules": modules, "parameters": self._facts}
        beside = path.with_name("trace.json.part")
        with open(beside, "w", encoding="utf-8") as file:
            file.write("{")
            for key, value in head.items():
                file.write(f"{json.dumps(key)}: {_text(value)},\n")
            for key, rows in (("tensors", self.tensors), ("calls", self.calls)):
                file.write(f'"{key}": [' + ("\n" if rows else ""))
                for at, row in enumerate(rows):
                    if "source" in row:
                        row = {**row, "source": lines_of(row["source"])}
                    file.write(_text(row) + (",\n" if at + 1 < len(rows) else "\n"))
                file.write("]" + (",\n" if key == "tensors" else "}\n"))
        os.replace(beside, path)


def _text(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False, default=str)


def _framework() -> dict[str, Any]:
    return {
        "torch": torch.__version__, "python": platform.python_version(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "threads": torch.get_num_threads(),
        "tf32": bool(torch.backends.cuda.matmul.allow_tf32),
        "deterministic": torch.are_deterministic_algorithms_enabled()}


def _model(model: torch.nn.Module) -> dict[str, Any]:
    facts: dict[str, Any] = {"class": type(model).__name__}
    config = getattr(model, "config", None)
    if config is not None:
        try:
            to_dict = getattr(config, "to_dict", None)
            plain: Any = getattr(config, "__dict__", {}) if to_dict is None else to_dict()
            facts["config"] = json.loads(json.dumps(plain, default=str, allow_nan=False))
        except (TypeError, ValueError):
            facts["config"] = {}
    return facts


def _notes(observer: Observer, compiled: str) -> list[str]:
    notes: list[str] = []
    classes = {type(module).__name__ for module in observer.paths}
    if "OptimizedModule" in classes and compiled == "eager":
        notes.append("the model is compiled; the capture ran its eager code")
    if "TransformerEncoderLayer" in classes:
        notes.append("hooks turn off the fast path of nn.TransformerEncoderLayer: "
                     "plain runs may differ by rounding")
    return notes
