"""Captures from a running vLLM engine, through a worker extension.

    llm = vllm.LLM(model, enforce_eager=True,
                   worker_extension_cls="tensordiff.adapters.vllm.CaptureExtension")
    llm.collective_rpc("tensordiff_start", args=("port", 1))      # The next forward, on each rank.
    llm.generate(prompt, vllm.SamplingParams(max_tokens=1, temperature=0))
    llm.collective_rpc("tensordiff_stop")

enforce_eager is needed: hooks see nothing inside of CUDA graphs. Each rank writes a folder
port/step_00000/rank_N.
"""

from __future__ import annotations

from typing import Any

from .serving import ForwardCapture


class CaptureExtension:
    """Methods that vLLM adds to its workers; `self` is the worker."""

    model_runner: Any
    rank: int
    _tensordiff: ForwardCapture | None = None

    def tensordiff_start(self, folder: str, forwards: int = 1, **options: Any) -> None:
        """Captures the next forwards of this worker's model."""
        runner = self.model_runner
        model = runner.get_model() if hasattr(runner, "get_model") else runner.model
        world = int(getattr(getattr(self, "parallel_config", None), "world_size", 1))
        self._tensordiff = ForwardCapture(model, folder, forwards=forwards,
                                          rank=self.rank if world > 1 else None, **options)

    def tensordiff_stop(self) -> list[str]:
        """The folders that were written."""
        running, self._tensordiff = self._tensordiff, None
        return running.stop() if running is not None else []
