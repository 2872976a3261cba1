"""What differs between versions of torch, from 1.13 on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch


def storage_of(tensor: torch.Tensor) -> Any:
    """The untyped storage of a strided tensor."""
    if hasattr(tensor, "untyped_storage"):
        return tensor.untyped_storage()
    return tensor._storage()  # pyright: ignore


def backward_runs() -> bool:
    """Whether an autograd engine is at work in this thread; never before torch 2.0."""
    current = getattr(torch._C, "_current_graph_task_id", None)
    return current is not None and current() != -1


def named_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, then buffers, under all of their names."""
    for kind in ("_parameters", "_buffers"):
        for path, module in model.named_modules(remove_duplicate=False):
            for name, tensor in getattr(module, kind).items():
                if tensor is not None:
                    yield (f"{path}.{name}" if path else name), tensor
