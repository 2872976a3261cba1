"""Places in the code are kept as instructions and become lines at the end."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

pytest.importorskip("torch")

from tensordiff.source import lines_of, places_of  # noqa: E402


def both(frame: Any) -> tuple[list[list[Any]], list[list[Any]]]:
    """What the package says, and what Python says of the same frames while they run."""
    said = places_of(frame)
    want: list[list[Any]] = []
    while frame is not None:
        want.append([frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name])
        frame = frame.f_back
    return lines_of(said), want


def test_lines_are_those_of_python() -> None:
    def here(*values: int) -> Any:
        return both(inspect.currentframe())

    found = [here()]
    found += [here(
        1,
        2)]
    found += [here(each) for each in range(1)]
    for said, want in found:
        assert said == want and said[0][2] == "here"
    assert len({said[1][1] for said, _ in found}) == 3  # Each call has a line of its own.


def test_the_first_line_alone() -> None:
    frame = inspect.currentframe()
    said = lines_of(places_of(frame, whole=False))
    assert [each[2] for each in said] == ["test_the_first_line_alone"]
    assert said[0][0] == __file__
