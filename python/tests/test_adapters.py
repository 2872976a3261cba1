"""Captures of what is not PyTorch, each where its package is installed."""

from __future__ import annotations

import pathlib

import numpy
import pytest

import tensordiff
from tensordiff import read_trace


def test_onnx(tmp_path: pathlib.Path) -> None:
    onnx = pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    from tensordiff.adapters.onnx import capture_onnx
    helper, kind = onnx.helper, onnx.TensorProto.FLOAT
    weight = numpy.random.default_rng(0).standard_normal((4, 3)).astype("float32")

    def model(scale: float) -> object:
        nodes = [helper.make_node("MatMul", ["x", "w"], ["layers.0.up"]),
                 helper.make_node("Mul", ["layers.0.up", "s"], ["layers.0.scaled"]),
                 helper.make_node("Relu", ["layers.0.scaled"], ["y"])]
        constants = [onnx.numpy_helper.from_array(weight, "w"),
                     onnx.numpy_helper.from_array(numpy.float32(scale), "s")]
        graph = helper.make_graph(
            nodes, "small", [helper.make_tensor_value_info("x", kind, [2, 4])],
            [helper.make_tensor_value_info("y", kind, [2, 3])], constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        made.ir_version = 8
        return made

    x = numpy.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)
    out = capture_onnx(model(1.0), {"x": x}, tmp_path / "a")
    assert numpy.allclose(out["y"], numpy.maximum(x @ weight, 0), atol=1e-6)
    capture_onnx(model(0.5), {"x": x}, tmp_path / "b")
    calls = read_trace(tmp_path / "a")["calls"]
    assert [call["name"] for call in calls] == ["MatMul", "Mul", "Relu"]
    assert calls[1]["args"] == [calls[0]["out"]["l"][0], {"p": "s"}]
    report = tensordiff.compare(tmp_path / "a", tmp_path / "b")
    assert report.first_divergence is not None
    assert report.first_divergence.name == "layers.0.scaled"
