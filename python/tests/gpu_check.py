"""The package on a machine with a GPU: compare() on the device, right and how fast; and models.

    python3 python/tests/gpu_check.py --wheel tensordiff-*-abi3-*.whl --out FOLDER

Needs torch with CUDA and numpy; installs nothing: the wheel is unpacked into a temporary folder.
Writes gpu.json and gpu.txt. The exit status is 1 if anything was wrong.
"""

from __future__ import annotations

import argparse
import json
import math
import pathlib
import shutil
import sys
import tempfile
import time
import traceback
import zipfile

import numpy
import torch

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[1] / "bench"), str(HERE)]

# What a report says of a pair that has to be the same on both ways; the rest to 1e-12.
EXACT = ("compared", "equal", "max_abs", "max_abs_at", "a_there", "b_there", "ulp_max",
         "nonfinite_mismatch", "nonfinite_agreeing", "exceeding", "atol", "rtol")


def unpack(wheel: str) -> None:
    folder = pathlib.Path(tempfile.mkdtemp())
    with zipfile.ZipFile(wheel) as file:
        file.extractall(folder)
    (folder / "tensordiff" / "bin" / "tensordiff").chmod(0o755)
    # The engine is the wheel's; Python code and kernels are those of this tree.
    shutil.copytree(HERE.parent / "tensordiff", folder / "tensordiff", dirs_exist_ok=True)
    sys.path.insert(0, str(folder))


def cases(rng: numpy.random.Generator):
    """(name, A, B, options) on the host."""
    def normal(*shape: int) -> torch.Tensor:
        return torch.from_numpy(rng.normal(size=shape))

    for dtype in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
        for shape in ((7,), (64, 33), (3, 257, 129)):
            a = normal(*shape)
            for what, b in (("same", a), ("noise", a * (1 + 1e-7 * normal(*shape))),
                            ("far", a + normal(*shape))):
                yield f"{dtype} {shape} {what}", {"w": a.to(dtype)}, {"w": b.to(dtype)}, {}
    a = normal(50, 40).float()
    spoiled = a.clone()
    spoiled[3, 4], spoiled[7, 1] = math.nan, math.inf
    yield "NaN on both", {"w": spoiled}, {"w": spoiled.clone()}, {}
    yield "NaN is not NaN", {"w": spoiled}, {"w": spoiled.clone()}, {"equal_nan": False}
    yield "NaN in one", {"w": a}, {"w": spoiled}, {}
    yield "transposed", {"w": a.t()}, {"w": (a * 1.001).t()}, {}
    yield "expanded", {"w": a[:1].expand(50, 40)}, {"w": a}, {}
    yield "two dtypes", {"w": a}, {"w": a.bfloat16()}, {}
    yield "imaginary part of a conjugate", {"w": torch.complex(a, a).conj().imag}, {"w": -a}, {}
    yield "put-off sign", {"w": torch._neg_view(a)}, {"w": -a}, {}
    yield "put-off conjugate", {"w": torch.complex(a, a).conj()}, {"w": torch.complex(a, -a)}, {}
    yield "complex", {"w": torch.complex(a, a)}, {"w": torch.complex(a, a * 1.1)}, {}
    yield "integers", {"w": (a * 100).long()}, {"w": (a * 100.4).long()}, {}
    yield "bool", {"w": a > 0}, {"w": a > 0.1}, {}
    yield "empty", {"w": a[:0]}, {"w": a[:0]}, {}
    yield "scalar", {"w": a[0, 0]}, {"w": a[0, 0] * 1.5}, {}
    yield "a list", [a, {"x": a}], [a, {"x": a * 2}], {}
    yield "only in one", {"w": a, "x": a}, {"w": a}, {}
    yield "another shape", {"w": a}, {"w": a[:, :10]}, {}
    yield "tolerance", {"w": a}, {"w": a * 1.01}, {"atol": 0.0, "rtol": 0.02}
    if hasattr(torch, "float8_e4m3fn"):
        yield "float8", {"w": a.to(torch.float8_e4m3fn)}, {"w": (a * 1.1).to(
            torch.float8_e4m3fn)}, {}


def moved(value, to: str):
    if isinstance(value, torch.Tensor):
        return value.to(to)
    if isinstance(value, dict):
        return {key: moved(each, to) for key, each in value.items()}
    return [moved(each, to) for each in value]


def alike(have, want, exact: bool) -> bool:
    if exact or have is None or want is None or isinstance(have, str) or isinstance(want, str):
        return have == want
    return abs(have - want) <= 1e-12 * max(1.0 if abs(want) <= 1 else abs(want), 1e-300)


def same_rows(host, device) -> list[str]:
    wrong = []
    rows_a, rows_b = ({row["name_b"]: row for row in each["pairs"]} for each in (host, device))
    if rows_a.keys() != rows_b.keys():
        return [f"pairs: {sorted(rows_b)}, wanted {sorted(rows_a)}"]
    if host["summary"]["verdict"] != device["summary"]["verdict"]:
        wrong.append(f"verdict {device['summary']['verdict']}, wanted "
                     f"{host['summary']['verdict']}")
    for name, want in rows_a.items():
        have = rows_b[name]
        for key in ("status", "dtype_a", "dtype_b", "shape_a", "shape_b"):
            if have[key] != want[key]:
                wrong.append(f"{name} {key}: {have[key]}, wanted {want[key]}")
        if set(have) != set(want):
            wrong.append(f"{name}: keys {sorted(set(have) ^ set(want))}")
        for part in ("diff", "stats_a", "stats_b"):
            for key, value in (want[part] or {}).items():
                if not alike((have[part] or {}).get(key), value, key in EXACT):
                    wrong.append(f"{name} {part}.{key}: {(have[part] or {}).get(key)!r}, "
                                 f"wanted {value!r}")
    return wrong


def check_compare() -> tuple[int, int, list[str]]:
    """compare() on the device against compare() of the same on the host."""
    import tensordiff
    from tensordiff.cuda import pairs
    done, on_device, wrong = 0, 0, []
    for name, a, b, options in cases(numpy.random.default_rng(3)):
        try:
            want = tensordiff.compare(a, b, diagnose=False, **options).to_dict()
            there = moved(a, "cuda"), moved(b, "cuda")
            have = tensordiff.compare(*there, diagnose=False, **options).to_dict()
            found = pairs.compare_on_device(
                *there, atol=options.get("atol"), rtol=options.get("rtol"),
                equal_nan=options.get("equal_nan", True), diagnose=False)
            on_device += len(found.rows)
            wrong += [f"{name}: {each}" for each in same_rows(want, have)]
            full = [tensordiff.compare(*each, **options) for each in ((a, b), there)]
            if [f.code for f in full[0].findings] != [f.code for f in full[1].findings]:
                wrong.append(f"{name}: findings {full[1].findings}, wanted {full[0].findings}")
        except Exception:  # The other cases are still wanted.
            wrong.append(f"{name}: {traceback.format_exc(limit=3)}")
        done += 1
    return done, on_device, wrong


def check_no_copy() -> tuple[dict[str, float], list[str]]:
    """What agrees is not copied to the host: bytes that pass through Tensor.cpu()."""
    import tensordiff
    a = torch.randn(1 << 28, device="cuda")
    copied = 0
    original = torch.Tensor.cpu

    def counting(tensor, *args, **kwargs):
        nonlocal copied
        copied += tensor.numel() * tensor.element_size() if tensor.is_cuda else 0
        return original(tensor, *args, **kwargs)

    torch.Tensor.cpu = counting
    try:
        b = a.clone()
        begin = time.perf_counter()
        report = tensordiff.compare({"w": a}, {"w": b})
        took = time.perf_counter() - begin
        b[12345] += 1
        other = tensordiff.compare({"w": a}, {"w": b}, diagnose=False)
    finally:
        torch.Tensor.cpu = original
    wrong = []
    if report.verdict != "same" or other.verdict != "different":
        wrong.append(f"verdicts of a 1 GiB pair: {report.verdict}, {other.verdict}")
    if copied > 1 << 20:
        wrong.append(f"{copied} bytes copied to the host")
    return {"compare_call_s": took, "copied_bytes": copied}, wrong


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--wheel", required=True)
    parser.add_argument("--out", default=".")
    parser.add_argument("--seed", type=int, default=20261118)
    parser.add_argument("--only", help="one part, such as speed")
    options = parser.parse_args()
    unpack(options.wheel)
    import cuda  # bench/cuda.py
    result: dict = {"device": torch.cuda.get_device_name(), "torch": torch.__version__}
    wrong: list[str] = []
    lines = [f"{result['device']}, torch {torch.__version__}"]
    import gpu_models
    for title, work in (
            ("compare", check_compare), ("no copy", check_no_copy), *gpu_models.CHECKS,
            ("kernels", lambda: cuda.check(options.seed)),
            ("speed", lambda: {str(each).removeprefix("torch."): cuda.speed(each, True) for each in
                               (torch.bfloat16, torch.float32, torch.float16)})):
        if options.only not in (None, title):
            continue
        try:
            found = work()
        except Exception:
            found = [traceback.format_exc(limit=4)]
            wrong += found
        result[title] = found
        if isinstance(found, tuple):
            wrong += found[-1]
            found = (*found[:-1], f"{len(found[-1])} wrong")
        lines.append(f"{title}: {found}")
        print(lines[-1], flush=True)
    lines += wrong[:60]
    print("\n".join(wrong[:60]))
    result["wrong"] = wrong
    print(json.dumps(result, default=str), flush=True)
    folder = pathlib.Path(options.out)
    (folder / "gpu.json").write_text(json.dumps(result, indent=1, default=str) + "\n")
    (folder / "gpu.txt").write_text("\n".join(lines) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
