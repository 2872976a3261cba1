"""capture() and isolate() among what else happens to models: other hooks, autocast, compiling."""

from __future__ import annotations

import copy
import pathlib
import subprocess
import sys
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensordiff  # noqa: E402
from tensordiff.trace_file import read_trace  # noqa: E402


def model() -> Any:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 8)).eval()


def test_hooks_of_others_stay_and_count(tmp_path: pathlib.Path) -> None:
    m, x = model(), torch.randn(2, 8)
    m[0].register_forward_hook(lambda module, args, out: out * 2)
    with torch.no_grad():
        want = m(x)
        with tensordiff.capture(m, tmp_path):
            got = m(x)
        assert torch.equal(want, got) and len(m[0]._forward_hooks) == 1

    def broken(module: Any, args: Any) -> None:
        raise KeyError("a hook of somebody else")

    handle = m[2].register_forward_pre_hook(broken)
    with pytest.raises(KeyError), tensordiff.capture(m, tmp_path):
        m(x)
    assert read_trace(tmp_path)["complete"] is False
    handle.remove()
    with torch.no_grad():
        assert torch.equal(m(x), want)
    assert [len(each._forward_hooks) for each in m] == [1, 0, 0]


def test_autocast(tmp_path: pathlib.Path) -> None:
    m, x = model(), torch.randn(2, 8)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
        want = m(x)
        with tensordiff.capture(m, tmp_path):
            got = m(x)
    assert got.dtype == torch.bfloat16 and torch.equal(want, got)
    assert any(each["dtype"] == "bfloat16" and "name" in each
               for each in read_trace(tmp_path)["tensors"])


@pytest.mark.skipif(not hasattr(getattr(torch, "compiler", None), "set_stance"),
                    reason="before torch 2.6 compiled models cannot be run uncompiled")
def test_compiled_models_run_their_own_code(tmp_path: pathlib.Path) -> None:
    m, x = model(), torch.randn(2, 8)
    compiled = torch.compile(m, backend="eager")
    with torch.no_grad(), tensordiff.capture(compiled, tmp_path):
        got = compiled(x)
    with torch.no_grad():
        assert torch.equal(got, m(x))
    trace = read_trace(tmp_path)
    assert {"0", "1", "2"} <= {call.get("path") for call in trace["calls"]}
    assert any("compiled" in note for note in trace["notes"])


def test_ranks_have_their_own_folders(tmp_path: pathlib.Path) -> None:
    m, x = model(), torch.randn(2, 8)
    for run in ("a", "b"):
        for rank in (0, 1):
            with torch.no_grad(), tensordiff.capture(m, tmp_path / run, rank=rank):
                m(x + rank)
    assert read_trace(tmp_path / "a" / "rank_1")["rank"] == 1
    assert tensordiff.compare(tmp_path / "a", tmp_path / "b").verdict == "same"


def test_the_rank_is_that_of_torch_distributed(tmp_path: pathlib.Path) -> None:
    if not torch.distributed.is_available() or not torch.distributed.is_gloo_available():
        pytest.skip("this torch has no gloo")
    script = tmp_path / "run.py"
    script.write_text(
        "import sys, torch, tensordiff\n"
        "torch.distributed.init_process_group('gloo', init_method='file://' + sys.argv[1],\n"
        "                                     rank=int(sys.argv[2]), world_size=2)\n"
        "model = torch.nn.Linear(4, 4)\n"
        "with torch.no_grad(), tensordiff.capture(model, sys.argv[3]):\n"
        "    model(torch.ones(1, 4))\n")
    runs = [subprocess.Popen([sys.executable, str(script), str(tmp_path / "meet"), str(rank),
                              str(tmp_path / "out")]) for rank in (0, 1)]
    assert [run.wait(timeout=300) for run in runs] == [0, 0]
    for rank in (0, 1):
        trace = read_trace(tmp_path / "out" / f"rank_{rank}")
        assert (trace["rank"], trace["world"], trace["complete"]) == (rank, 2, True)


def test_tied_weights_and_the_fast_path_are_noted(tmp_path: pathlib.Path) -> None:
    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.head = torch.nn.Embedding(8, 8), torch.nn.Linear(8, 8, bias=False)
            self.head.weight = self.embed.weight
            self.layer = torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True)

        def forward(self, ids: Any) -> Any:
            return self.head(self.layer(self.embed(ids)))

    with torch.no_grad(), tensordiff.capture(Tied().eval(), tmp_path) as run:
        run.model(torch.arange(6)[None])
    trace = read_trace(tmp_path)
    assert {"name": "embed.weight", "dtype": "float32", "shape": [8, 8],
            "tied": ["head.weight"]} in trace["parameters"]
    assert any("fast path of nn.TransformerEncoderLayer" in note for note in trace["notes"])


def test_two_threads_with_a_folder_each(tmp_path: pathlib.Path) -> None:
    models, x = [model(), model()], torch.randn(2, 8)
    out: dict[int, Any] = {}

    def work(number: int) -> None:
        with torch.no_grad(), tensordiff.capture(models[number], tmp_path / str(number)):
            out[number] = models[number](x)

    threads = [threading.Thread(target=work, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert torch.equal(out[0], out[1])
    assert tensordiff.compare(tmp_path / "0", tmp_path / "1").verdict == "same"


class Narrow(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return x[..., :4]


class Half(torch.nn.Module):
    def forward(self, x: Any) -> Any:
        return torch.relu(x).half()


def test_another_shape_at_a_door() -> None:
    a = model()
    b = copy.deepcopy(a)
    b[1] = Narrow()
    answer = tensordiff.isolate(a, b, torch.randn(2, 8), mapping={"1": "1"})
    assert [each.path for each in answer.findings] == ["1"], answer  # B goes on with A's result.


def test_another_dtype_at_a_door() -> None:
    a = model()
    b = copy.deepcopy(a)
    b[1] = Half()  # The next module takes f32 only: B itself cannot run.
    answer = tensordiff.isolate(a, b, torch.randn(2, 8), mapping={"1": "1"})
    assert answer.verdict == "different"
    assert "raises RuntimeError" in str(answer)
