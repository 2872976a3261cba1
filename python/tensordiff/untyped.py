"""Packages whose own hints are partial or missing: what comes from them is Any here."""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard


def package(name: str) -> Any:
    """A package that may not be installed, which is then an ImportError."""
    return importlib.import_module(name)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    return isinstance(value, Mapping)


def is_sequence(value: Any) -> TypeGuard[Sequence[Any]]:
    """A list or a tuple."""
    return isinstance(value, (list, tuple))
