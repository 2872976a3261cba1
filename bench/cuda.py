"""Comparison of CUDA tensors: correct against float64 in numpy, and how fast against memory.

    python bench/cuda.py [--out FOLDER]       needs a CUDA device, torch and python/ in the path

Writes cuda.json and cuda.txt. Speeds are ratios to what a plain copy on the device reaches in the
same run, and to a torch script that computes the same metrics.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import pathlib
import sys
import time

import numpy
import torch

sys.path.append(str(pathlib.Path(__file__).resolve().parent.parent / "python"))
from tensordiff.cuda import measure as cuda  # noqa: E402

GIB = 1 << 30
DTYPES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
          "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "int64", "int32", "int16", "int8",
          "uint64", "uint32", "uint16", "uint8", "bool", "complex64", "complex128")
MIXED = (("float32", "bfloat16"), ("bfloat16", "float16"), ("float64", "float32"),
         ("float32", "int32"), ("complex64", "float32"))
# Threads of a block, blocks of a multiprocessor, vectors ahead, copies of the loop's body.
VARIANTS = [(512, 1, 4, 1), (512, 1, 4, 2), (512, 1, 4, 4), (512, 1, 3, 3), (640, 1, 4, 4),
            (256, 2, 4, 2), (384, 1, 4, 2)]
SIZES = (1, 31, 255, 256, 257, 1000, 4096, 65536 + 7, 1_000_003)


def values(rng: numpy.random.Generator, count: int, dtype: str, kind: str) -> torch.Tensor:
    """`count` values of one of several kinds."""
    plain = {"normal": lambda: rng.normal(size=count), "near": lambda: 1000 + 0.01 * rng.normal(
        size=count), "sparse": lambda: rng.normal(size=count) * (rng.random(count) < 0.3),
        "wide": lambda: rng.normal(size=count) * 10.0 ** rng.uniform(-30, 30, count)}[kind]()
    target = getattr(torch, dtype)
    if dtype.startswith("complex"):
        plain = plain + 1j * rng.normal(size=count)
    elif not target.is_floating_point:
        scale = 3e18 if dtype in ("int64", "uint64") else 100
        plain = numpy.clip(plain, -1.2, 1.2) * scale
        if dtype.startswith("uint"):
            plain = abs(plain)
        if scale > 100:
            return torch.from_numpy(plain.astype(dtype))
    elif dtype == "float8_e8m0fnu":
        plain = abs(plain)
    return torch.from_numpy(numpy.asarray(plain)).to(target)


def twin(a: torch.Tensor, b: torch.Tensor, atol: float, rtol: float) -> dict[str, float]:
    """The sums in numpy: long double, one plain statement each."""
    x, y = (_plain(each) for each in (a, b))
    if x.dtype.kind == "c" or y.dtype.kind == "c":
        x, y = x.astype(numpy.complex128), y.astype(numpy.complex128)
    finite_a, finite_b = numpy.isfinite(x), numpy.isfinite(y)
    both = finite_a & finite_b
    same = (x == y) | (numpy.isnan(x) & numpy.isnan(y))
    p, q = x[both], y[both]
    size = abs(q - p).astype(numpy.float64)
    size_a, size_b = abs(p).astype(numpy.float64), abs(q).astype(numpy.float64)
    wide = size.astype(numpy.longdouble)
    found = {"count": len(p), "equal": int((size == 0).sum()),
             "exceeding": int((size > atol + rtol * size_a).sum()),
             "mismatch": int((~both & ~same).sum()), "agreeing": int((~both & same).sum()),
             "d_abs": wide.sum(), "d_squared": (wide * wide).sum(),
             "d_relative": (wide / (size_a + 1e-8)).sum(),
             "max_abs": size.max(initial=-1)}
    where = numpy.flatnonzero(both)
    found["max_abs_at"] = int(where[size.argmax()]) if len(size) else 0
    with numpy.errstate(all="ignore"):
        unlike = size > 0
        found["max_rel"] = (size[unlike] / numpy.maximum(size_a, size_b)[unlike]).max(initial=0)
        beyond = size > atol
        found["rtol_needed"] = ((size - atol)[beyond] / size_a[beyond]).max(initial=0)
    found.update(_moments(p, q))
    return found


def _moments(p: numpy.ndarray, q: numpy.ndarray) -> dict[str, float]:
    parts = [numpy.concatenate([each.real, each.imag]) if each.dtype.kind == "c" else each
             for each in (p, q)]
    u, v = (each.astype(numpy.longdouble) for each in parts)
    if not len(u):
        return {}
    du, dv = u - u.mean(), v - v.mean()
    return {"mean_a": u.mean(), "mean_b": v.mean(), "m2_a": (du * du).sum(),
            "m2_b": (dv * dv).sum(), "co": (du * dv).sum()}


def _plain(tensor: torch.Tensor) -> numpy.ndarray:
    tensor = tensor.cpu()
    if str(tensor.dtype) in ("torch.int64", "torch.uint64"):
        return tensor.numpy().astype(numpy.longdouble)
    if tensor.is_complex():
        return tensor.numpy()
    return tensor.to(torch.float64).numpy()


def steps_apart(a: torch.Tensor, b: torch.Tensor) -> int:
    """The largest number of representable values between two of one place."""
    ordered = []
    for each in (a, b):
        wide = each.cpu().contiguous().view(torch.int32 if each.element_size() == 4
                                            else torch.int16).to(torch.int64)
        top = 1 << (8 * each.element_size() - 1)
        ordered.append(torch.where(wide < 0, -(wide + top), wide))
    return int((ordered[0] - ordered[1]).abs().max())


EXACT = ("count", "equal", "exceeding", "mismatch", "agreeing", "max_abs", "max_abs_at")


def differences(found, wanted: dict[str, float], complex_: bool) -> list[str]:
    bad = []
    scale = {"co": math.sqrt(max(1e-300, float(wanted.get("m2_a", 0) * wanted.get("m2_b", 0)))),
             "mean_a": 0, "mean_b": 0}
    for name in ("a", "b"):
        count = max(1, wanted["count"])
        scale[f"mean_{name}"] = math.sqrt(float(wanted.get(f"m2_{name}", 0)) / count) \
            + abs(float(wanted.get(f"mean_{name}", 0)))
    for name, want in wanted.items():
        have, want = float(found[name]), float(want)
        if name in EXACT and not (complex_ and name in ("max_abs",)):
            right = have == want
        elif math.isinf(want) or math.isnan(want):
            right = have == want or math.isnan(want)
        else:
            right = abs(have - want) <= 1e-12 * max(abs(want), scale.get(name, 0))
        if not right:
            bad.append(f"{name}: {have!r}, wanted {want!r}")
    return bad


def spoil(rng: numpy.random.Generator, tensor: torch.Tensor) -> torch.Tensor:
    """NaN and infinities in some places."""
    tensor = tensor.clone()
    for value in (math.nan, math.inf, -math.inf):
        places = torch.from_numpy(rng.integers(0, tensor.numel(), 3))
        tensor[places] = value
    return tensor


def pair_of(rng: numpy.random.Generator, size: int, dtypes: tuple[str, str], kind: str,
            what: str) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Two tensors of a case; None where the dtypes have no such case."""
    dtype_a, dtype_b = dtypes
    of_a, of_b = getattr(torch, dtype_a), getattr(torch, dtype_b)
    if what == "nan" and (not of_a.is_floating_point or dtype_b == "int32" or size < 32
                          or "float8" in dtype_a):
        return None
    a = values(rng, size, dtype_a, kind)
    if what == "same":
        return a, a.to(of_b)
    wide = a if of_a.is_complex else a.to(torch.float64)
    noise = values(rng, size, dtype_b, "sparse")
    noise = noise.to(torch.complex128) if of_b.is_complex else noise.to(torch.float64)
    b = (wide * 3.0 if what == "scale" else wide + 1e-3 * noise)
    if dtype_b in ("int64", "uint64"):  # Above 2^63 the cast is not defined.
        b = wide / 3.0 if what == "scale" else wide
    b = b.to(of_b) if of_b.is_complex or not b.is_complex() else b.real.to(of_b)
    return (spoil(rng, a), spoil(rng, b)) if what == "nan" else (a, b)


def check(seed: int) -> tuple[int, list[str]]:
    rng = numpy.random.default_rng(seed)
    done, wrong = 0, []
    pairs = [(each, each) for each in DTYPES if hasattr(torch, each)] + list(MIXED)
    for dtypes in pairs:
        fast = dtypes in (("float32",) * 2, ("bfloat16",) * 2, ("float16",) * 2)
        sizes = SIZES if fast else (1, 257, 65536 + 7)
        for size, kind, what in itertools.product(
                sizes, ("normal", "near", "sparse", "wide"), ("noise", "same", "nan", "scale")):
            case = f"{' '.join(dtypes)} {size} {kind} {what}"
            try:
                pair = pair_of(rng, size, dtypes, kind, what)
                if pair is None:
                    continue
                a, b = pair
                atol, rtol = [(1e-5, 1.3e-6), (0.0, 0.0), (0.5, 0.125)][done % 3]
                found = cuda.measure(a.cuda(), b.cuda(), atol, rtol)
                done += 1
                bad = differences(found, twin(a, b, atol, rtol), "complex" in dtypes[0])
            except Exception as error:  # The other cases are still wanted.
                bad = [f"{type(error).__name__}: {error}"]
            if bad:
                wrong.append(f"{case}: " + "; ".join(bad))
    return done, wrong


def torch_script(a: torch.Tensor, b: torch.Tensor, atol: float, rtol: float) -> list[torch.Tensor]:
    """The same metrics as a person would write them in torch; in f32, to save memory."""
    x, y = a.float(), b.float()
    d = y - x
    size, size_a = d.abs(), x.abs()
    return [size.max(), size.argmax(), size.mean(), (d * d).mean(), (size / (size_a + 1e-8)).mean(),
            (size / torch.maximum(size_a, y.abs()).clamp_min(1e-30)).max(), x.norm(), y.norm(),
            d.norm(), (x * y).sum(), x.mean(), y.mean(), x.std(), y.std(), x.min(), x.max(),
            y.min(), y.max(), (size > atol + rtol * size_a).sum(), (x == y).sum(),
            ((size - atol) / size_a.clamp_min(1e-30)).max(), x.isfinite().all(), y.isfinite().all()]


def seconds(work, times: int = 20) -> float:
    """The least of several runs, on the device's own clock."""
    work()
    least = math.inf
    for _ in range(times):
        # Keeps the device busy until all is asked for: Python's own time is in call_gb_s.
        torch.cuda._sleep(1 << 20)
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        least = min(least, begin.elapsed_time(end) / 1e3)
    return least


def speed(dtype: torch.dtype, variants: bool) -> dict[str, float]:
    count = GIB // torch.tensor([], dtype=dtype).element_size()
    torch.manual_seed(5)
    a = torch.empty(count, dtype=dtype, device="cuda")
    for part in a.split(count // 8):
        part.copy_(torch.randn(part.numel(), device="cuda"))
    b = torch.empty_like(a)
    for part, other in zip(a.split(count // 8), b.split(count // 8)):
        other.copy_(part.float() * (1 + 0.02 * torch.randn(part.numel(), device="cuda")))
    moved = 2 * a.numel() * a.element_size()
    out = torch.empty_like(a)
    copy = seconds(lambda: out.copy_(a))
    del out
    result = {"bytes": moved, "copy_gb_s": moved / copy / 1e9}
    kind = {torch.float32: "F32", torch.bfloat16: "BF16", torch.float16: "F16"}[dtype]
    usual = cuda._THREADS, cuda._BLOCKS, cuda._STAGES, cuda._UNROLL[kind]
    shapes = [usual, *(each for each in VARIANTS if each != usual)] if variants else [usual]
    for shape in shapes:
        cuda._THREADS, cuda._BLOCKS, cuda._STAGES, cuda._UNROLL[kind] = shape
        with torch.cuda.device(0):
            took = seconds(lambda: cuda._measure_fast(a, b, kind, 1e-5, 1.3e-6))
        name = "kernel" if shape == usual else "kernel_" + "x".join(map(str, shape))
        result[f"{name}_gb_s"] = moved / took / 1e9
    cuda._THREADS, cuda._BLOCKS, cuda._STAGES, cuda._UNROLL[kind] = usual
    cuda.measure(a, b, 1e-5, 1.3e-6)
    begin = time.perf_counter()
    for _ in range(5):
        cuda.measure(a, b, 1e-5, 1.3e-6)
    result["call_gb_s"] = moved * 5 / (time.perf_counter() - begin) / 1e9
    result["torch_gb_s"] = moved / seconds(lambda: torch_script(a, b, 1e-5, 1.3e-6), 3) / 1e9
    return result


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", default=".")
    parser.add_argument("--seed", type=int, default=20261117)
    parser.add_argument("--variants", action="store_true", help="try other sizes of blocks")
    options = parser.parse_args()
    done, wrong = check(options.seed)
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__,
              "checked": done, "wrong": wrong[:200], "seed": options.seed, "speed": {}}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        result["speed"][str(dtype).removeprefix("torch.")] = speed(dtype, options.variants)
    lines = [f"{result['device']}, torch {torch.__version__}",
             f"{done} pairs checked against numpy, {len(wrong)} wrong (seed {options.seed})",
             *wrong[:40]]
    for name, row in result["speed"].items():
        lines.append(name + ": " + ", ".join(f"{key} {value:.0f}" for key, value in row.items()))
    folder = pathlib.Path(options.out)
    (folder / "cuda.json").write_text(json.dumps(result, indent=1) + "\n")
    (folder / "cuda.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
