"""The pytest plugin: a fixture `tensordiff`, short failures, golden values, kept reports.

    def test_port(tensordiff):
        tensordiff.assert_close(reference(x), port(x))
        tensordiff.golden("logits", port(x))        # pytest --tensordiff-record writes it
"""

from __future__ import annotations

import html
import pathlib
import re
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .report import Report


class Checker:
    """What the fixture gives a test."""

    def __init__(self, folder: pathlib.Path, test: str, record: bool) -> None:
        self._folder = folder
        self._test = re.sub(r"[^\w.-]+", "_", test)
        self._record = record

    def compare(self, a: Any, b: Any, **options: Any) -> Report:
        """tensordiff.compare()."""
        from .report import compare
        return compare(a, b, **options)

    def assert_close(self, a: Any, b: Any, **options: Any) -> None:
        """tensordiff.assert_close()."""
        __tracebackhide__ = True
        from .testing import assert_close
        assert_close(a, b, **options)

    def golden(self, name: str, values: Any, **options: Any) -> None:
        """Compares with what --tensordiff-record wrote for this test under this name."""
        __tracebackhide__ = True
        from .golden import save
        path = self._folder / "golden" / f"{self._test}.{name}.safetensors"
        if self._record:
            save(path, values)
            return
        if not path.exists():
            pytest.fail(f"no golden values in {path}; write them with --tensordiff-record",
                        pytrace=False)
        self.assert_close(path, values, **options)


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tensordiff")
    group.addoption("--tensordiff-report", metavar="DIR", default=None,
                    help="keep an HTML report of each failed comparison here")
    group.addoption("--tensordiff-record", action="store_true", default=False,
                    help="write golden values instead of comparing with them")


@pytest.fixture(name="tensordiff")
def tensordiff_fixture(request: pytest.FixtureRequest) -> Checker:
    """Comparisons with short failures; see docs/python/testing.md."""
    record = bool(request.config.getoption("--tensordiff-record"))
    return Checker(request.path.parent, f"{request.path.stem}.{request.node.name}", record)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item,
                              call: pytest.CallInfo[None]) -> Generator[None, Any]:
    """Puts place and cause where the traceback would be."""
    outcome = yield
    error = call.excinfo.value if call.excinfo is not None else None
    report: Any = getattr(error, "report", None)
    if type(error).__name__ != "Mismatch" or report is None:
        return
    result = outcome.get_result()
    lines = [str(error)]
    folder = item.config.getoption("--tensordiff-report")
    if folder:
        lines.append(f"  report: {_keep(pathlib.Path(folder), item.nodeid, report)}")
    result.longrepr = "\n".join(lines)


def _keep(folder: pathlib.Path, test: str, report: Any) -> pathlib.Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (re.sub(r"[^\w.-]+", "_", test) + ".html")
    path.write_text(f"<!doctype html><meta charset=utf-8><title>{html.escape(test)}</title>"
                    f"<h1>{html.escape(test)}</h1>{report._repr_html_()}\n", encoding="utf-8")
    return path
