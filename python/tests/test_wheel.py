"""The wheel as it is installed: for which Pythons, what it needs, what it brings along."""

from __future__ import annotations

import importlib.metadata
import pathlib
import subprocess
import sys
from typing import Any

import pytest

# What every Linux that manylinux wheels are for has itself (the policies of auditwheel).
SYSTEM = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1",
          "libstdc++.so.6", "libgcc_s.so.1", "libz.so.1", "linux-vdso.so.1",
          "ld-linux-x86-64.so.2"}


@pytest.fixture
def wheel() -> Any:
    try:
        return importlib.metadata.distribution("tensordiff")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("needs the installed wheel")


def files(wheel: Any, start: str) -> list[pathlib.Path]:
    return [pathlib.Path(wheel.locate_file(file)) for file in wheel.files
            if str(file).startswith(start)]


def test_one_wheel_is_for_all_pythons_from_3_12_on(wheel: Any) -> None:
    tags = [line.split()[1] for line in wheel.read_text("WHEEL").splitlines()
            if line.startswith("Tag:")]
    own = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    want = "cp312-abi3-" if sys.version_info >= (3, 12) else f"{own}-{own}-"
    assert tags and all(tag.startswith(want) and "manylinux" in tag for tag in tags), tags
    (engine,) = files(wheel, "tensordiff/_engine.")[:1]
    assert (".abi3." in engine.name) == (sys.version_info >= (3, 12))


def test_numpy_is_all_that_it_needs(wheel: Any) -> None:
    assert [line for line in wheel.requires if "extra" not in line] == ["numpy"]


def test_it_brings_its_libraries_along(wheel: Any) -> None:
    for file in (files(wheel, "tensordiff/bin/tensordiff")[0],
                 next(file for file in files(wheel, "tensordiff/_engine.")
                      if file.suffix == ".so")):
        text = subprocess.run(["ldd", str(file)], capture_output=True, text=True, check=True).stdout
        for line in text.splitlines():
            name, _, place = line.strip().partition(" => ")
            if pathlib.Path(name.split()[0]).name not in SYSTEM:
                assert "tensordiff.libs" in place, line


def test_hints_come_along(wheel: Any) -> None:
    assert {file.name for file in files(wheel, "tensordiff/")} >= {"py.typed", "_engine.pyi"}
