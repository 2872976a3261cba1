"""assert_close() for tests."""

from __future__ import annotations

from typing import Any

from .report import Report, compare


class Mismatch(AssertionError):
    """Raised by assert_close(); `report` has everything, the message the first lines."""

    def __init__(self, report: Report) -> None:
        super().__init__("tensordiff: " + str(report))
        self.report = report

    def __reduce__(self) -> Any:
        return Mismatch, (self.report,)


def assert_close(a: Any, b: Any, *, atol: float | None = None, rtol: float | None = None,
                 equal_nan: bool = True) -> None:
    """Raises Mismatch, an AssertionError, unless everything in B is close to A.

    >>> import numpy, tensordiff
    >>> tensordiff.assert_close(numpy.ones(3), numpy.ones(3) + 1e-9)
    """
    __tracebackhide__ = True
    report = compare(a, b, atol=atol, rtol=rtol, equal_nan=equal_nan)
    if not report.close:
        raise Mismatch(report)
