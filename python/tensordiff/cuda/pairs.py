"""compare() of CUDA tensors: pairs of one name and shape are measured on their device.

What agrees is never copied. A difference has to be explained on the host: then all tensors are
copied if they are small enough together, and otherwise the pairs that differ.
"""

from __future__ import annotations

import dataclasses
import json
import math
import sys
import warnings
from typing import Any

import numpy
import torch

from ..arrays import DTYPES, named_arrays
from .compiler import CudaError
from .measure import measure

# As much as the host reads in about a second.
_HOST_BYTES = 1 << 30

# Default rtol and atol by the engine's names of dtypes, from fine to coarse: src/tensor/dtype.cpp.
TOLERANCES = {
    "f64": (1e-7, 1e-7), "c128": (1e-7, 1e-7), "f32": (1.3e-6, 1e-5), "c64": (1.3e-6, 1e-5),
    "f16": (1e-3, 1e-5), "bf16": (1.6e-2, 1e-5), "f8_e4m3": (0.125, 0.0675),
    "f8_e4m3fnuz": (0.125, 0.0675), "f8_e5m2": (0.25, 0.125), "f8_e5m2fnuz": (0.25, 0.125)}
_WITH_STEPS = ("f64", "f32", "f16", "bf16", "f8_e4m3", "f8_e4m3fnuz", "f8_e5m2", "f8_e5m2fnuz",
               "f8_e8m0")
_NONE = (1 << 64) - 1


@dataclasses.dataclass
class OnDevice:
    """What was compared on the device, and what is left for the host."""

    a: Any
    b: Any
    rows: list[dict[str, Any]]


def has_cuda(value: Any) -> bool:
    """Whether some tensor of a structure is on a CUDA device. Does not load torch."""
    if isinstance(value, str) or "torch" not in sys.modules:
        return False
    if isinstance(value, torch.nn.Module):
        value = value.state_dict()
    try:
        return any(isinstance(each, torch.Tensor) and each.is_cuda
                   for _, each in named_arrays(value))
    except TypeError:  # Not a structure of arrays; the host says so.
        return False


def compare_on_device(a: Any, b: Any, *, atol: float | None, rtol: float | None,
                      equal_nan: bool, diagnose: bool) -> OnDevice:
    """Measures what can be, and decides what has to be copied."""
    left_a, left_b = dict(named_arrays(a)), dict(named_arrays(b))
    rows: dict[str, dict[str, Any]] = {}
    try:
        for name in [name for name in left_a if name in left_b]:
            x, y = left_a[name], left_b[name]
            if not _comparable(x, y):
                continue
            tolerance = tolerance_of(_dtype(x), _dtype(y), atol, rtol)
            sums = measure(x, y, *tolerance)
            if sums is not None:
                rows[name] = row_of(name, x, y, sums, tolerance, equal_nan)
    except CudaError as error:
        warnings.warn(f"tensordiff compares CUDA tensors on the host: {error}", stacklevel=3)
        return OnDevice(a, b, [])
    different = {name for name, row in rows.items() if row["status"] == "different"}
    if different and diagnose:
        total = sum(each.numel() * each.element_size() for side in (left_a, left_b)
                    for each in side.values() if isinstance(each, torch.Tensor))
        if total <= _HOST_BYTES:
            return OnDevice(a, b, [])
        rows = {name: row for name, row in rows.items() if name not in different}
    for name in rows:
        del left_a[name], left_b[name]
    return OnDevice(left_a, left_b, list(rows.values()))


def _comparable(a: Any, b: Any) -> bool:
    return all(isinstance(each, torch.Tensor) and each.is_cuda and not each.is_quantized
               and each.layout == torch.strided for each in (a, b)) \
        and a.device == b.device and a.shape == b.shape and _dtype(a) != "" and _dtype(b) != ""


def _dtype(tensor: torch.Tensor) -> str:
    return DTYPES.get(str(tensor.dtype).removeprefix("torch."), "")


def tolerance_of(dtype_a: str, dtype_b: str, atol: float | None,
                 rtol: float | None) -> tuple[float, float]:
    """atol and rtol: those given, or the defaults of the coarser dtype. Integers are exact."""
    order = list(TOLERANCES)
    known = [each for each in (dtype_a, dtype_b) if each in TOLERANCES]
    found = TOLERANCES[max(known, key=order.index)] if known else (0.0, 0.0)
    return (found[1] if atol is None else atol), (found[0] if rtol is None else rtol)


def row_of(name: str, a: torch.Tensor, b: torch.Tensor, sums: Any, tolerance: tuple[float, float],
           equal_nan: bool) -> dict[str, Any]:
    """A pair as `tensordiff -o report` writes it; docs/metrics.md defines the numbers."""
    dtype_a, dtype_b = _dtype(a), _dtype(b)
    steps = dtype_a in _WITH_STEPS and dtype_b in _WITH_STEPS
    diff = diff_of(sums, list(a.shape), tolerance, equal_nan, steps)
    if diff["max_abs_at"] is not None:
        place = tuple(diff["max_abs_at"])
        diff["a_there"], diff["b_there"] = (_number(_real(each[place])) for each in (a, b))
    if diff["nonfinite_mismatch"] == 0 and diff["equal"] == diff["compared"]:
        status = "identical" if dtype_a == dtype_b else "equal"
    else:
        within = diff["exceeding"] == 0 and diff["nonfinite_mismatch"] == 0
        status = "close" if within else "different"
    return {"index": 0, "name_a": name, "name_b": name, "layer": None, "stage": None,
            "matched_by": "exact", "status": status, "dtype_a": dtype_a, "dtype_b": dtype_b,
            "shape_a": list(a.shape), "shape_b": list(b.shape), "shape": list(a.shape),
            "alignment": [], "stats_a": _stats(sums["a"]), "stats_b": _stats(sums["b"]),
            "diff": diff, "message": None, "verdict": None, "baseline": None,
            "made_from_a": None, "made_from_b": None}


def _real(element: torch.Tensor) -> float:
    value = element.item()
    return float(value.real)


def _number(value: float) -> Any:
    return float(value) if math.isfinite(value) else str(float(value))


def _stats(moments: Any) -> dict[str, Any]:
    count, mean, m2 = (float(moments[key]) for key in ("count", "mean", "m2"))
    found: dict[str, Any] = {
        "mean": mean, "std": math.sqrt(m2 / count), "min": float(moments["min"]),
        "max": float(moments["max"]), "norm": math.sqrt(m2 + count * mean * mean),
    } if count else dict.fromkeys(("mean", "std", "min", "max", "norm"))
    return {**found, **{key: int(moments[key]) for key in ("zeros", "nan", "inf")}}


def diff_of(sums: Any, shape: list[int], tolerance: tuple[float, float], equal_nan: bool,
            steps: bool) -> dict[str, Any]:
    """The metrics of docs/metrics.md, as src/compare/compare.cpp makes them of the same sums."""
    count, agreeing = int(sums["count"]), int(sums["agreeing"])
    mismatch = int(sums["mismatch"]) + (0 if equal_nan else agreeing)
    diff: dict[str, Any] = {"compared": count, "equal": int(sums["equal"])}
    diff.update(dict.fromkeys((
        "max_abs", "max_abs_at", "a_there", "b_there", "mean_abs", "mse", "rmse", "max_rel",
        "mean_rel", "rel_l2", "cosine", "pcc", "norm_ratio", "ulp_max")))
    if count:
        mse = float(sums["d_squared"]) / count
        diff.update(max_abs=float(sums["max_abs"]), mean_abs=float(sums["d_abs"]) / count, mse=mse,
                    rmse=math.sqrt(mse), max_rel=float(sums["max_rel"]),
                    mean_rel=float(sums["d_relative"]) / count, **_angles(sums))
        if steps:
            diff["ulp_max"] = int(sums["ulp"])
    at = int(sums["max_abs_at"]) if count else None
    if mismatch:
        first = int(sums["mismatch_at"])
        at = first if equal_nan else min(first, int(sums["agreeing_at"]))
    if at is not None and at != _NONE:
        diff["max_abs_at"] = [int(each) for each in numpy.unravel_index(at, shape)] if shape else []
    needed = float(sums["rtol_needed"])
    diff.update(nonfinite_mismatch=mismatch, nonfinite_agreeing=agreeing if equal_nan else 0,
                exceeding=int(sums["exceeding"]), atol=tolerance[0], rtol=tolerance[1],
                rtol_needed=needed if mismatch == 0 and math.isfinite(needed) else None)
    return diff


def _angles(sums: Any) -> dict[str, Any]:
    n, mean_a, mean_b, m2_a, m2_b, co = (
        float(sums[key]) for key in ("values", "mean_a", "mean_b", "m2_a", "m2_b", "co"))
    norm_a = math.sqrt(m2_a + n * mean_a * mean_a)
    norm_b = math.sqrt(m2_b + n * mean_b * mean_b)

    def angle(both: float, one: float, other: float) -> float:
        same = int(sums["equal"]) == int(sums["count"])
        return 1.0 if same else max(-1.0, min(1.0, both / one / other))

    found: dict[str, Any] = {"rel_l2": "inf" if norm_b > 0 else 0.0}
    if norm_a > 0:
        found["rel_l2"] = math.sqrt(float(sums["d_squared"])) / norm_a
        found["norm_ratio"] = norm_b / norm_a
    if norm_a > 0 and norm_b > 0:
        found["cosine"] = angle(co + n * mean_a * mean_b, norm_a, norm_b)
    if m2_a > 0 and m2_b > 0:
        found["pcc"] = angle(co, math.sqrt(m2_a), math.sqrt(m2_b))
    return found


_ORDER = ("same", "close", "different", "trouble")


def with_rows(text: str, found: OnDevice) -> str:
    """The report of the host with the pairs of the device behind its own."""
    report: dict[str, Any] = json.loads(text)
    summary, pairs = report["summary"], report["pairs"]
    own = len(pairs) + len(report["only_a"]) + len(report["only_b"])
    verdict = summary["verdict"] if own and summary["verdict"] in _ORDER else "same"
    for row in found.rows:
        row["index"] = len(pairs)
        pairs.append(row)
        summary[row["status"]] += 1
        of_row = "same" if row["status"] in ("identical", "equal") else row["status"]
        verdict = max(verdict, of_row, key=_ORDER.index)
        if of_row == "different" and report["first_divergence"] is None:
            report["first_divergence"] = {
                "pair": row["index"], "name_a": row["name_a"], "name_b": row["name_b"],
                "layer": None, "stage": None, "created": False,
                "explanation": "the first pair, in display order, that is not close"}
        for side in ("a", "b"):
            elements = math.prod(row["shape"])
            report[side]["tensors"] += 1
            report[side]["elements"] += elements
            report[side]["bytes"] += elements * _bytes(row[f"dtype_{side}"])
    # The engine's caveat is that it had nothing to compare.
    summary.update(pairs=len(pairs), verdict=verdict, caveat=None)
    summary["coverage"].update(compared=len(pairs), of=len(pairs) + len(report["only_a"])
                               + len(report["only_b"]))
    return json.dumps(report, indent=2) + "\n"


def _bytes(dtype: str) -> int:
    if dtype == "bool" or dtype.startswith("f8"):
        return 1
    return int(dtype.lstrip("iufcb")) // 8
