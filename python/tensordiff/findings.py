"""What isolate() returns."""

from __future__ import annotations

import dataclasses
import os
import pathlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from .view import Served

Kind = Literal["module", "own code", "weights"]


@dataclasses.dataclass
class Mistake:
    """One place at which B departs from A, given A's own inputs."""

    path: str
    """The module of B; "" is the model itself."""
    kind: Kind
    """"module": the module itself, its weights or code. "own code": what the module computes
    between the modules in it. "weights": weights differ, but these inputs do not show it."""
    where: str = ""
    """For own code: between which modules, and at which argument or result it was seen."""
    rel_l2: float | None = None
    """|B - A| / |A| of the first tensor that showed it; None where there is no such number."""
    calls: int = 1
    """At how many calls of the module it was seen."""
    path_a: str | None = None
    """The module of A that it was compared with, if its path is another."""
    weights: list[str] = dataclasses.field(default_factory=list[str])
    """Parameters and buffers that differ, and where."""
    also: list[str] = dataclasses.field(default_factory=list[str])
    """Other modules that share a differing parameter."""
    or_in: list[str] = dataclasses.field(default_factory=list[str])
    """Modules without a counterpart on the way to the tensor: it may be made there instead."""
    cause: str | None = None
    """What the diagnosis engine says about B's tensor against A's."""
    hint: str | None = None
    """The line of code to look at first. Not a finding: it may be wrong."""

    def __str__(self) -> str:
        kind = {"module": "the module itself", "own code": "own code",
                "weights": "weights differ; these inputs do not show it"}[self.kind]
        parts = [f"{self.path or '(model)'}: {kind}"]
        if self.where:
            parts.append(self.where)
        if self.rel_l2 is not None:
            parts.append(f"rel_l2 {self.rel_l2:.2g}")
        if self.weights:
            parts.append("weights: " + "; ".join(self.weights))
        if self.also:
            parts.append("shared with " + ", ".join(self.also))
        if self.or_in:
            parts.append("or in " + ", ".join(self.or_in) + " (no counterpart)")
        if self.cause:
            parts.append(self.cause)
        return ", ".join(parts)


@dataclasses.dataclass
class NotChecked:
    """A module of B that could not be held against A."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"not checked: {self.path or '(model)'} ({self.reason})"


@dataclasses.dataclass
class Door:
    """A tensor of B that was held against A's, at the door of a module."""

    path: str
    """The module."""
    call: str
    """Which call of it: "layers.0.mlp@2" is the third."""
    name: str
    """Which argument or result."""
    rel_l2: float | None
    budget: float
    agrees: bool


@dataclasses.dataclass
class Isolation:
    """The answer of isolate().

    `verdict` is "different" where there are findings, "same" where there are none and every
    module was checked, and "unknown" otherwise.
    """

    findings: list[Mistake]
    not_checked: list[NotChecked]
    checked: int
    """Calls of modules of B whose arguments and results were compared with A's."""
    mapping: dict[str, str]
    """Module of B -> module of A, where it is not the same path."""
    notes: list[str] = dataclasses.field(default_factory=list[str])
    doors: list[Door] = dataclasses.field(default_factory=list[Door])
    """Every tensor that was compared, in the order of computing."""
    modules: dict[str, str] = dataclasses.field(default_factory=dict[str, str])
    """Path -> class of all modules of B."""

    @property
    def verdict(self) -> Literal["same", "different", "unknown"]:
        if self.findings:
            return "different"
        return "unknown" if self.not_checked or self.checked == 0 else "same"

    def to_dict(self) -> dict[str, Any]:
        return {"verdict": self.verdict, **dataclasses.asdict(self)}

    def _lines(self) -> Iterator[str]:
        yield f"{self.verdict.upper()}: {_count(len(self.findings), 'mistake')}, " \
              f"{_count(self.checked, 'call')} checked, {len(self.not_checked)} not checked"
        for finding in self.findings:
            yield str(finding)
            if finding.hint:
                yield f"  look here first: {finding.hint}"
        yield from map(str, self.not_checked)
        for note in self.notes:
            yield f"note: {note}"

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _repr_html_(self) -> str:
        from .view import fragment
        return fragment(self)

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Writes the page with the module tree; it loads nothing from elsewhere."""
        from .view import page
        pathlib.Path(path).write_text(page(self), encoding="utf-8")

    def serve(self, port: int = 0, *, browser: bool = True) -> Served:
        """Shows the page in a browser, on this machine only; `.wait()` until Ctrl-C, `.close()`."""
        from .view import serve
        return serve(self, port, browser)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")
