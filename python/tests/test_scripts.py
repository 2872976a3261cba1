"""`python -m tensordiff capture`, invariance(), and the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib
import pathlib
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import tensordiff  # noqa: E402


def run(folder: pathlib.Path, *words: str) -> Any:
    return subprocess.run([sys.executable, "-m", "tensordiff", "capture", *words], cwd=folder,
                          capture_output=True, text=True)


def test_a_script_is_captured_without_editing_it(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(
        "import sys, torch\n"
        "model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())\n"
        "print(model(torch.ones(1, 4)).shape, sys.argv[1:])\n")
    done = run(tmp_path, "-o", "ref", "train.py", "--steps", "3")
    assert done.returncode == 0, done.stderr
    assert "['--steps', '3']" in done.stdout
    assert "2 tensors of Sequential in ref" in done.stderr
    assert tensordiff.read_trace(tmp_path / "ref")["complete"] is True
    done = run(tmp_path, "-o", "relu", "--model", "ReLU", "train.py")
    assert "1 tensors of ReLU in relu" in done.stderr


def test_a_model_is_found_by_its_variable(tmp_path: pathlib.Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n"
        "class Trainer:\n"
        "    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())\n"
        "torch.nn.Tanh()(torch.ones(1))\n"
        "trainer = Trainer()\n"
        "if __name__ == '__main__':\n"
        "    trainer.model(torch.ones(1, 4))\n")
    done = run(tmp_path, "-o", "ref", "--model-attr", "trainer.model", "--ops", "none",
               "--mode", "sample", "--sample", "2", "train.py")
    assert "2 tensors of Sequential in ref" in done.stderr, done.stderr
    trace = tensordiff.read_trace(tmp_path / "ref")
    assert {call["kind"] for call in trace["calls"]} == {"module"}
    done = run(tmp_path, "--model-attr", "nosuch", "train.py")
    assert done.returncode == 2 and "no model in `nosuch` was called" in done.stderr


def test_scripts_that_cannot_be_captured(tmp_path: pathlib.Path) -> None:
    (tmp_path / "empty.py").write_text("print('nothing')\n")
    done = run(tmp_path, "empty.py")
    assert done.returncode == 2 and "no PyTorch model was called by empty.py" in done.stderr
    done = run(tmp_path, "nosuch.py")
    assert done.returncode == 2 and "no file named 'nosuch.py'" in done.stderr


@pytest.mark.parametrize("end,status,complete", [
    ("sys.exit()", 0, True), ("sys.exit(3)", 3, True), ("raise KeyError('lost')", 1, False),
    ("model(True)", 3, False)])
def test_however_a_script_ends(tmp_path: pathlib.Path, end: str, status: int,
                               complete: bool) -> None:
    (tmp_path / "train.py").write_text(
        "import sys, torch\n"
        "class Ends(torch.nn.Module):\n"
        "    def forward(self, last):\n"
        "        if last: sys.exit(3)\n"
        "model = Ends()\n"
        "model(False)\n" + end + "\n")
    done = run(tmp_path, "-o", "ref", "train.py")
    assert done.returncode == status, done.stderr
    assert tensordiff.read_trace(tmp_path / "ref")["complete"] is complete


def test_invariance_names_what_is_random() -> None:
    class Noisy(torch.nn.Module):
        calls = 0

        def forward(self, x: Any) -> Any:
            self.calls += 1
            return (x * 2).reshape(-1, 2) + self.calls

    answer = tensordiff.invariance(Noisy(), torch.ones(3, 4), alone=())
    assert [(each.between, each.function) for each in answer.findings] == [("runs", "add")]
    assert not answer.repeats and answer.batch_invariant


def test_invariance_follows_the_batch_through_views() -> None:
    class Tokens(torch.nn.Module):
        def __init__(self, wrong: bool) -> None:
            super().__init__()
            self.wrong = wrong

        def forward(self, x: Any) -> Any:
            tokens = x.reshape(-1, 4)  # Batch and tokens in one axis.
            tokens = tokens * 2
            if self.wrong:
                tokens = tokens - tokens.mean(0)
            return tokens.reshape(x.shape)

    x = torch.randn(3, 5, 4)
    assert tensordiff.invariance(Tokens(False), x, alone=(0, 2)).findings == []
    answer = tensordiff.invariance(Tokens(True), x, alone=(1,))
    assert [(each.function, each.sample) for each in answer.findings][0][1] == 1
    assert not answer.batch_invariant and answer.repeats


def modules_with_examples() -> list[str]:
    """All of the package whose text has an example."""
    folder = pathlib.Path(tensordiff.__file__).parent
    return sorted(".".join(path.relative_to(folder).with_suffix("").parts)
                  for path in folder.rglob("*.py") if ">>> " in path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", modules_with_examples())
def test_examples_of_the_docstrings(name: str) -> None:
    module = importlib.import_module(f"tensordiff.{name}")
    result = doctest.testmod(module)
    assert result.attempted > 0 and result.failed == 0
