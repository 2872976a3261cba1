"""Reports in experiment trackers: TensorBoard, Weights & Biases, MLflow. Each needs its package.

    from tensordiff import loggers
    loggers.to_tensorboard(report, writer, step)
    loggers.to_wandb(report, run, step)
    loggers.to_mlflow(report, step)

Each logs the counts of the summary and, for every pair, rel_l2 and max_abs under its name.
"""

from __future__ import annotations

import math
import os
import pathlib
import tempfile
from typing import Any

from .report import Report
from .untyped import is_sequence, package

_METRICS = ("rel_l2", "max_abs")
_COUNTS = ("pairs", "identical", "equal", "close", "different", "incomparable", "error", "only_a",
           "only_b")


def scalars(report: Report, prefix: str = "tensordiff") -> dict[str, float]:
    """The numbers that are logged, by their names. What is not defined or not finite is left out.

    >>> import numpy, tensordiff
    >>> from tensordiff import loggers
    >>> report = tensordiff.compare({"w": numpy.ones(4)}, {"w": numpy.ones(4)})
    >>> loggers.scalars(report)["tensordiff/identical"]
    1.0
    """
    summary = report.to_dict()["summary"]
    found = {f"{prefix}/{name}": float(summary[name]) for name in _COUNTS}
    for pair in report.pairs:
        for name in _METRICS:
            value = pair.diff.get(name)
            if isinstance(value, (int, float)) and math.isfinite(value):
                found[f"{prefix}/{pair.name_b}/{name}"] = float(value)
    return found


def to_tensorboard(report: Report, writer: Any, step: int = 0, prefix: str = "tensordiff") -> None:
    """`writer` is a SummaryWriter of torch.utils.tensorboard or tensorboardX."""
    for name, value in scalars(report, prefix).items():
        writer.add_scalar(name, value, step)
    writer.add_text(prefix, str(report).replace("\n", "  \n"), step)


def to_wandb(report: Report, run: Any, step: int | None = None,
             prefix: str = "tensordiff") -> None:
    """`run` is what wandb.init() returned, online or offline; the pairs go to a table."""
    wandb = package("wandb")
    rows = report.table()
    columns: list[Any] = ["name_a", "name_b", "status", "rel_l2", "max_abs", "cosine"]
    table = wandb.Table(columns=columns, data=[[_cell(row.get(name)) for name in columns]
                                               for row in rows])
    run.log({**scalars(report, prefix), f"{prefix}/pairs_table": table,
             f"{prefix}/report": wandb.Html(report.to_html())}, step=step)


def to_mlflow(report: Report, step: int = 0, prefix: str = "tensordiff") -> None:
    """Into the active run; the report itself is an artifact, tensordiff/report.json and .html."""
    mlflow = package("mlflow")
    mlflow.log_metrics({_plain(name): value for name, value in scalars(report, prefix).items()},
                       step=step)
    mlflow.set_tag(f"{prefix}.verdict", report.verdict)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (("report.json", report.json), ("report.html", report.to_html())):
            path = pathlib.Path(folder) / name
            path.write_text(text, encoding="utf-8")
            mlflow.log_artifact(os.fspath(path), prefix)


def _plain(name: str) -> str:
    """MLflow takes letters, digits and _-./ and blanks in a name."""
    return "".join(each if each.isalnum() or each in "_-./ " else "_" for each in name)


def _cell(value: Any) -> Any:
    return str(value) if is_sequence(value) else value
