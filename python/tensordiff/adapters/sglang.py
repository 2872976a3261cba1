"""Captures from a running SGLang server: a hook file for its scheduler processes.

    TENSORDIFF_CAPTURE=port TENSORDIFF_FORWARDS=1 \\
    SGLANG_EXTERNAL_MODEL_PACKAGE=tensordiff.adapters.sglang_plugin \\
    python -m sglang.launch_server --model-path M --skip-server-warmup \\
        --cuda-graph-backend-decode=disabled --cuda-graph-backend-prefill=disabled

SGLang imports that package in each of its processes, which calls install() here: the next forwards
of the model are captured. CUDA graphs have to be off (before 0.5.2x: --disable-cuda-graph): hooks
see nothing inside of them. Forwards of the warm-up count too. Checked against the source of SGLang
0.5.23; the server itself was not run.
"""

from __future__ import annotations

import os
from typing import Any

from ..untyped import package
from .serving import ForwardCapture


def install(runner_class: Any = None) -> None:
    """Makes ModelRunner.forward() start a capture; does nothing without TENSORDIFF_CAPTURE.

    Not load_model(): SGLang imports the package while that runs.
    """
    folder = os.environ.get("TENSORDIFF_CAPTURE")
    if not folder:
        return
    if runner_class is None:
        runner_class = package("sglang.srt.model_executor.model_runner").ModelRunner
    original = runner_class.forward
    if getattr(original, "_tensordiff", False):
        return
    forwards = int(os.environ.get("TENSORDIFF_FORWARDS", "1"))

    def forward(runner: Any, *args: Any, **kwargs: Any) -> Any:
        draft = getattr(runner, "is_draft_worker", False)  # Of speculative decoding.
        if not draft and not hasattr(runner, "_tensordiff"):
            rank = int(getattr(runner, "tp_rank", 0))
            size = int(getattr(runner, "tp_size", 1))  # Newer ones leave it to torch.distributed.
            runner._tensordiff = ForwardCapture(runner.model, folder, forwards=forwards,
                                                rank=rank if size > 1 else None)
        return original(runner, *args, **kwargs)

    forward._tensordiff = True  # pyright: ignore[reportFunctionMemberAccess]
    runner_class.forward = forward
