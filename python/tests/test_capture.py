"""capture(): outputs bit for bit, files that others read, a trace that links every tensor."""

from __future__ import annotations

import errno
import json
import pathlib
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensordiff  # noqa: E402
from tensordiff import shards, trees  # noqa: E402
from tensordiff.trace_file import read_trace  # noqa: E402


class Block(torch.nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(width)
        self.up = torch.nn.Linear(width, width)
        self.act = torch.nn.ReLU(inplace=True)
        self.drop = torch.nn.Dropout(0.1)

    def forward(self, x: Any) -> Any:
        return x + self.drop(self.act(self.up(self.norm(x)))).softmax(-1)


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(Block(), Block()).eval()


def ids(tree: Any) -> list[int]:
    if isinstance(tree, dict):
        if "t" in tree:
            return [tree["t"]]
        return [n for part in (tree.get("l", []), [*tree.get("d", {}).values()])
                for each in part for n in ids(each)]
    return [n for each in tree for n in ids(each)] if isinstance(tree, list) else []


def saved(folder: pathlib.Path) -> dict[str, Any]:
    """All tensors of a capture, by the bytes of its files."""
    found: dict[str, Any] = {}
    for file in sorted(folder.glob("*.safetensors")):
        data = file.read_bytes()
        size = int.from_bytes(data[:8], "little")
        for name, entry in json.loads(data[8:8 + size]).items():
            if name != "__metadata__":
                begin, end = entry["data_offsets"]
                found[name] = (entry["dtype"], entry["shape"], data[8 + size:][begin:end])
    return found


def test_outputs_and_gradients_are_equal_bit_for_bit(tmp_path: pathlib.Path) -> None:
    m, x = model(), torch.randn(3, 8, requires_grad=True)
    want = m(x)
    want.sum().backward()
    gradients = [p.grad.clone() for p in m.parameters()]
    m.zero_grad()
    with tensordiff.capture(m, tmp_path, values="all"):
        got = m(x)
    got.sum().backward()
    assert torch.equal(want, got)
    assert all(torch.equal(p.grad, g) for p, g in zip(m.parameters(), gradients))


def test_every_argument_is_linked_to_the_call_that_made_it(tmp_path: pathlib.Path) -> None:
    m, x = model(), torch.randn(3, 8)
    with torch.no_grad(), tensordiff.capture(m, tmp_path):
        m(x)
    trace = read_trace(tmp_path)
    made: set[int] = set()
    for call in sorted(trace["calls"], key=lambda call: call["end"]):
        made |= set(ids(call["out"]))
    used = {n for call in trace["calls"] for n in ids(call["args"])}
    assert used - made == {0}  # The model's own input.
    softmax = next(call for call in trace["calls"] if call["name"] == "softmax")
    assert trace["calls"][softmax["parent"]]["path"] == "0"
    assert softmax["source"][0][2] == "forward"
    assert softmax["source"][0][0].endswith("test_capture.py")
    assert trace["complete"] is True


def test_names_count_calls_and_outputs(tmp_path: pathlib.Path) -> None:
    class Twice(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = torch.nn.GRU(4, 4)
            self.same = self.gru

        def forward(self, x: Any) -> Any:
            y, _ = self.gru(x)
            return {"out": self.same(y)[0] * 2}

    m = Twice()
    with torch.no_grad(), tensordiff.capture(m, tmp_path):
        m(torch.randn(2, 1, 4))
    assert set(saved(tmp_path)) == {"gru.0", "gru.1", "gru@1.0", "gru@1.1", "output"}
    modules = read_trace(tmp_path)["modules"]
    assert {"path": "gru", "class": "GRU", "aliases": ["same"]} in modules


@pytest.mark.parametrize("inference", [False, True])
def test_in_place_functions_make_new_values(tmp_path: pathlib.Path, inference: bool) -> None:
    class InPlace(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            y = x * 1
            y.add_(1)
            y[0] = 5
            return y.view(-1)

    x = torch.zeros(2, 2)
    with torch.inference_mode(inference), torch.no_grad(), \
            tensordiff.capture(InPlace(), tmp_path) as run:
        run.model(x)
    calls = [call for call in read_trace(tmp_path)["calls"] if call["kind"] == "function"]
    assert [call["name"] for call in calls] == ["mul", "add_", "__setitem__", "view"]
    chain = [ids(call["out"])[0] for call in calls]
    assert len(set(chain)) == 4
    assert [ids(call["args"])[0] for call in calls[1:]] == chain[:3]


def test_freed_memory_is_not_taken_for_the_same_tensor(tmp_path: pathlib.Path) -> None:
    class Loop(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            for _ in range(500):
                torch.zeros(64)  # Made and freed: the allocator gives the same address again.
            return x + 1

    with torch.no_grad(), tensordiff.capture(Loop(), tmp_path) as run:
        run.model(torch.ones(2))
    calls = [call for call in read_trace(tmp_path)["calls"] if call["name"] == "zeros"]
    assert len({ids(call["out"])[0] for call in calls}) == len(calls) == 500


def test_files_are_read_by_safetensors(tmp_path: pathlib.Path) -> None:
    safetensors = pytest.importorskip("safetensors.torch")
    torch.manual_seed(0)
    tensors = {}
    for dtype in shards.DTYPES:
        for shape in [(), (3,), (5, 7), (0, 2), (33000,), (70001,)]:
            values = torch.randn(shape) * 10
            tensors[f"{dtype}.{shape}"] = values.to(dtype) if "e8m0" not in str(dtype) \
                else values.abs().to(dtype)
    tensors["transposed"] = torch.randn(300, 70).t()
    tensors["expanded"] = torch.randn(1, 5).expand(9000, 5)
    tensors["conjugated"] = torch.randn(5, dtype=torch.complex64).conj()
    tensors["negated"] = torch.randn(5, dtype=torch.complex64).conj().imag
    tensors["large and strided"] = torch.randn(3, 2_000_001)[:, ::2].t()
    writer = shards.ShardWriter(tmp_path, 1 << 20)
    for name, tensor in tensors.items():
        writer.add(name, tensor)
    writer.close()
    assert len(writer.files) > 3
    found: dict[str, Any] = {}
    for file in writer.files:
        found |= safetensors.load_file(tmp_path / file)
    assert found.keys() == tensors.keys()
    for name, tensor in tensors.items():
        assert found[name].dtype == tensor.dtype and found[name].shape == tensor.shape
        want = tensor.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)
        assert torch.equal(found[name].reshape(-1).view(torch.uint8), want), name


def test_unusual_outputs(tmp_path: pathlib.Path) -> None:
    small = getattr(torch, "float8_e4m3fn", torch.int8)  # Before torch 2.1 there is no float8.

    class Unusual(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return (x.to_sparse(), x.to(torch.complex128), None, x.to(small), "text")

    with torch.no_grad(), tensordiff.capture(Unusual(), tmp_path) as run:
        run.model(torch.ones(2, 2))
    assert run.errors == []
    files = saved(tmp_path)
    assert files["output.1"][:2] == ("F64", [2, 2, 2])
    assert files["output.3"][0] == shards.DTYPES[small]
    facts = read_trace(tmp_path)["tensors"]
    assert [each["unsaved"] for each in facts if "unsaved" in each] == ["sparse_coo"]


def test_modes(tmp_path: pathlib.Path) -> None:
    m, x = model(), torch.randn(100, 8)
    with torch.no_grad(), tensordiff.capture(m, tmp_path / "s", mode="sample", sample=50):
        out = m(x)
    assert saved(tmp_path / "s")["1"][1] == [50]
    x[0, 0] = float("nan")
    with torch.no_grad(), tensordiff.capture(m, tmp_path / "t", mode="stats"):
        m(x)
    stats = [t["stats"] for t in read_trace(tmp_path / "t")["tensors"] if "stats" in t]
    assert stats and saved(tmp_path / "t") == {}
    assert stats[0]["nan"] == 8
    with torch.no_grad(), tensordiff.capture(m, tmp_path / "i", include="1.*", exclude="*.drop"):
        m(x)
    assert set(saved(tmp_path / "i")) == {"1.norm", "1.up", "1.act"}
    assert out.shape == (100, 8)


def test_exceptions_leave_nothing_behind(tmp_path: pathlib.Path) -> None:
    m = model()
    with pytest.raises(RuntimeError), tensordiff.capture(m, tmp_path):
        m(torch.randn(3, 9))
    trace = read_trace(tmp_path)
    assert trace["complete"] is False
    assert [call["path"] for call in trace["calls"] if call.get("raised")] == ["", "0", "0.norm"]
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in m.modules())
    with tensordiff.capture(m, tmp_path):
        with pytest.raises(RuntimeError):
            m(torch.randn(3, 9))
        m(torch.randn(3, 8))
    assert "1@1" not in saved(tmp_path) and "1" in saved(tmp_path)


def test_a_full_disk_lets_the_model_go_on(tmp_path: pathlib.Path, monkeypatch: Any,
                                          capsys: Any) -> None:
    def full(file: Any, data: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(shards, "_write_all", full)
    m, x = model(), torch.randn(3, 8)
    with torch.no_grad(), tensordiff.capture(m, tmp_path):
        got = m(x)
    assert torch.equal(got, m(x))
    trace = read_trace(tmp_path)
    assert trace["complete"] is False and "No space left" in trace["errors"][0]["error"]
    assert "incomplete capture" in capsys.readouterr().err
    with pytest.raises(tensordiff.CaptureError, match="No space left"), torch.no_grad(), \
            tensordiff.capture(m, tmp_path, on_error="raise"):
        m(x)


def test_a_real_limit_on_files(tmp_path: pathlib.Path) -> None:
    """The system itself refuses to write on, first the tensors, then the trace too."""
    script = tmp_path / "limited.py"
    script.write_text(
        "import resource, sys, torch, tensordiff\n"
        "layers = [torch.nn.Linear(64, 64) for _ in range(8)]\n"
        "model, x = torch.nn.Sequential(*layers), torch.ones(64, 64)\n"
        "want = model(x)\n"
        "limit = int(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))\n"
        "with tensordiff.capture(model, sys.argv[2]):\n"
        "    got = model(x)\n"
        "assert torch.equal(want, got)\n"
        "print('the model ended')\n")
    for limit, traced in ((100_000, True), (500, False)):
        folder = tmp_path / str(limit)
        done = subprocess.run([sys.executable, str(script), str(limit), str(folder)],
                              capture_output=True, text=True)
        assert done.returncode == 0 and "the model ended" in done.stdout, done.stderr
        assert f"{folder}: incomplete capture" in done.stderr and "File too large" in done.stderr
        if traced:
            trace = read_trace(folder)
            assert trace["complete"] is False and "File too large" in trace["errors"][0]["error"]
        else:
            with pytest.raises(tensordiff.TraceError, match="not finished"):
                read_trace(folder)
            with tensordiff.capture(model(), folder):  # What is left over is no obstacle.
                pass


def test_progress_is_told(tmp_path: pathlib.Path, monkeypatch: Any) -> None:
    from tensordiff import _capture
    monkeypatch.setattr(_capture, "_PROGRESS_EVERY", -1.0)
    told: list[tuple[int, int]] = []
    with torch.no_grad(), tensordiff.capture(
            model(), tmp_path, progress=lambda tensors, size: told.append((tensors, size))) as run:
        run.model(torch.randn(3, 8))
    assert [tensors for tensors, _ in told] == list(range(1, run.tensors_written + 1))
    assert told[-1][1] == 3 * 8 * 4 * run.tensors_written


def test_aten_shows_kernels(tmp_path: pathlib.Path) -> None:
    m, x = model(), torch.randn(3, 8)
    want = m(x)
    with torch.no_grad(), tensordiff.capture(m, tmp_path, ops="aten", values="all"):
        got = m(x)
    assert torch.equal(want, got)
    trace = read_trace(tmp_path)
    names = [call["name"] for call in trace["calls"] if call["kind"] == "function"]
    assert "addmm" in names and "_softmax" in names and "linear" not in names
    assert "1.add" in saved(tmp_path)


def test_a_folder_with_other_files_is_left_alone(tmp_path: pathlib.Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(tensordiff.CaptureError, match="thesis.txt"):
        tensordiff.capture(model(), tmp_path).__enter__()


@pytest.mark.skipif(not hasattr(torch._C, "_current_graph_task_id"),
                    reason="before torch 2.0 nothing tells that a backward runs")
def test_checkpointing_is_marked(tmp_path: pathlib.Path) -> None:
    from torch.utils.checkpoint import checkpoint

    class Checkpointed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.block = Block()

        def forward(self, x: Any) -> Any:
            return checkpoint(self.block, x, use_reentrant=False)

    m = Checkpointed()
    with tensordiff.capture(m, tmp_path):
        m(torch.randn(2, 8, requires_grad=True)).sum().backward()
    phases = {call.get("phase") for call in read_trace(tmp_path)["calls"]
              if call.get("path") == "block"}
    assert phases == {None, "recompute"}


def test_a_trace_of_another_version_is_refused(tmp_path: pathlib.Path) -> None:
    (tmp_path / "trace.json").write_text('{"schema": "tensordiff.trace/2"}')
    with pytest.raises(tensordiff.TraceError, match="tensordiff.trace/2"):
        read_trace(tmp_path)
    with pytest.raises(tensordiff.TraceError, match="not finished"):
        read_trace(tmp_path / "none")


def test_trees_are_replaced_by_path() -> None:
    tree = {"x": [torch.zeros(1), (torch.ones(1), None)]}
    changed = trees.replace(tree, {("x", "1", "0"): 7})
    assert changed["x"][1] == (7, None) and tree["x"][1][0] is not 7


def test_the_program_takes_the_order_from_the_trace(tmp_path: pathlib.Path) -> None:
    """The layers run backwards here, which no name tells."""
    class Backwards(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(torch.nn.Linear(8, 8) for _ in range(4))

        def forward(self, x: Any) -> Any:
            for layer in reversed(self.layers):
                x = layer(x)
            return x

    m, x = Backwards(), torch.randn(4, 8)
    with torch.no_grad():
        with tensordiff.capture(m, tmp_path / "a"):
            m(x)
        m.layers[2].weight *= 1.5
        with tensordiff.capture(m, tmp_path / "b"):
            m(x)
    done = subprocess.run([sys.executable, "-m", "tensordiff", str(tmp_path / "a"),
                           str(tmp_path / "b"), "-o", "report"], capture_output=True, text=True)
    report = json.loads(done.stdout)
    assert report["first_divergence"]["name_a"] == "layers.2"
    (tmp_path / "b" / "trace.json").write_text('{"schema": "tensordiff.trace/2"}')
    done = subprocess.run([sys.executable, "-m", "tensordiff", "show", str(tmp_path / "b")],
                          capture_output=True, text=True)
    assert "schema 'tensordiff.trace/2' is not read" in done.stdout + done.stderr
