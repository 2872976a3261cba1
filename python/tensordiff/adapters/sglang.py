"""Captures from a running SGLang server: a hook file for its scheduler processes.

    TENSORDIFF_CAPTURE=port TENSORDIFF_FORWARDS=1 \\
    SGLANG_EXTERNAL_MODEL_PACKAGE=tensordiff.adapters.sglang_plugin \\
    python -m sglang.launch_server --model-path M --disable-cuda-graph

SGLang imports that package in each of its processes, which calls install() here: once the model is
loaded, its next forwards are captured. --disable-cuda-graph is needed: hooks see nothing inside
of CUDA graphs. Forwards of the warm-up count too: add --skip-server-warmup.
"""

from __future__ import annotations

import os
from typing import Any

from ..untyped import package
from .serving import ForwardCapture


def install(runner_class: Any = None) -> None:
    """Makes ModelRunner.load_model() start a capture; does nothing without TENSORDIFF_CAPTURE."""
    folder = os.environ.get("TENSORDIFF_CAPTURE")
    if not folder:
        return
    if runner_class is None:
        runner_class = package("sglang.srt.model_executor.model_runner").ModelRunner
    load = runner_class.load_model
    if getattr(load, "_tensordiff", False):
        return
    forwards = int(os.environ.get("TENSORDIFF_FORWARDS", "1"))

    def load_model(runner: Any, *args: Any, **kwargs: Any) -> Any:
        result = load(runner, *args, **kwargs)
        rank = int(getattr(runner, "tp_rank", 0))
        size = int(getattr(runner, "tp_size", 1))
        runner._tensordiff = ForwardCapture(runner.model, folder, forwards=forwards,
                                            rank=rank if size > 1 else None)
        return result

    load_model._tensordiff = True  # pyright: ignore[reportFunctionMemberAccess]
    runner_class.load_model = load_model
