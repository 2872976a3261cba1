"""The weights of two models side by side, and in one dtype."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator

import torch

from .torch_versions import norm
from .values import budget_of, error, unit

Named = list[tuple[str, torch.Tensor]]


def own_tensors(module: torch.nn.Module) -> Named:
    """Parameters and buffers of the module itself, without those of the modules in it."""
    found = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
    return [(name, tensor) for name, tensor in found if tensor.layout == torch.strided]


def coarsest_dtype(*models: torch.nn.Module) -> torch.dtype:
    """The dtype with the fewest digits among the parameters; f32 where there are none."""
    dtypes = {parameter.dtype for model in models for parameter in model.parameters()
              if parameter.is_floating_point()}
    return max(dtypes, key=unit, default=torch.float32)


def differing(a: torch.nn.Module, b: torch.nn.Module,
              order: torch.Tensor | None = None) -> list[tuple[str, str]]:
    """Names of the parameters and buffers of `b` that differ from those of `a`, and where.

    order: which row of `a` belongs at each place of `b`, where that is not the same.
    """
    theirs = dict(own_tensors(a))
    found: list[tuple[str, str]] = []
    for name, mine in own_tensors(b):
        other = theirs.get(name)
        if other is None:
            continue
        if other.shape != mine.shape:
            found.append((name, f"{name} has shape {list(mine.shape)}, in A {list(other.shape)}"))
            continue
        if order is not None and other.dim() > 0 and len(other) == len(order):
            other = other.detach().index_select(0, order.to(other.device))
        apart = error(other.detach(), mine.detach())
        coarse = budget_of(other.dtype, mine.dtype)
        if apart is not None and (not apart <= coarse or _rows(other, mine, coarse)):
            found.append((name, name + _where(other, mine, coarse)))
    return found


def _rows(a: torch.Tensor, b: torch.Tensor, budget: float) -> list[int]:
    """Rows that differ: one of many is lost in the error of the whole."""
    if a.dim() == 0 or not a.is_floating_point() or a.numel() == 0:
        return []
    a2, b2 = (t.detach().to("cpu", torch.float64).reshape(t.shape[0], -1) for t in (a, b))
    apart = norm(b2 - a2, 1)
    size = norm(a2, 1).clamp_min(float(norm(a2)) / a.shape[0] ** 0.5 * 1e-3)
    bad = ~(apart <= 4 * budget * size)
    return [int(row) for row in bad.nonzero()]


def _where(a: torch.Tensor, b: torch.Tensor, budget: float) -> str:
    rows = _rows(a, b, budget)
    if not rows or len(rows) == a.shape[0]:
        return ""
    if len(rows) == 1:
        return f" in row {rows[0]} of {a.shape[0]}"
    return f" in {len(rows)} of {a.shape[0]} rows, first {rows[0]}"


@contextlib.contextmanager
def in_dtype(dtype: torch.dtype | None, *models: torch.nn.Module,
             buffers: bool = True) -> Generator[None]:
    """Rounds each weight to the coarsest dtype that it has in any model; computes in `dtype`.

    The weights themselves are put back at the end. Without `buffers`, those are left as they are.
    """
    if dtype is None:
        yield
        return
    coarse = _coarsest_by_name(*models)
    kept: list[tuple[torch.Tensor, torch.Tensor]] = []
    seen: set[int] = set()
    try:
        for model in models:
            named: Named = list(model.named_parameters())
            if buffers:
                named += model.named_buffers()
            for name, tensor in named:
                if tensor.is_floating_point() and id(tensor) not in seen:
                    seen.add(id(tensor))
                    kept.append((tensor, tensor.data))
                    tensor.data = tensor.data.to(coarse(name, tensor)).to(dtype)
        yield
    finally:
        for tensor, data in kept:
            tensor.data = data


def _coarsest_by_name(*models: torch.nn.Module) -> Callable[[str, torch.Tensor], torch.dtype]:
    """By name, where all models have it. Other parameters take the coarsest of all of them."""
    coarsest = coarsest_dtype(*models)
    named = [{**dict(model.named_parameters()), **dict(model.named_buffers())} for model in models]

    def dtype_of(name: str, tensor: torch.Tensor) -> torch.dtype:
        if all(name in tensors for tensors in named):
            return max((tensors[name].dtype for tensors in named), key=unit)
        return coarsest if isinstance(tensor, torch.nn.Parameter) else tensor.dtype

    dtypes = {(name, id(tensor)): dtype_of(name, tensor)
              for tensors in named for name, tensor in tensors.items()}
    return lambda name, tensor: dtypes[name, id(tensor)]
