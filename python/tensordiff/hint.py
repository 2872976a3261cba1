"""The line of code to look at first, for each mistake in code.

Both models run once more, and the results of all functions in the modules at fault are kept. The
first result of B that A does not have too is where to look; if A has all of them, the first of A
that B lacks, which is a statement that is missing. A hint may be wrong: a later user of a wrong
value is named where the value itself has no counterpart.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import Any

import torch

from . import trees
from .doors import Forcer
from .findings import Mistake
from .observe import FunctionCall, Handler, ModuleCall, source_of
from .values import error, fits

# Of one call of a module; a loop over tokens makes thousands of them.
_STEPS_MAX = 500
# Values of integers and bools are too few to tell one result from another.
_ELEMENTS_MIN = 4


@dataclasses.dataclass
class Step:
    """A function that ran in a module at fault."""

    name: str
    place: str
    result: torch.Tensor


Steps = dict[str, list[Step]]


def _add(steps: Steps, call: ModuleCall | None, done: FunctionCall) -> None:
    if call is None or call.number or call.path not in steps:
        return
    kept = steps[call.path]
    for _, tensor in trees.tensors(done.out):
        small = tensor.numel() < _ELEMENTS_MIN or not tensor.is_floating_point()
        if len(kept) < _STEPS_MAX and not small and tensor.layout == torch.strided:
            kept.append(Step(done.name, _place(), tensor.detach().clone()))


def _place() -> str:
    lines = source_of(sys._getframe(2), whole=False)
    if not lines:
        return ""
    file, line, function = lines[0]
    here = os.path.relpath(file)
    return f"{file if here.startswith('..') else here}:{line}, in {function}"


class ReferenceSteps(Handler):
    """The steps of A."""

    def __init__(self, paths: set[str]) -> None:
        self.steps: Steps = {path: [] for path in paths}

    def function(self, call: ModuleCall | None, done: FunctionCall) -> None:
        _add(self.steps, call, done)


class PortSteps(Forcer):
    """The steps of B, forced at its doors as before."""

    def watch(self, paths: set[str]) -> None:
        self.steps: Steps = {path: [] for path in paths}

    def function(self, call: ModuleCall | None, done: FunctionCall) -> None:
        super().function(call, done)
        _add(self.steps, call, done)


def wanted(finding: Mistake) -> bool:
    return finding.kind != "weights" and not finding.weights


def hint(ours: list[Step], theirs: list[Step], budget: float) -> str | None:
    """Where the steps of B part from those of A."""
    used: set[int] = set()
    for step in ours:
        at = _find(step, theirs, budget)
        if at is None:
            return f"{step.place}: {step.name}" if step.place else None
        used.add(at)
    for at, step in enumerate(theirs):
        if at not in used and step.place and _find(step, ours, budget) is None:
            return f"missing in B, in A at {step.place}: {step.name}"
    return None


def _find(sought: Step, steps: list[Step], budget: float) -> int | None:
    """The same result, of the same function where the other side has any of that name."""
    named = any(step.name == sought.name for step in steps)
    for at, step in enumerate(steps):
        fitted: Any = fits(step.result, sought.result.shape)
        if fitted is not None and (step.name == sought.name or not named):
            apart = error(fitted, sought.result)
            if apart is not None and apart <= budget:
                return at
    return None
