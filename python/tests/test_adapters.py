"""Captures of what is not PyTorch, each where its package is installed."""

from __future__ import annotations

import importlib.util
import pathlib
import subprocess
import sys

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


def test_transformers(tmp_path: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    from tensordiff.adapters.transformers import capture_transformers
    torch.manual_seed(0)
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=96, n_embd=16, n_layer=2, n_head=2, n_positions=32)).train()
    inputs = {"input_ids": torch.arange(6)[None], "attention_mask": torch.ones(1, 6).long()}
    capture_transformers(model, inputs, tmp_path / "one")
    assert model.training  # As it was.
    made = capture_transformers(model, inputs, tmp_path / "many", generate=3)
    assert made.shape == (1, 9)
    calls = [call for call in read_trace(tmp_path / "many")["calls"]
             if call.get("path") == "transformer.h.0.mlp"]
    assert len(calls) == 3
    model.save_pretrained(tmp_path / "model")
    capture_transformers(str(tmp_path / "model"), inputs, tmp_path / "saved")
    assert tensordiff.compare(tmp_path / "one", tmp_path / "saved").verdict == "same"
    with pytest.raises(ValueError, match="a text needs a tokenizer"):
        capture_transformers(model, "text", tmp_path / "text")


def test_flax(tmp_path: pathlib.Path) -> None:
    """A PyTorch model and its flax twin, one step of which is wrong."""
    nn = pytest.importorskip("flax.linen")
    jax = pytest.importorskip("jax")
    torch = pytest.importorskip("torch")
    from tensordiff.adapters.flax import capture_flax

    class Twin(nn.Module):
        scale: float

        def setup(self) -> None:
            self.up, self.down = nn.Dense(8), nn.Dense(4)

        def __call__(self, x):  # type: ignore[no-untyped-def]
            return self.down(nn.relu(self.up(x)) * self.scale)

    torch.manual_seed(0)

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = torch.nn.Linear(4, 8), torch.nn.Linear(8, 4)

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.down(self.up(x).relu())

    model, x = Model(), numpy.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)
    variables = {"params": {name: {"kernel": layer.weight.detach().numpy().T,
                                   "bias": layer.bias.detach().numpy()}
                            for name, layer in model.named_children()}}
    with torch.no_grad(), tensordiff.capture(model, tmp_path / "ref"):
        want = model(torch.from_numpy(x))
    out = capture_flax(Twin(1.0), variables, jax.numpy.asarray(x), folder=tmp_path / "right")
    assert numpy.allclose(out, want.numpy(), atol=1e-5)
    assert tensordiff.compare(tmp_path / "ref", tmp_path / "right").close
    capture_flax(Twin(0.5), variables, jax.numpy.asarray(x), folder=tmp_path / "wrong")
    report = tensordiff.compare(tmp_path / "ref", tmp_path / "wrong")
    assert report.first_divergence is not None and report.first_divergence.name == "down"


# As llama.cpp's examples/eval-callback prints: six places of each axis, a line for each row.
EVAL_TEXT = """\
ggml_debug:     l_out-0 = (f32)  ADD(ffn_out-0{8, 2, 1, 1}, ffn_inp-0{8, 2, 1, 1}}) = {8, 2, 1, 1}
  [
   [
    [     0.0000,      1.0000,      2.0000, ...,      5.0000,      6.0000,      7.0000],
    [     8.0000,      9.0000,     10.0000, ...,     13.0000,     14.0000,     15.0000],
   ],
  ]
  sum = 120.000000
ggml_debug:     result_norm-1 = (f32)  MUL(l_out-0{8, 2, 1, 1}, w{8, 1, 1, 1}}) = {8, 1, 1, 1}
  [
   [
    [     1.0000,      1.0000,      1.0000, ...,      1.0000,      1.0000,      1.5000],
   ],
  ]
  sum = 8.500000
"""


def test_eval_callback_of_llama_cpp(tmp_path: pathlib.Path) -> None:
    from tensordiff.adapters.llama_cpp import (EvalTextError, capture_eval_callback, corners,
                                               read_eval_callback)
    (tmp_path / "eval.log").write_text(EVAL_TEXT)
    assert capture_eval_callback(tmp_path / "eval.log", tmp_path / "port") == 2
    first, second = read_eval_callback(EVAL_TEXT)
    assert first.shape == (2, 8) and first.sum == 120 and second.sources == ["l_out-0", "w"]
    reference = {"l_out-0": corners(numpy.arange(16, dtype="float32").reshape(2, 8)),
                 "result_norm-1": corners(numpy.ones(8, dtype="float32"))}
    report = tensordiff.compare(reference, tmp_path / "port", atol=5e-5)
    assert [pair.status for pair in report.pairs] == ["identical", "different"]
    (tmp_path / "other.log").write_text("nothing of it\n")
    with pytest.raises(EvalTextError, match="no tensor"):
        capture_eval_callback(tmp_path / "other.log", tmp_path / "none")
    with pytest.raises(EvalTextError, match="l_out-0: 3 values printed, but its shape"):
        list(read_eval_callback("\n".join(EVAL_TEXT.splitlines()[:4]).replace(
            "     5.0000,      6.0000,      7.0000", "")))


# The engines of vLLM and SGLang need a GPU: here are the members of their workers that the adapters
# use, as vllm/v1/worker/gpu_worker.py and sglang/srt/model_executor/model_runner.py have them.


def served_model():  # type: ignore[no-untyped-def]
    import torch
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())


def test_a_vllm_worker(tmp_path: pathlib.Path) -> None:
    torch = pytest.importorskip("torch")
    from tensordiff.adapters.vllm import CaptureExtension

    class Runner:
        model = served_model()

        def get_model(self):  # type: ignore[no-untyped-def]
            return self.model

    class Parallel:
        world_size = 2

    class Worker(CaptureExtension):  # As vLLM puts the extension into its class.
        model_runner, rank, parallel_config = Runner(), 1, Parallel()

    worker, x = Worker(), torch.ones(1, 4)
    want = worker.model_runner.model(x)
    worker.tensordiff_start(str(tmp_path), 2)
    for _ in range(3):
        assert torch.equal(worker.model_runner.model(x), want)
    done = worker.tensordiff_stop()
    assert [pathlib.Path(each).relative_to(tmp_path).as_posix() for each in done] == [
        "step_00000/rank_1", "step_00001/rank_1"]
    assert read_trace(done[0])["rank"] == 1 and "forward" not in vars(worker.model_runner.model)
    assert worker.tensordiff_stop() == []


def test_modules_of_vllm(tmp_path: pathlib.Path) -> None:
    """The real module classes: fused projections, and the residual stream in two parts."""
    pytest.importorskip("torch")
    real_source("vllm.v1.worker.worker_base")
    script = pathlib.Path(__file__).with_name("vllm_layers.py")
    done = subprocess.run([sys.executable, str(script), str(tmp_path)], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    right, wrong = (tensordiff.compare(tmp_path / "reference", tmp_path / name / "step_00000")
                    for name in ("port", "wrong"))
    assert right.first_divergence is None and len(right.pairs) > 20, str(right)
    assert wrong.first_divergence is not None
    assert wrong.first_divergence.name.startswith("layers.1.mlp"), str(wrong)


def test_an_sglang_runner(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from tensordiff.adapters import sglang

    class ModelRunner:
        is_draft_worker = False

        def load_model(self) -> None:
            sglang.install(ModelRunner)  # SGLang 0.5.23 imports the package only here.
            self.model = served_model()

        def forward(self, x):  # type: ignore[no-untyped-def]
            return self.model.forward(x)  # SGLang calls forward(), not the module.

    monkeypatch.delenv("TENSORDIFF_CAPTURE", raising=False)
    sglang.install(ModelRunner)
    assert not hasattr(ModelRunner.forward, "_tensordiff")
    monkeypatch.setenv("TENSORDIFF_CAPTURE", str(tmp_path))
    runner, draft = ModelRunner(), ModelRunner()
    draft.is_draft_worker = True
    for each in (draft, runner):
        each.load_model()
        with torch.no_grad():
            each.forward(torch.ones(1, 4))
            each.forward(torch.ones(1, 4))
    assert [each.name for each in tmp_path.iterdir()] == ["step_00000"]
    assert len(read_trace(tmp_path / "step_00000")["calls"]) >= 3


def real_source(module: str) -> str:
    """The code of a package that is installed here, which is not imported: it may need a GPU."""
    try:
        found = importlib.util.find_spec(module.partition(".")[0])
    except (ImportError, ValueError):
        found = None
    places = list(found.submodule_search_locations or []) if found else []
    for place in places:
        path = pathlib.Path(place, *module.split(".")[1:]).with_suffix(".py")
        if path.is_file():
            return path.read_text(encoding="utf-8")
    pytest.skip(f"{module} is not installed")


def test_what_vllm_and_sglang_have_is_what_the_adapters_use() -> None:
    worker = real_source("vllm.v1.worker.worker_base")
    assert "parallel_config.worker_extension_cls" in worker and "__bases__" in worker
    assert "def get_model(self)" in real_source("vllm.v1.worker.gpu_model_runner")
    runner = real_source("sglang.srt.model_executor.model_runner")
    assert "def forward(\n" in runner and "self.model.forward" in runner
    assert "SGLANG_EXTERNAL_MODEL_PACKAGE" in real_source("sglang.srt.models.registry")
