"""Compare two models, find the first divergence, and name its cause."""

from .capture import CaptureError, capture
from .isolate import isolate
from .trace import TraceError
from .version import __version__

__all__ = ["CaptureError", "TraceError", "__version__", "capture", "isolate"]
