"""Every intermediate result of an ONNX model, run by ONNX Runtime, as a capture.

    from tensordiff.adapters.onnx import capture_onnx
    capture_onnx("model.onnx", {"input": array}, "port")

Compare the folder with that of tensordiff.capture() of the PyTorch model: tensordiff ref port.
Needs onnx and onnxruntime.
"""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy

from ..arrays import DTYPES
from ..folder import prepare_folder
from ..golden import save
from ..trace_file import SCHEMA
from ..version import __version__


def capture_onnx(model: Any, inputs: Mapping[str, Any], folder: str | os.PathLike[str]) -> Any:
    """Runs a model (a path or a ModelProto) and writes tensors and trace.json to the folder.

    Optimisations of the graph are off, so that all of its nodes are there. Returns the outputs of
    the model by name.
    """
    import onnx  # pyright: ignore[reportMissingImports]
    path = pathlib.Path(folder)
    loaded: Any = onnx.load(os.fspath(model)) if isinstance(model, (str, os.PathLike)) \
        else onnx.ModelProto.FromString(model.SerializeToString())
    wanted = [output.name for output in loaded.graph.output]
    names = _show_all(loaded)
    results = _run(loaded, inputs, names)
    prepare_folder(path)
    arrays = {name: value for name, value in results.items() if _saved(value)}
    save(path / "tensors-00001.safetensors", arrays)
    _write_trace(path, loaded, results)
    return {name: results[name] for name in wanted}


def _show_all(model: Any) -> list[str]:
    """Makes every result of a node an output of the graph."""
    import onnx  # pyright: ignore[reportMissingImports]
    shown = {output.name for output in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in shown:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
                shown.add(name)
    return [name for node in model.graph.node for name in node.output if name]


def _run(model: Any, inputs: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    import onnxruntime  # pyright: ignore[reportMissingImports]
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                providers=["CPUExecutionProvider"])
    given = {key: numpy.asarray(value) for key, value in inputs.items()}
    return dict(zip(names, session.run(names, given)))


def _saved(value: Any) -> bool:
    return isinstance(value, numpy.ndarray) and value.dtype.name in DTYPES \
        and value.dtype.name != "complex128"


def _write_trace(path: pathlib.Path, model: Any, results: dict[str, Any]) -> None:
    graph = model.graph
    weights = {each.name for each in graph.initializer}
    ids: dict[str, int] = {}
    tensors: list[dict[str, Any]] = []

    def reference(name: str) -> Any:
        if not name:
            return None
        if name in weights:
            return {"p": name}
        if name not in ids:
            ids[name] = len(tensors)
            value = results.get(name)
            facts = {"dtype": value.dtype.name, "shape": list(value.shape)} \
                if isinstance(value, numpy.ndarray) else {}
            if _saved(value):
                facts["name"] = name
            elif name in results:
                facts["unsaved"] = type(value).__name__
            tensors.append(facts)
        return {"t": ids[name]}

    calls = [{"id": at, "end": at, "kind": "function", "name": node.op_type, "parent": None,
              "args": [reference(name) for name in node.input], "kwargs": {},
              "out": {"l": [reference(name) for name in node.output]}}
             for at, node in enumerate(graph.node)]
    trace = {"schema": SCHEMA, "tool": f"tensordiff {__version__}",
             "framework": {"onnx_producer": model.producer_name}, "rank": 0, "world": None,
             "complete": True, "model": {"class": graph.name}, "notes": [], "errors": [],
             "modules": [], "parameters": [{"name": name} for name in sorted(weights)],
             "tensors": tensors, "calls": calls}
    beside = path / "trace.json.part"
    beside.write_text(json.dumps(trace), encoding="utf-8")
    os.replace(beside, path / "trace.json")
