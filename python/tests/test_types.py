"""The hints of the package, by pyright; its settings are in pyproject.toml."""

from __future__ import annotations

import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("pyright")
pytest.importorskip("torch")
pytest.importorskip("transformers")  # Older torch, without complete hints, comes without it.


def test_hints_are_complete() -> None:
    project = pathlib.Path(__file__).parents[1]
    done = subprocess.run([sys.executable, "-m", "pyright", "--pythonpath", sys.executable,
                           "-p", str(project)], capture_output=True, text=True)
    assert done.returncode == 0 and "0 errors" in done.stdout, done.stdout + done.stderr
