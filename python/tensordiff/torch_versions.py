"""What differs between versions of torch, from 1.13 on."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from typing import Any

import torch


# What torch has no public name for.
internals: Any = getattr(torch, "_C")


# The untyped storage of a strided tensor. Called for every tensor of a run.
storage_of: Callable[[torch.Tensor], Any] = getattr(torch.Tensor, "untyped_storage", None) \
    or getattr(torch.Tensor, "_storage")


def backward_runs() -> bool:
    """Whether an autograd engine is at work in this thread; never before torch 2.0."""
    current = getattr(internals, "_current_graph_task_id", None)
    return current is not None and current() != -1


@contextlib.contextmanager
def same_randomness() -> Generator[None]:
    """Random numbers are the same each time, and those outside are not touched."""
    random: Any = torch.random
    with random.fork_rng():
        random.manual_seed(0)
        yield


def named_modules(model: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """All modules under all of their names."""
    untyped: Any = model
    return list(untyped.named_modules(remove_duplicate=False))


def norm(tensor: torch.Tensor, axis: int | None = None) -> torch.Tensor:
    """The root of the sum of squares, of all elements or along an axis."""
    untyped: Any = torch.linalg
    return untyped.vector_norm(tensor, dim=axis)


def named_tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters, then buffers, under all of their names."""
    for kind in ("_parameters", "_buffers"):
        for path, module in named_modules(model):
            for name, tensor in getattr(module, kind).items():
                if tensor is not None:
                    yield (f"{path}.{name}" if path else name), tensor
