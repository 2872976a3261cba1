"""The CUDA kernels, compiled for the host, against numpy: their arithmetic, not their speed."""

from __future__ import annotations

import ctypes
import importlib.util
import pathlib
import shutil
import subprocess
from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")
if shutil.which("g++") is None:
    pytest.skip("needs a C++ compiler", allow_module_level=True)

from tensordiff.cuda import measure  # noqa: E402

HERE = pathlib.Path(__file__).parent
BENCH = HERE.parents[1] / "bench" / "cuda.py"
TYPES = {"float32": "F32", "bfloat16": "BF16", "float16": "F16"}


def check_of_the_device() -> Any:
    """bench/cuda.py, which checks the same on a GPU: its data and its twin in numpy."""
    found = importlib.util.spec_from_file_location("cuda_check", BENCH)
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def check() -> Any:
    return check_of_the_device()


class HostKernel:
    """One kernel as a function of the host."""

    def __init__(self, folder: pathlib.Path, file: str, name: str, defines: list[str],
                 per_vector: int) -> None:
        kernels = pathlib.Path(measure.__file__).parent
        parts = [HERE / "host.cuh", kernels / "sums.cuh", HERE / "host_device.cuh",
                 kernels / "records.cuh", kernels / file]
        any_type = file == "general.cu"
        pointer = "const void*" if any_type else "const uint4*"
        counts = "u64 first, u64 count" if any_type else "u64 rows"
        given = "first, count" if any_type else "rows"
        text = "\n".join(part.read_text() for part in parts) + f"""
extern "C" void run({pointer} a, {pointer} b, {counts}, double atol, double rtol, Sums* out) {{
  host_out = out;
  host_warps = 2;
  for (host_warp = 0; host_warp < 2; ++host_warp)
    for (host_lane = 0; host_lane < 32; ++host_lane) {name}(a, b, {given}, atol, rtol, nullptr);
}}
"""
        source = folder / f"{name}.cpp"
        source.write_text(text)
        library = folder / f"{name}.so"
        subprocess.run(["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-mfma", "-w", "-shared",
                        "-fPIC", "-DTHREADS=64", "-DBLOCKS=1", "-DUNROLL=1",
                        *(f"-D{each}" for each in defines), str(source), "-o", str(library)],
                       check=True)
        self._run = ctypes.CDLL(str(library)).run
        self._any_type, self._per_vector = any_type, per_vector

    def __call__(self, a: Any, b: Any, atol: float, rtol: float, first: int = 0) -> Any:
        out = numpy.zeros(64, measure.LAYOUT)
        counts = (first, a.numel()) if self._any_type else (a.numel() // (32 * self._per_vector),)
        self._run(ctypes.c_void_p(a.data_ptr()), ctypes.c_void_p(b.data_ptr()),
                  *(ctypes.c_uint64(each) for each in counts), ctypes.c_double(atol),
                  ctypes.c_double(rtol), ctypes.c_void_p(out.ctypes.data))
        return out


@pytest.fixture(scope="module")
def total(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """One record from those of all threads, by total.cu."""
    folder = tmp_path_factory.mktemp("total")
    kernels = pathlib.Path(measure.__file__).parent
    parts = [HERE / "host.cuh", kernels / "sums.cuh", HERE / "host_device.cuh",
             kernels / "total.cu"]
    source, library = folder / "total.cpp", folder / "total.so"
    source.write_text("\n".join(part.read_text() for part in parts) + """
extern "C" void run(const Sums* parts, u32 count, Sums* out) { *out = total_of(parts, 0, count); }
""")
    subprocess.run(["g++", "-std=c++17", "-O1", "-ffp-contract=off", "-w", "-shared", "-fPIC",
                    "-DTHREADS=1", str(source), "-o", str(library)], check=True)
    run = ctypes.CDLL(str(library)).run

    def of(rows: Any) -> Any:
        rows = numpy.ascontiguousarray(rows)
        out = numpy.zeros(1, measure.LAYOUT)
        run(ctypes.c_void_p(rows.ctypes.data), ctypes.c_uint32(len(rows)),
            ctypes.c_void_p(out.ctypes.data))
        return measure.from_zero(out[0])

    return of


def made(check: Any, rng: Any, count: int, dtype: str, kind: str, what: str) -> tuple[Any, Any]:
    a = check.values(rng, count, dtype, kind)
    noise = check.values(rng, count, dtype, "sparse").double()
    b = {"same": a.double(), "noise": a.double() + 1e-3 * noise, "scale": a.double() * 3,
         "sign": -a.double()}[what].to(a.dtype)
    return a, b


CASES = [("fast.cu", "measure_fast", each) for each in TYPES] + [
    ("packed.cu", "measure_packed", "bfloat16")]


@pytest.mark.parametrize("file,name,dtype", CASES)
def test_fast_kernels(file: str, name: str, dtype: str, check: Any, total: Any,
                      tmp_path: pathlib.Path) -> None:
    kind = TYPES[dtype]
    per_vector = 4 if kind == "F32" else 8
    run = HostKernel(tmp_path, file, name, [kind], per_vector)
    rest = HostKernel(tmp_path, "general.cu", "measure_any",
                      [f"A={kind}", f"B={kind}", f"STEPS={kind}"], 1)
    rng = numpy.random.default_rng(11)
    done = 0
    for count in (32 * per_vector, 3 * 32 * per_vector, 66 * 32 * per_vector + 5):
        for of_values in ("normal", "near", "sparse", "wide"):
            for what in ("same", "noise", "scale", "sign"):
                a, b = made(check, rng, count, dtype, of_values, what)
                if not bool(torch.isfinite(torch.stack([a, b]).float()).all()) \
                        or float(torch.stack([a, b]).abs().max()) > 8e37 and file == "fast.cu":
                    continue
                atol, rtol = [(1e-5, 1.3e-6), (0.0, 0.0), (0.5, 0.125)][done % 3]
                whole = count // (32 * per_vector) * (32 * per_vector)
                parts = [run(a, b, atol, rtol), rest(a, b, atol, rtol, whole)]
                found = total(numpy.concatenate(parts))
                done += 1
                assert check.differences(found, check.twin(a, b, atol, rtol), False) == [], \
                    (count, of_values, what)
                assert int(found["ulp"]) == check.steps_apart(a, b)
                for side, values in (("a", a), ("b", b)):
                    assert found[side]["zeros"] == int((values == 0).sum())
                    assert found[side]["min"] == float(values.min())
                    assert found[side]["max"] == float(values.max())
    assert done >= 36


def test_the_general_kernel_takes_what_is_not_finite(check: Any, total: Any,
                                                     tmp_path: pathlib.Path) -> None:
    run = HostKernel(tmp_path, "general.cu", "measure_any", ["A=BF16", "B=BF16", "STEPS=BF16"], 1)
    rng = numpy.random.default_rng(5)
    a, b = made(check, rng, 1000, "bfloat16", "normal", "noise")
    a, b = check.spoil(rng, a), check.spoil(rng, b)
    a[0] = float("nan")  # The first value, from which means count.
    found = total(run(a, b, 1e-5, 1.6e-2))
    assert check.differences(found, check.twin(a, b, 1e-5, 1.6e-2), False) == []


@pytest.mark.parametrize("first", [float("nan"), 1e30])
def test_means_count_from_a_pair_that_counts(first: float, check: Any, total: Any,
                                             tmp_path: pathlib.Path) -> None:
    run = HostKernel(tmp_path, "general.cu", "measure_any", ["A=F32", "B=F32", "STEPS=F32"], 1)
    rng = numpy.random.default_rng(5)
    a, b = made(check, rng, 1000, "float32", "near", "noise")
    a[0], b[0] = first, float("inf")
    found = total(run(a, b, 1e-5, 1e-6))
    assert check.differences(found, check.twin(a, b, 1e-5, 1e-6), False) == []


def test_compare_makes_the_same_rows_of_them(total: Any, tmp_path: pathlib.Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    """compare() as for CUDA tensors, with the host in place of the device."""
    from gpu_check import cases, same_rows

    import tensordiff
    from tensordiff import report
    from tensordiff.cuda import pairs
    kernels: dict[tuple[str, str], HostKernel] = {}
    measured = 0

    def on_host(a: Any, b: Any, atol: float, rtol: float) -> Any:
        nonlocal measured
        types = tuple(measure._TYPES[str(each.dtype).removeprefix("torch.")] for each in (a, b))
        if not measure._together(*types):
            return None
        if types not in kernels:
            folder = tmp_path / "_".join(types)
            folder.mkdir()
            kernels[types] = HostKernel(folder, "general.cu", "measure_any", [
                f"A={types[0]}", f"B={types[1]}", f"STEPS={measure._steps(*types)}"], 1)
        a, b = measure.plain(a), measure.plain(b)
        measured += 1
        return total(kernels[types](a, b, atol, rtol))

    def comparable(a: Any, b: Any) -> bool:
        return all(isinstance(each, torch.Tensor) for each in (a, b)) and a.shape == b.shape

    wanted = [(name, a, b, options, tensordiff.compare(a, b, diagnose=False, **options).to_dict())
              for name, a, b, options in cases(numpy.random.default_rng(3))]
    monkeypatch.setattr(report, "_may_have_cuda", lambda: True)
    monkeypatch.setattr(pairs, "has_cuda", lambda value: True)
    monkeypatch.setattr(pairs, "_comparable", comparable)
    monkeypatch.setattr(pairs, "measure", on_host)
    for name, a, b, options, want in wanted:
        have = tensordiff.compare(a, b, diagnose=False, **options).to_dict()
        assert same_rows(want, have) == [], name
        assert have["summary"] == want["summary"], name
    assert measured >= len(wanted)


@pytest.mark.parametrize("file,defines", [
    ("fast.cu", ["F32"]), ("fast.cu", ["F16"]), ("packed.cu", ["BF16"]),
    ("general.cu", ["A=C64", "B=F32", "STEPS=NO_TYPE"]), ("total.cu", [])])
def test_they_compile_for_a_device(file: str, defines: list[str]) -> None:
    from tensordiff.cuda.compiler import CudaError, compiled, source_of
    try:
        image = compiled(source_of(file), file, [
            "--gpu-architecture=sm_90", "--std=c++17", "-DTHREADS=512", "-DBLOCKS=1",
            "-DSTAGES=4", "-DUNROLL=4",
            *(f"-D{each}" for each in defines)])
    except CudaError as error:
        if "not installed" in str(error):
            pytest.skip(str(error))
        raise
    assert image[:4] == b"\x7fELF"


def test_a_much_smaller_b_is_measured_again(check: Any, total: Any,
                                            tmp_path: pathlib.Path) -> None:
    """packed.cu loses digits of B's squares there, and says so by the result."""
    run = HostKernel(tmp_path, "packed.cu", "measure_packed", ["BF16"], 8)
    a = check.values(numpy.random.default_rng(3), 256, "bfloat16", "normal")
    for factor, sound in ((1.0, True), (0.125, True), (0.01, False), (0.0, False)):
        found = total(run(a, a * factor, 1e-5, 1e-2))
        assert measure._is_sound(found, True) is sound, factor
        if sound:
            assert check.differences(found, check.twin(a, a * factor, 1e-5, 1e-2), False) == []
