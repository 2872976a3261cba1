"""The line of code to look at first, for each mistake in code.

Both models run once more, and the results of all functions in the modules at fault are kept. The
first result of B that A does not have too is where to look; if A has all of them, the first of A
that B lacks, which is a statement that is missing. A hint may be wrong: a later user of a wrong
value is named where the value itself has no counterpart.
"""

from __future__ import annotations

import dataclasses
import inspect
import os
from typing import Any

import torch

from . import trees
from .doors import Forcer
from .findings import Mistake
from .observe import FunctionCall, Handler, ModuleCall
from .source import lines_of, places_of
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


def _add(kept: list[Step], done: FunctionCall) -> None:
    for _, tensor in trees.tensors(done.out):
        small = tensor.numel() < _ELEMENTS_MIN or not tensor.is_floating_point()
        if len(kept) < _STEPS_MAX and not small and tensor.layout == torch.strided:
            kept.append(Step(done.name, _place(), tensor.detach().clone()))


def _place() -> str:
    lines = lines_of(places_of(inspect.currentframe(), whole=False))
    if not lines:
        return ""
    file, line, function = map(str, lines[0])
    here = os.path.relpath(file)
    return f"{file if here.startswith('..') else here}:{line}, in {function}"


class ReferenceSteps(Handler):
    """The steps of A, in modules and, where that is wanted, in all that is in them."""

    def __init__(self, areas: set[tuple[str, bool]]) -> None:
        self.steps: dict[tuple[str, bool], list[Step]] = {area: [] for area in areas}

    def function(self, call: ModuleCall | None, done: FunctionCall) -> None:
        if call is None or call.number:
            return
        for (path, alone), kept in self.steps.items():
            inside = not alone and (not path or call.path.startswith(path + "."))
            if call.path == path or inside:
                _add(kept, done)


class PortSteps(Forcer):
    """The steps of B, forced at its doors as before."""

    def watch(self, paths: set[str]) -> None:
        self.steps: dict[str, list[Step]] = {path: [] for path in paths}

    def function(self, call: ModuleCall | None, done: FunctionCall) -> None:
        super().function(call, done)
        if call is not None and call.number == 0 and call.path in self.steps:
            _add(self.steps[call.path], done)


def wanted(finding: Mistake) -> bool:
    return finding.kind != "weights" and not finding.weights


def hint(ours: list[Step], theirs: list[Step], budget: float, same_code: bool) -> str | None:
    """Where the steps of B part from those of A.

    Other code has steps of its own that A lacks: there, behind the last that A has too.
    """
    found = [_find(step, theirs, budget) for step in ours]
    used = {at for at in found if at is not None}
    first = next((i for i, at in enumerate(found) if at is None), None)
    if first is not None and not same_code:
        behind = max((i for i, at in enumerate(found) if at is not None), default=-1) + 1
        first = behind if behind < len(ours) else None
    if first is not None:
        step = ours[first]
        return f"{step.place}: {step.name}" if step.place else None
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
