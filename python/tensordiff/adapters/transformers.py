"""Runs a transformers model on a text or on inputs, and captures it.

    from tensordiff.adapters.transformers import capture_transformers
    capture_transformers("folder/of/the/model", "The quick brown fox", "ref")
    capture_transformers(model, inputs, "ref", generate=4)

Any model of transformers; names are local folders or what its own cache has.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import torch

from .._capture import Capture, capture
from ..untyped import package


def capture_transformers(model: Any, inputs: str | Mapping[str, Any],
                         folder: str | os.PathLike[str], *, generate: int = 0,
                         tokenizer: Any = None, **options: Any) -> Any:
    """Captures one forward, or greedy generation of `generate` tokens; returns what that returned.

    model: a model, or the name that from_pretrained() takes.
    inputs: arguments of the model, or a text for its tokenizer.
    options: those of tensordiff.capture().
    """
    if isinstance(model, (str, os.PathLike)):
        transformers = package("transformers")
        if isinstance(inputs, str) and tokenizer is None:
            tokenizer = transformers.AutoTokenizer.from_pretrained(model)
        model = transformers.AutoModelForCausalLM.from_pretrained(model)
    if isinstance(inputs, str):
        if tokenizer is None:
            raise ValueError("a text needs a tokenizer")
        inputs = dict(tokenizer(inputs, return_tensors="pt"))
    inputs = {key: value.to(model.device) if isinstance(value, torch.Tensor) else value
              for key, value in inputs.items()}
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad(), capture(model, folder, **options) as run:
            result = model.generate(**inputs, max_new_tokens=generate, do_sample=False) \
                if generate else model(**inputs)
    finally:
        model.train(was_training)
    _note_incomplete(run)
    return result


def _note_incomplete(run: Capture) -> None:
    if run.tensors_written == 0 and not run.errors and run.mode != "stats":
        raise RuntimeError(f"{run.path}: the model called none of its modules; nothing was written")
