"""Reports in experiment trackers, each where its package is installed, offline."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy
import pytest

import tensordiff
from tensordiff import loggers


def report() -> Any:
    x = numpy.linspace(1, 2, 64, dtype="float32").reshape(8, 8)
    return tensordiff.compare({"layers.0.attn": x, "layers.0.mlp": x.T + 1},
                              {"layers.0.attn": x * numpy.float32(0.125), "layers.0.mlp": x.T + 1})


def test_numbers_that_are_logged() -> None:
    found = loggers.scalars(report(), "run")
    assert found["run/pairs"] == 2 and found["run/different"] == 1 and found["run/identical"] == 1
    assert found["run/layers.0.attn/rel_l2"] == pytest.approx(0.875)


def test_tensorboard(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter
    with SummaryWriter(str(tmp_path)) as writer:
        loggers.to_tensorboard(report(), writer, 3)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    (event,) = events.Scalars("tensordiff/layers.0.attn/rel_l2")
    assert event.step == 3 and event.value == pytest.approx(0.875)


def test_wandb_offline(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wandb = pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_SILENT", "true")
    run = wandb.init(mode="offline", dir=str(tmp_path), project="check")
    loggers.to_wandb(report(), run)
    assert run.summary["tensordiff/layers.0.attn/rel_l2"] == pytest.approx(0.875)
    run.finish()
    (table,) = tmp_path.rglob("*.table.json")
    rows = json.loads(table.read_text())["data"]
    assert {row[1] for row in rows} == {"layers.0.attn", "layers.0.mlp"}
    assert list(tmp_path.rglob("*.wandb"))


def test_mlflow(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "store").as_uri())
    with mlflow.start_run() as run:
        loggers.to_mlflow(report(), 2)
    kept = mlflow.get_run(run.info.run_id).data
    assert kept.metrics["tensordiff/layers.0.attn/rel_l2"] == pytest.approx(0.875)
    assert kept.tags["tensordiff.verdict"] == "different"
    (text,) = tmp_path.rglob("report.json")
    assert json.loads(text.read_text())["summary"]["different"] == 1
