"""Captures some forwards of a model that an inference server runs; for vllm.py and sglang.py.

The server calls the model from its own loop, so that no `with` can stand around it: the capture
begins with the next forward and ends by itself.
"""

from __future__ import annotations

import os
import pathlib
from typing import Any

import torch

from .._capture import Capture, capture


class ForwardCapture:
    """Captures the next `forwards` calls of a model, each in a folder step_00000, step_00001 ..."""

    def __init__(self, model: torch.nn.Module, folder: str | os.PathLike[str], *,
                 forwards: int = 1, rank: int | None = None, **options: Any) -> None:
        if forwards < 1:
            raise ValueError(f"forwards must be at least 1, not {forwards}")
        self.model = model
        self.folder = pathlib.Path(folder)
        self.left = forwards
        self.done: list[str] = []
        self._rank, self._options = rank, options
        self._open: Capture | None = None
        self._original: Any = None
        self._begin()

    def _begin(self) -> None:
        own = vars(self.model)
        self._original = own.get("forward")
        forward = self.model.forward

        def captured(*args: Any, **kwargs: Any) -> Any:
            # The hooks of a capture belong to calls of modules, and servers may call forward().
            self._restore()
            path = self.folder / f"step_{len(self.done):05}"
            try:
                with torch.no_grad(), capture(self.model, path, rank=self._rank, compiled="eager",
                                              **self._options) as run:
                    out = self.model(*args, **kwargs)
            finally:
                self.left -= 1
            self.done.append(str(run.path))
            if self.left > 0:
                self._begin()
            return out

        self._forward = forward
        own["forward"] = captured

    def _restore(self) -> None:
        own = vars(self.model)
        if self._original is None:
            own.pop("forward", None)
        else:
            own["forward"] = self._original

    def stop(self) -> list[str]:
        """Ends it early; the folders that were written."""
        if self.left > 0:
            self.left = 0
            self._restore()
        return self.done
