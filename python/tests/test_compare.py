"""compare() and assert_close(): arrays of all kinds, the same report as from files."""

from __future__ import annotations

import importlib.metadata
import json
import pathlib
import pickle
import subprocess
import sys
from typing import Any

import numpy
import pytest

import tensordiff
from tensordiff.arrays import DTYPES, side_of
from tensordiff.golden import save


def demo(scale: float = 1.0) -> dict[str, Any]:
    x = numpy.random.default_rng(0).standard_normal((8, 16), dtype="float32")
    return {"layers.0.attn": x * numpy.float32(scale), "layers.0.mlp": x + 1}


def test_a_cause_is_named() -> None:
    report = tensordiff.compare(demo(), demo(0.125))
    assert report.verdict == "different" and not report.close
    assert report.first_divergence is not None
    assert report.first_divergence.name == "layers.0.attn"
    assert [(each.code, each.name) for each in report.findings] == [("scale", "layers.0.attn")]
    assert "1 of 2 tensors differ; the first: layers.0.attn" in str(report)
    assert "<table>" in report._repr_html_()
    again = pickle.loads(pickle.dumps(report))
    assert again.to_dict() == report.to_dict() and again.pairs == report.pairs
    assert report.table()[0]["rel_l2"] == pytest.approx(0.875)


def test_the_table_is_one_for_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(tensordiff.compare(demo(), demo(0.125)).table())
    assert list(frame["status"]) == ["different", "identical"]
    assert frame["rel_l2"].dtype == "float64" and frame.loc[0, "ulp_max"] > 0


def test_memory_and_files_give_the_same_report(tmp_path: pathlib.Path) -> None:
    save(tmp_path / "a.safetensors", demo())
    save(tmp_path / "b.safetensors", demo(0.125))
    files = tensordiff.compare(tmp_path / "a.safetensors", str(tmp_path / "b.safetensors"))
    memory = tensordiff.compare(demo(), demo(0.125))
    # Byte for byte, but for where the two sides come from.
    texts = []
    for report in (files, memory):
        text = report.json
        for side in ("a", "b"):
            origin = report.to_dict()[side]
            for key in ("path", "format", "container", "file_bytes"):
                if key in origin:
                    text = text.replace(f'"{key}": {json.dumps(origin[key])}', f'"{key}": 0')
        texts.append(text)
    assert texts[0] == texts[1]


def test_errors_name_what_is_wrong(tmp_path: pathlib.Path) -> None:
    with pytest.raises(tensordiff.ComparisonError, match="nosuch"):
        tensordiff.compare(tmp_path / "nosuch.pt", demo())
    with pytest.raises(TypeError, match=r"x\.0: set is neither"):
        tensordiff.compare({"x": [{1}]}, demo())
    with pytest.raises(TypeError, match="x: dtype"):
        tensordiff.compare({"x": numpy.array(["text"])}, demo())


def test_layouts_of_numpy() -> None:
    x = numpy.arange(24, dtype="float32").reshape(4, 6)
    for same in (x.copy(order="F"), x[::-1][::-1], x.astype(">f4"),
                 numpy.pad(x, 1)[1:-1, 1:-1]):
        assert tensordiff.compare({"x": x}, {"x": same}).verdict == "same"
    wide = numpy.broadcast_to(x[0], (4, 6))
    assert tensordiff.compare({"x": wide}, {"x": wide.copy()}).verdict == "same"
    readonly = x.copy()
    readonly.flags.writeable = False
    tensordiff.assert_close(x, readonly)


def test_mismatch_has_the_report() -> None:
    with pytest.raises(tensordiff.Mismatch, match="1 of 2 tensors differ") as caught:
        tensordiff.assert_close(demo(), demo(0.125))
    assert caught.value.report.verdict == "different"
    assert isinstance(pickle.loads(pickle.dumps(caught.value)), AssertionError)


def test_torch_tensors_of_every_dtype() -> None:
    torch = pytest.importorskip("torch")
    for name in DTYPES:
        dtype = getattr(torch, name, None)
        if dtype is None:
            continue
        x = (torch.rand(6, 4) * 10 + 1).to(dtype)
        for same in (x, x.t().contiguous().t() if x.element_size() > 1 else x.clone()):
            report = tensordiff.compare({"x": x}, {"x": same})
            assert report.verdict == "same", name
            assert report.pairs[0].dtype_b == DTYPES[name]


def test_bits_that_torch_puts_off_are_resolved() -> None:
    torch = pytest.importorskip("torch")
    x = torch.randn(4, dtype=torch.complex64)
    assert tensordiff.compare({"x": x.conj().imag}, {"x": -x.imag}).verdict == "same"
    assert tensordiff.compare({"x": x.conj()}, {"x": x.conj().resolve_conj()}).verdict == "same"
    with pytest.raises(TypeError, match="sparse_coo"):
        tensordiff.compare({"x": torch.eye(3).to_sparse()}, {"x": torch.eye(3)})
    with pytest.raises(TypeError, match="meta"):
        tensordiff.compare({"x": torch.empty(3, device="meta")}, {"x": torch.eye(3)})


def test_arrays_are_read_in_place() -> None:
    x = numpy.arange(24, dtype="float32").reshape(4, 6)
    for array in (x, x.T, x[:, ::2], numpy.broadcast_to(x[0], (3, 6))):
        ((_, _, _, strides, address),), _ = side_of({"x": array})
        assert address == array.ctypes.data
        assert strides == [stride // 4 for stride in array.strides]
    torch = pytest.importorskip("torch")
    for name in DTYPES:
        if hasattr(torch, name):
            tensor = torch.zeros(6, 4).to(getattr(torch, name)).t()
            assert side_of({"x": tensor})[0][0][3:] == ([1, 4], tensor.data_ptr()), name


def test_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    for name in ("float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int32", "bool"):
        x = jax.numpy.arange(12).reshape(3, 4).astype(name)
        report = tensordiff.compare({"x": x}, {"x": numpy.asarray(x)})
        assert report.verdict == "same" and report.pairs[0].dtype_a == DTYPES[name]
        address = x.addressable_data(0).unsafe_buffer_pointer()
        assert side_of({"x": x})[0][0][4] == address, name  # Not copied.
    x = jax.numpy.ones((3, 4))
    assert tensordiff.compare([x, {"y": x}], [x, {"y": x * 2}]).first_divergence is not None


def test_modules_and_parameters() -> None:
    torch = pytest.importorskip("torch")
    a = torch.nn.Linear(3, 3)
    tensordiff.assert_close(a, a.state_dict())
    b = torch.nn.Linear(3, 3)
    assert tensordiff.compare(a, b).verdict == "different"


def test_torch_is_not_needed() -> None:
    code = "import sys; sys.modules['torch'] = None; import numpy, tensordiff; " \
           "tensordiff.assert_close(numpy.ones(3), numpy.ones(3))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_program_is_in_the_package(tmp_path: pathlib.Path) -> None:
    save(tmp_path / "a.safetensors", demo())
    save(tmp_path / "b.safetensors", demo(0.125))
    done = subprocess.run([sys.executable, "-m", "tensordiff", "a.safetensors", "b.safetensors"],
                          cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 1 and "layers.0.attn" in done.stdout
    script = pathlib.Path(sys.executable).with_name("tensordiff")  # What `uvx tensordiff` starts.
    done = subprocess.run([script, "a.safetensors", "b.safetensors"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 1 and "layers.0.attn" in done.stdout
    done = subprocess.run([script, "capture", "--help"], capture_output=True, text=True)
    assert done.returncode == 0 and "--model-attr" in done.stdout


def test_the_plugin(pytester: Any) -> None:
    pytester.makepyfile("""
        import numpy

        def test_bad(tensordiff):
            x = numpy.linspace(1, 2, 64, dtype="float32").reshape(8, 8)
            tensordiff.assert_close({"layers.1.o": x}, {"layers.1.o": x * 0.125})

        def test_golden(tensordiff):
            tensordiff.golden("x", {"x": numpy.arange(8.0)})
    """)
    installed = any(point.name == "tensordiff" for point in
                    importlib.metadata.entry_points(group="pytest11"))
    plugin = () if installed else ("-p", "tensordiff.pytest_plugin")
    result = pytester.runpytest_subprocess(*plugin, "--tensordiff-report", "kept")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*1 of 1 tensors differ; the first: layers.1.o",
                                 "*layers.1.o  rel L2 0.875*0.125*", "*report: kept*.html",
                                 "*no golden values*--tensordiff-record*"])
    assert "Traceback" not in result.stdout.str()
    assert len(list(pytester.path.joinpath("kept").iterdir())) == 1
    pytester.runpytest_subprocess(*plugin, "--tensordiff-record", "-k", "golden")
    pytester.runpytest_subprocess(*plugin, "-k", "golden").assert_outcomes(passed=1)
