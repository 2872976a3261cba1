"""How far two tensors of a run are apart, and how far rounding may take them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import torch

from .torch_versions import norm

# Masks are filled with the lowest number of their dtype, which another dtype does not have.
# Beyond this only the places and signs are compared.
_HUGE = 1e30
# A result that is stored in a dtype is off by half a unit in the last place; a few such steps lie
# between two doors. The largest honest error seen in bf16 was 1.6 units.
_STEPS = 2.5
# Sums are taken in f32 at best: a sum of 4096 terms is off by about sqrt(4096) units.
_SUM = 64.0
_INDICES = (torch.int32, torch.int64)
# These move values and compute none: they show a difference and never make one.
MOVES = frozenset((
    "reshape", "view", "flatten", "unflatten", "transpose", "permute", "contiguous", "clone", "cat",
    "stack", "split", "chunk", "unbind", "__getitem__", "index_select", "gather", "expand",
    "repeat", "repeat_interleave", "squeeze", "unsqueeze", "t", "T", "mT", "to", "float", "detach",
    "roll", "flip", "pad", "__setitem__", "copy_", "type_as"))


def unit(dtype: torch.dtype) -> float:
    """Half the distance from 1 to the next number; 0 for integers."""
    return torch.finfo(dtype).eps / 2 if dtype.is_floating_point or dtype.is_complex else 0.0


def budget_of(*dtypes: torch.dtype) -> float:
    """The relative error that rounding explains where these dtypes took part."""
    coarsest = max((unit(dtype) for dtype in dtypes), default=0.0)
    return max(_STEPS * coarsest, _SUM * unit(torch.float32))


def fits(a: torch.Tensor, shape: torch.Size) -> torch.Tensor | None:
    """`a` in another shape of the same elements: leading axes merged, axes of 1 left out."""
    if a.shape == shape:
        return a
    same_last = a.dim() > 0 and len(shape) > 0 and a.shape[-1] == shape[-1]
    squeezed = [n for n in a.shape if n != 1] == [n for n in shape if n != 1]
    if a.numel() == math.prod(shape) and (same_last or squeezed):
        return a.reshape(shape)
    return None


def error(a: torch.Tensor, b: torch.Tensor) -> float | None:
    """|B - A| / |A| over all elements; inf where NaN, Inf or huge values disagree.

    None where the two cannot be compared: another shape, or a mask of bools against numbers.
    """
    if a.shape != b.shape or (a.dtype == torch.bool) != (b.dtype == torch.bool):
        return None
    if a.device != b.device:
        a = a.to(b.device)
    if a.dtype == b.dtype and torch.equal(a, b):
        return 0.0
    if not a.is_floating_point() and not a.is_complex() and not b.is_floating_point():
        wrong = int((a != b).sum())
        return math.sqrt(wrong / a.numel()) if wrong else 0.0
    return _float_error(_plain(a), _plain(b))


def same_values(a: torch.Tensor, b: torch.Tensor, budget: float) -> bool:
    """Whether two tensors of one size have the same values in whatever places."""
    if a.numel() != b.numel():
        return False
    first, second = (_plain(each.detach()).reshape(-1).sort()[0] for each in (a, b))
    return _float_error(first.to(second.device), second) <= budget


def near_ties(a: torch.Tensor, b: torch.Tensor, beside: Iterable[torch.Tensor],
              budget: float) -> bool:
    """Whether two choices of B have the same scores, but for rounding: which it took is chance.

    The choices are indices into the last axis of the scores, which B returns beside them.
    """
    if a.shape != b.shape or not a.numel() or a.ndim == 0 \
            or a.dtype not in _INDICES or b.dtype not in _INDICES:
        return False
    first, second = a.to(b.device).long(), b.long()  # A may be on the host.
    if torch.equal(first, second):
        return False
    least = min(int(first.min()), int(second.min()))
    most = max(int(first.max()), int(second.max()))
    for scores in beside:
        if not scores.is_floating_point() or scores.ndim != b.ndim or least < 0 \
                or scores.shape[:-1] != b.shape[:-1] or most >= scores.shape[-1]:
            continue
        values = scores.detach().to(torch.float64)
        room = budget * values.abs().amax(-1, keepdim=True)
        gap = values.gather(-1, first).sort(-1)[0] - values.gather(-1, second).sort(-1)[0]
        if bool((gap.abs() <= room).all()):
            return True
    return False


def _float_error(a: torch.Tensor, b: torch.Tensor) -> float:
    usual = a.abs() < _HUGE
    if not bool((usual == (b.abs() < _HUGE)).all()):
        return math.inf
    if not bool(usual.all()):
        strange_a, strange_b = a[~usual], b[~usual]
        if not torch.equal(strange_a.isnan(), strange_b.isnan()):
            return math.inf
        if not torch.equal(strange_a > 0, strange_b > 0):
            return math.inf
        a, b = a[usual], b[usual]
    size, apart = float(norm(a)), float(norm(b - a))
    if apart == 0.0:
        return 0.0
    return apart / size if size else math.inf


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    return tensor.to(torch.float64)


def cast(a: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """A copy of `a` in the dtype and on the device of `like`, huge values kept finite."""
    if a.dtype == like.dtype or not like.is_floating_point() or not a.is_floating_point():
        return a.to(device=like.device, dtype=like.dtype, copy=True)
    limit = torch.finfo(like.dtype).max
    bounded = a.clamp(-limit, limit)
    return torch.where(a.isfinite(), bounded, a).to(device=like.device, dtype=like.dtype)
