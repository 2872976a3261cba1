"""Compare two models, find the first divergence, and name its cause.

compare() and assert_close() take files, arrays and models; capture() records a run of a PyTorch
model, isolate() finds every mistake of a port at its own place, invariance() says whether runs and
batches repeat. Only the last three need torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from ._capture import Capture, capture
    from ._capture_main import capture_main
    from .findings import Door, Isolation, Mistake, NotChecked
    from .folder import CaptureError
    from ._invariance import Invariance, invariance
    from ._isolate import MappingError, isolate
    from .report import ComparisonError, Divergence, Finding, Pair, Report, compare
    from .testing import Mismatch, assert_close
    from .trace_file import TraceError, read_trace

_HOMES = {
    "_capture": ("Capture", "capture"),
    "_capture_main": ("capture_main",),
    "findings": ("Door", "Isolation", "Mistake", "NotChecked"),
    "folder": ("CaptureError",),
    "_invariance": ("Invariance", "invariance"),
    "_isolate": ("MappingError", "isolate"),
    "report": ("ComparisonError", "Divergence", "Finding", "Pair", "Report", "compare"),
    "testing": ("Mismatch", "assert_close"),
    "trace_file": ("TraceError", "read_trace"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "Capture", "CaptureError", "ComparisonError", "Divergence", "Door", "Finding", "Invariance",
    "Isolation", "MappingError", "Mismatch", "Mistake", "NotChecked", "Pair", "Report",
    "TraceError", "__version__", "assert_close", "capture", "capture_main", "compare", "invariance",
    "isolate", "read_trace",
]


def __getattr__(name: str) -> Any:
    if name == "distributed":
        return importlib.import_module(".distributed", __name__)
    home = _HOME_OF.get(name)
    if home is None:
        raise AttributeError(f"module 'tensordiff' has no attribute '{name}'")
    module = importlib.import_module(f".{home}", __name__)
    globals()[name] = getattr(module, name)
    return globals()[name]


def __dir__() -> list[str]:
    return sorted(__all__)
