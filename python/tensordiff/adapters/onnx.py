"""Every intermediate result of an ONNX model, run by ONNX Runtime, as a capture.

    from tensordiff.adapters.onnx import capture_onnx
    capture_onnx("model.onnx", {"input": array}, "port")

Compare the folder with that of tensordiff.capture() of the PyTorch model: tensordiff ref port.
Needs onnx and onnxruntime.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy

from ..untyped import package
from .graph_trace import Call, write_capture


def capture_onnx(model: Any, inputs: Mapping[str, Any], folder: str | os.PathLike[str]) -> Any:
    """Runs a model (a path or a ModelProto) and writes tensors and trace.json to the folder.

    Optimisations of the graph are off, so that all of its nodes are there. Returns the outputs of
    the model by name.
    """
    onnx = package("onnx")
    loaded: Any = onnx.load(os.fspath(model)) if isinstance(model, (str, os.PathLike)) \
        else onnx.ModelProto.FromString(model.SerializeToString())
    wanted = [output.name for output in loaded.graph.output]
    names = _show_all(loaded)
    results = _run(loaded, inputs, names)
    graph = loaded.graph
    calls = [Call("function", node.op_type, list(node.input), list(node.output))
             for node in graph.node]
    write_capture(folder, results, calls, framework={"onnx_producer": loaded.producer_name},
                  model={"class": graph.name}, parameters=[each.name for each in graph.initializer])
    return {name: results[name] for name in wanted}


def _show_all(model: Any) -> list[str]:
    """Makes every result of a node an output of the graph."""
    onnx = package("onnx")
    shown = {output.name for output in model.graph.output}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in shown:
                model.graph.output.append(onnx.ValueInfoProto(name=name))
                shown.add(name)
    return [name for node in model.graph.node for name in node.output if name]


def _run(model: Any, inputs: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    onnxruntime = package("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session: Any = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                providers=["CPUExecutionProvider"])
    given = {key: numpy.asarray(value) for key, value in inputs.items()}
    return dict(zip(names, session.run(names, given)))
