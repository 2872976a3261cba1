"""Where in the code a call is made.

The line of a frame is slow to find (Python decodes a table each time), and a capture asks at every
call. So a place is kept as the code object and the instruction, and becomes a line at the end.
"""

from __future__ import annotations

import bisect
import types
from typing import Any

import torch

Place = tuple[types.CodeType, int]

_TORCH = torch.__file__.rpartition("/")[0] + "/"
_OURS = __file__.rpartition("/")[0] + "/"
_USER, _OF_TORCH, _OWN, _CALL = range(4)

# By the id of the code, which is slow to hash and is kept alive here.
_kinds: dict[int, tuple[int, types.CodeType]] = {}
_tables: dict[int, tuple[list[int], list[int | None]]] = {}


def _kind(code: types.CodeType) -> int:
    if code.co_name == "_call_impl":
        kind = _CALL  # Of torch.nn.Module: what is above it is the code of another module.
    elif code.co_filename.startswith(_OURS):
        kind = _OWN
    else:
        kind = _OF_TORCH if code.co_filename.startswith(_TORCH) else _USER
    _kinds[id(code)] = kind, code
    return kind


def places_of(frame: Any, whole: bool = True) -> list[Place]:
    """From a call up to the enclosing forward, the code of torch left out.

    The forward of a module of torch itself has nothing but that code; its own place is given.
    """
    places: list[Place] = []
    first: Place | None = None
    while frame is not None:
        code = frame.f_code
        known = _kinds.get(id(code))
        kind = known[0] if known is not None else _kind(code)
        if kind == _USER:
            places.append((code, frame.f_lasti))
            if not whole:
                break
        elif kind == _CALL:
            break
        elif kind == _OF_TORCH and first is None:
            first = (code, frame.f_lasti)
        frame = frame.f_back
    return places or ([first] if first else [])


def lines_of(places: list[Place]) -> list[list[Any]]:
    """[file, line, function] of each place."""
    return [[code.co_filename, _line(code, at), code.co_name] for code, at in places]


def _line(code: types.CodeType, instruction: int) -> int | None:
    if id(code) not in _tables:  # Where the instructions of each line begin.
        rows = list(code.co_lines())
        _tables[id(code)] = [begin for begin, _, _ in rows], [line for _, _, line in rows]
    starts, lines = _tables[id(code)]
    at = bisect.bisect_right(starts, instruction) - 1
    return lines[at] if at >= 0 else code.co_firstlineno
