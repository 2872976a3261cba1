"""What the engine takes from a trace: order, producers, classes, other names, parameters, ranks."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensordiff  # noqa: E402
from tensordiff.golden import save  # noqa: E402

# torch 1.13 wraps functions once more, and calls the hooks of capture before those of others.
needs_torch_2 = pytest.mark.skipif(int(torch.__version__.split(".")[0]) < 2,
                                   reason="torch 1 tells less of functions and hooks")


def captured(model: Any, folder: pathlib.Path, *inputs: Any, **options: Any) -> pathlib.Path:
    with torch.no_grad(), tensordiff.capture(model, folder, **options):
        model(*inputs)
    return folder


def test_a_class_tells_what_a_name_does_not(tmp_path: pathlib.Path) -> None:
    torch.manual_seed(0)
    first, x = torch.nn.Linear(16, 16), torch.randn(8, 16)
    a = captured(torch.nn.Sequential(first, torch.nn.GELU()), tmp_path / "a", x)
    b = captured(torch.nn.Sequential(first, torch.nn.GELU("tanh")), tmp_path / "b", x)
    report = tensordiff.compare(a, b, rtol=0, atol=1e-6)
    assert report.first_divergence is not None and report.first_divergence.name == "1"
    b = captured(torch.nn.Sequential(first, torch.nn.SiLU()), tmp_path / "c", x)
    report = tensordiff.compare(a, b)
    assert any("SiLU" in each.explanation and "GELU" in each.explanation
               for each in report.findings), report.json


class Shared(torch.nn.Module):
    def __init__(self, first: str, second: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        one = torch.nn.Linear(8, 8)
        setattr(self, first, one)
        setattr(self, second, one)
        self.first = first

    def forward(self, x: Any) -> Any:
        return getattr(self, self.first)(x).relu()


def test_a_module_is_known_by_all_of_its_names(tmp_path: pathlib.Path) -> None:
    x = torch.randn(4, 8)
    a = captured(Shared("proj", "blend"), tmp_path / "a", x)
    b = captured(Shared("blend", "proj"), tmp_path / "b", x)
    report = tensordiff.compare(a, b)
    assert [(pair.name_a, pair.name_b, pair.matched_by) for pair in report.pairs] == [
        ("proj", "blend", "exact"), ("output", "output", "exact")], report.json
    assert report.verdict == "same"


class Step(torch.nn.Module):
    def __init__(self, heat: float) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.up = torch.nn.Linear(8, 8)
        self.heat = heat

    def forward(self, x: Any) -> Any:
        return x + (self.up(x) * self.heat).softmax(-1)


@needs_torch_2
def test_steps_between_modules_have_names(tmp_path: pathlib.Path) -> None:
    x = torch.randn(4, 8)
    folders = [captured(torch.nn.Sequential(Step(1.0), Step(heat)), tmp_path / str(heat), x,
                        values="all") for heat in (1.0, 1.5)]
    report = tensordiff.compare(*folders)
    assert [pair.name_a for pair in report.pairs] == [
        "0.up.linear", "0.mul", "0.softmax", "0.add", "1.up.linear", "1.mul", "1.softmax", "1.add"]
    assert report.first_divergence is not None and report.first_divergence.name == "1.mul"


class Tied(torch.nn.Module):
    """Its head is its embedding, which a checkpoint has once."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embed_tokens = torch.nn.Embedding(32, 8)
        self.norm = torch.nn.LayerNorm(8)
        self.lm_head = torch.nn.Linear(8, 32, bias=False)
        self.lm_head.weight = self.embed_tokens.weight

    def forward(self, ids: Any) -> Any:
        return self.lm_head(self.norm(self.embed_tokens(ids)))


@needs_torch_2
def test_tied_parameters_are_found_in_the_weights(tmp_path: pathlib.Path) -> None:
    model, ids = Tied(), torch.arange(16)[None]
    a = captured(model, tmp_path / "a", ids)
    weights = {name: value for name, value in model.state_dict().items() if name[:2] != "lm"}
    save(tmp_path / "weights.safetensors", weights)
    model.norm.weight.data *= 1.5  # Without weights, this would explain all that follows.
    model.lm_head.register_forward_hook(lambda module, args, out: out + 0.5)
    b = captured(model, tmp_path / "b", ids)
    report = tensordiff.compare(a, b, weights=tmp_path / "weights.safetensors")
    assert [each.name for each in report.findings] == ["norm", "lm_head"], str(report)


def test_each_rank_has_a_trace_of_its_own(tmp_path: pathlib.Path) -> None:
    x = torch.randn(4, 8)
    for run in ("a", "b"):
        for rank in (0, 1):
            captured(Step(1.0), tmp_path / run, x, rank=rank)
    assert tensordiff.compare(tmp_path / "a", tmp_path / "b").verdict == "same"
    file = tmp_path / "b" / "rank_1" / "trace.json"
    trace = json.loads(file.read_text())
    file.write_text(json.dumps({**trace, "complete": False}))
    report = tensordiff.compare(tmp_path / "a", tmp_path / "b")
    assert report.verdict == "trouble" and "rank_1/trace.json" in report.json
    file.unlink()
    report = tensordiff.compare(tmp_path / "a", tmp_path / "b")
    assert report.verdict == "trouble" and "the capture is not finished" in report.json
