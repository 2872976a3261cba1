"""Reads trace.json; needs nothing but Python."""

from __future__ import annotations

import json
import os
import pathlib
import re
from typing import Any

from .untyped import is_mapping

SCHEMA = "tensordiff.trace/1"


class TraceError(ValueError):
    """A trace.json that cannot be used."""


def read_trace(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The trace of a captured folder; raises TraceError where it is none of this version."""
    path = pathlib.Path(folder) / "trace.json"
    try:
        trace: Any = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise TraceError(f"{path}: missing; the capture is not finished") from None
    except (OSError, ValueError) as error:
        raise TraceError(f"{path}: {error}") from error
    schema = trace.get("schema") if is_mapping(trace) else None
    found = re.fullmatch(r"tensordiff\.trace/(\d+)(\..*)?", str(schema))
    if not found or found[1] != "1":
        raise TraceError(f"{path}: schema {schema!r}; this version reads {SCHEMA}")
    return dict(trace)
