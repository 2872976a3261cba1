"""Does a model compute the same twice, and the same for a sample alone as in a batch?"""

from __future__ import annotations

import dataclasses
import html
from collections.abc import Callable, Sequence
from typing import Any

import torch

from . import trees
from ._isolate import call_model
from .observe import FunctionCall, Handler, ModuleCall, Observer
from .torch_versions import same_randomness
from .values import MOVES, error


@dataclasses.dataclass
class Variation:
    """The first function whose result is another."""

    between: str
    """"runs", or "alone and batch"."""
    path: str
    function: str
    rel_l2: float
    sample: int | None = None

    def __str__(self) -> str:
        who = f" (sample {self.sample})" if self.sample is not None else ""
        return f"{self.between}{who}: {self.function} in {self.path or '(model)'}, " \
               f"rel_l2 {self.rel_l2:.2g}"


@dataclasses.dataclass
class Invariance:
    """The answer of invariance()."""

    findings: list[Variation]
    functions: int
    """How many were compared between runs."""
    not_checked: list[str]
    """Functions whose results in the batch could not be held against those alone."""

    @property
    def repeats(self) -> bool:
        return not any(finding.between == "runs" for finding in self.findings)

    @property
    def batch_invariant(self) -> bool:
        return all(finding.between == "runs" for finding in self.findings)

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    def __str__(self) -> str:
        first = ["runs repeat bit for bit" if self.repeats else "runs differ",
                 "samples do not depend on the batch" if self.batch_invariant
                 else "samples depend on the batch"]
        return "\n".join(["; ".join(first), *map(str, self.findings)])

    def _repr_html_(self) -> str:
        first, *rest = map(html.escape, str(self).split("\n"))
        return f"<p><b>{first}</b></p><ul>{''.join(f'<li>{line}</li>' for line in rest)}</ul>"


class _Results(Handler):
    """Every result of a function, in order."""

    def __init__(self) -> None:
        self.rows: list[tuple[str, str, torch.Tensor]] = []

    def function(self, call: ModuleCall | None, done: FunctionCall) -> None:
        path = call.path if call else ""
        for _, tensor in trees.tensors(done.out):
            if tensor.layout == torch.strided:
                self.rows.append((path, done.name, tensor.detach().clone()))


def invariance(model: torch.nn.Module, inputs: Any, *, runs: int = 3, batch_axis: int = 0,
               alone: Sequence[int] = (0,),
               run: Callable[[torch.nn.Module, Any], Any] = call_model) -> Invariance:
    """Runs a model several times, then some samples alone, and names what differs first.

    alone: which samples of the batch to run alone; () for none.

    >>> import torch, tensordiff
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU()).eval()
    >>> tensordiff.invariance(model, torch.ones(3, 4)).repeats
    True
    """
    if runs < 2:
        raise ValueError(f"runs must be at least 2, not {runs}")
    findings: list[Variation] = []
    first = _record(model, inputs, run)
    for _ in range(runs - 1):
        again = _record(model, inputs, run)
        for (path, name, a), (_, other, b) in zip(first, again):
            apart = error(a, b) if name == other else float("inf")
            if apart != 0 and name not in MOVES:
                findings.append(Variation("runs", path, name, apart or float("inf")))
                break
        if findings:
            break
    skipped: dict[str, None] = {}
    for sample in alone:
        single = trees.replace(inputs, {
            path: tensor.narrow(batch_axis, sample, 1) for path, tensor in trees.tensors(inputs)
            if tensor.dim() > batch_axis})
        found = _first_of_sample(first, _record(model, single, run), sample, skipped)
        if found is not None:
            findings.append(found)
    return Invariance(findings, len(first), list(skipped))


def _record(model: torch.nn.Module, inputs: Any,
            run: Callable[[torch.nn.Module, Any], Any]) -> list[tuple[str, str, torch.Tensor]]:
    results = _Results()
    with torch.no_grad(), same_randomness(), Observer(model, results):
        run(model, inputs)
    return results.rows


def _first_of_sample(batch: list[tuple[str, str, torch.Tensor]],
                     single: list[tuple[str, str, torch.Tensor]], sample: int,
                     skipped: dict[str, None]) -> Variation | None:
    for (path, name, a), (path_b, other, b) in zip(batch, single):
        if (path, name) != (path_b, other):
            skipped[f"{path}: {name} and what follows (other calls than alone)"] = None
            return None
        rows = _rows_of(a, b, sample)
        if rows is None:
            if name not in MOVES:
                skipped[f"{path}: {name}"] = None
            continue
        apart = min(value for each in rows if (value := error(each, b)) is not None)
        if apart != 0 and name not in MOVES:
            return Variation("alone and batch", path, name, apart, sample)
    return None


def _rows_of(batch: torch.Tensor, single: torch.Tensor,
             sample: int) -> list[torch.Tensor] | None:
    """The part of a batch's tensor that is of one sample, in each way that it may lie there.

    The axis in which the two differ is the batch, or the batch merged with the axis behind it or
    before it. None where they differ otherwise.
    """
    if batch.shape == single.shape:
        return [batch]
    if batch.dim() != single.dim():
        return None
    axes = [at for at, (many, one) in enumerate(zip(batch.shape, single.shape)) if many != one]
    if len(axes) != 1 or single.shape[axes[0]] == 0:
        return None
    axis, size = axes[0], single.shape[axes[0]]
    count, rest = divmod(batch.shape[axis], size)
    if rest or not 0 <= sample < count:
        return None
    before, behind = batch.shape[:axis], batch.shape[axis + 1:]
    split = batch.reshape(*before, count, size, *behind).select(axis, sample)
    woven = batch.reshape(*before, size, count, *behind).select(axis + 1, sample)
    return [split, woven]
