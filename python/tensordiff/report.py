"""compare(): two models, dumps or sets of arrays through the engine, as a typed report."""

from __future__ import annotations

import dataclasses
import functools
import html
import json
import sys
from collections.abc import Sequence
from typing import Any, Literal

from . import _engine
from .arrays import side_of
from .program import program_path

Verdict = Literal["same", "close", "different", "trouble"]


class ComparisonError(ValueError):
    """An input that cannot be read, or an option that cannot be used."""


@dataclasses.dataclass(frozen=True)
class Pair:
    """Two tensors that were compared. `diff` has the metrics of docs/metrics.md."""

    name_a: str
    name_b: str
    status: str
    dtype_a: str
    dtype_b: str
    shape_a: tuple[int, ...]
    shape_b: tuple[int, ...]
    layer: int | None
    stage: str | None
    matched_by: str
    diff: dict[str, Any]
    message: str | None

    @property
    def rel_l2(self) -> float | None:
        value = self.diff.get("rel_l2")
        return float(value) if value is not None else None


@dataclasses.dataclass(frozen=True)
class Finding:
    """Why a pair differs."""

    code: str
    name: str
    explanation: str
    confidence: float
    parameters: dict[str, Any]
    convention: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.explanation}"


@dataclasses.dataclass(frozen=True)
class Divergence:
    """The first divergence of the two sides."""

    name: str
    created: bool
    explanation: str


class Report:
    """What the engine found. `json` is the text of `tensordiff -o report`."""

    def __init__(self, text: str) -> None:
        self.json = text

    @functools.cached_property
    def _data(self) -> dict[str, Any]:
        return json.loads(self.json)

    def __getstate__(self) -> dict[str, str]:
        return {"json": self.json}

    @property
    def verdict(self) -> Verdict:
        return self._data["summary"]["verdict"]

    @property
    def close(self) -> bool:
        """Nothing differs beyond the tolerance, and nothing is unpaired."""
        return self.verdict in ("same", "close")

    @functools.cached_property
    def pairs(self) -> list[Pair]:
        return [Pair(row["name_a"], row["name_b"], row["status"], row["dtype_a"], row["dtype_b"],
                     tuple(row["shape_a"]), tuple(row["shape_b"]), row["layer"], row["stage"],
                     row["matched_by"], row["diff"] or {}, row["message"])
                for row in self._data["pairs"]]

    @functools.cached_property
    def findings(self) -> list[Finding]:
        return [Finding(row["code"], self.pairs[int(row["pair"])].name_b, row["explanation"],
                        row["confidence"], row["parameters"], row["convention"])
                for row in self._data["findings"]]

    @property
    def first_divergence(self) -> Divergence | None:
        first = self._data["first_divergence"]
        if not first:
            return None
        return Divergence(first["name_a"], first["created"], first["explanation"])

    @property
    def only_a(self) -> list[str]:
        return [row["name"] for row in self._data["only_a"]]

    @property
    def only_b(self) -> list[str]:
        return [row["name"] for row in self._data["only_b"]]

    @property
    def notes(self) -> list[str]:
        return list(self._data["notes"])

    def to_dict(self) -> dict[str, Any]:
        return json.loads(self.json)

    def table(self) -> list[dict[str, Any]]:
        """A row for each pair: pandas.DataFrame(report.table())."""
        return [{**{field.name: getattr(pair, field.name) for field in dataclasses.fields(pair)
                    if field.name != "diff"}, **pair.diff} for pair in self.pairs]

    def _lines(self) -> list[str]:
        different = [pair for pair in self.pairs if pair.status not in ("identical", "equal",
                                                                        "close")]
        lines = [f"{self.verdict.upper()}: {len(different)} of {len(self.pairs)} tensors differ"]
        first = self.first_divergence
        if first is not None:
            lines[0] += f"; the first: {first.name}"
        worst = sorted(different, key=lambda pair: pair is not self._at(first))
        for pair in worst[:5]:
            rel = "" if pair.rel_l2 is None else f"rel L2 {pair.rel_l2:.3g}"
            causes = [each.explanation for each in self.findings if each.name == pair.name_b]
            said = [pair.name_b, rel, pair.message or "", *causes[:1]]
            lines.append("  " + "  ".join(word for word in said if word))
        if len(different) > 5:
            lines.append(f"  and {len(different) - 5} more")
        for side, names in (("A", self.only_a), ("B", self.only_b)):
            if names:
                more = f" and {len(names) - 3} more" if len(names) > 3 else ""
                lines.append(f"  only in {side}: {', '.join(names[:3])}{more}")
        return lines

    def _at(self, first: Divergence | None) -> Pair | None:
        return next((pair for pair in self.pairs if first and pair.name_a == first.name), None)

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def __repr__(self) -> str:
        return f"<Report {self._lines()[0]}>"

    def _repr_html_(self) -> str:
        return self.to_html()

    def to_html(self) -> str:
        """A table of all pairs, as notebooks show it."""
        head = "".join(f"<th>{word}</th>" for word in
                       ("A", "B", "status", "rel L2", "max |Δ|", "cosine", "note"))
        rows = ""
        for pair in self.pairs:
            causes = "; ".join(each.explanation for each in self.findings
                               if each.name == pair.name_b)
            cells = [pair.name_a, pair.name_b, pair.status,
                     *(_short(pair.diff.get(key)) for key in ("rel_l2", "max_abs", "cosine")),
                     causes or pair.message or ""]
            rows += "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
        title = html.escape(self._lines()[0])
        return f"<p><b>{title}</b></p><table><tr>{head}</tr>{rows}</table>"


def _short(value: Any) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "" if value is None else str(value)


def compare(a: Any, b: Any, *, atol: float | None = None, rtol: float | None = None,
            equal_nan: bool = True, threads: int = 0, noise: Any = None, weights: Any = None,
            paths: Sequence[str] = (), ignore: str = "", diagnose: bool = True) -> Report:
    """Compares two sets of tensors; A is the reference.

    a, b: paths of files, folders or archives; (nested) dicts of arrays; modules; or arrays, of
        numpy, torch, jax and all that numpy.asarray() takes. Arrays in the host's memory are not
        copied; CUDA tensors are compared on their device, and copied only to explain a difference.
    atol, rtol: instead of the default of the coarser dtype of each pair.
    noise: a second run of A, to measure the noise between runs.
    weights: the model that made the dumps, to compute steps again.
    paths, ignore: only names that start so; not those in which this regular expression is found.

    >>> import numpy, tensordiff
    >>> x = numpy.linspace(1, 2, 64, dtype="float32").reshape(8, 8)
    >>> report = tensordiff.compare({"layers.0.attn": x}, {"layers.0.attn": x * 0.125})
    >>> report.verdict, report.findings[0].code
    ('different', 'scale')
    """
    options: dict[str, object] = {
        "atol": atol, "rtol": rtol, "equal_nan": equal_nan, "threads": threads,
        "paths": list(paths), "ignore_regex": ignore, "diagnose": diagnose}
    on_device = None
    if _may_have_cuda() and noise is None and weights is None and not paths and not ignore:
        from .cuda.pairs import compare_on_device, has_cuda
        if has_cuda(a) and has_cuda(b):
            on_device = compare_on_device(a, b, atol=atol, rtol=rtol, equal_nan=equal_nan,
                                          diagnose=diagnose)
            a, b = on_device.a, on_device.b
    side_a, alive_a = side_of(a)
    side_b, alive_b = side_of(b)
    alive: list[Any] = [alive_a, alive_b]
    for name, value in (("noise", noise), ("weights", weights)):
        if value is not None:
            options[name], more = side_of(value)
            alive.append(more)
    _prepare()
    text, error = _engine.compare(side_a, side_b, options)
    del alive
    if error:
        raise ComparisonError(error)
    if on_device is not None and on_device.rows:
        from .cuda.pairs import with_rows
        text = with_rows(text, on_device)
    return Report(text)


def _may_have_cuda() -> bool:
    torch: Any = sys.modules.get("torch")
    return torch is not None and torch.cuda.is_available()


@functools.cache
def _prepare() -> None:
    path = program_path()
    if path is not None:
        _engine.use_program(path)


