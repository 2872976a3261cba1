"""The version of the package, which is the program's."""

from __future__ import annotations

import importlib.metadata


def _installed() -> str:
    try:
        return importlib.metadata.version("tensordiff")
    except importlib.metadata.PackageNotFoundError:  # Run from the source tree.
        return "0+source"


__version__ = _installed()
