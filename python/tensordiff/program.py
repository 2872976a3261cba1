"""The program tensordiff, which is in the package."""

from __future__ import annotations

import os
import pathlib
import sys


def program_path() -> str | None:
    """Where it is; None in a source tree that was not installed."""
    path = pathlib.Path(__file__).parent / "bin" / "tensordiff"
    return str(path) if path.exists() else None


def main() -> None:
    """The command `tensordiff`: `capture` is Python's, everything else the program's."""
    if sys.argv[1:2] == ["capture"]:
        from ._capture_main import capture_main
        sys.exit(capture_main(sys.argv[2:]))
    path = program_path()
    if path is None:
        sys.exit("tensordiff: the program is not in this package: install the wheel")
    os.execv(path, ["tensordiff", *sys.argv[1:]])
