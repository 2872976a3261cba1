"""What mode="stats" keeps of a tensor."""

from __future__ import annotations

import math
from typing import Any

import torch

_CHUNK = 1 << 20  # Elements at a time: the float64 copy of them stays in the cache.


def statistics(tensor: torch.Tensor) -> dict[str, Any]:
    """Mean, std, min, max and norm of the finite values; counts of NaN and Inf."""
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj())
    flat = tensor.detach().reshape(-1)
    count = nan = inf = 0
    total = square = 0.0
    low, high = math.inf, -math.inf
    for begin in range(0, flat.numel(), _CHUNK):
        part = flat[begin:begin + _CHUNK].to(torch.float64)
        finite = torch.isfinite(part)
        if not bool(finite.all()):
            nan += int(torch.isnan(part).sum())
            inf += int(torch.isinf(part).sum())
            part = part[finite]
        if part.numel() == 0:
            continue
        count += part.numel()
        total += float(part.sum())
        square += float(torch.dot(part, part))
        least, most = torch.aminmax(part)
        low, high = min(low, float(least)), max(high, float(most))
    mean = total / count if count else None
    found: dict[str, Any] = {"nan": nan, "inf": inf, "mean": mean}
    if count and mean is not None:
        found.update(std=math.sqrt(max(0.0, square / count - mean * mean)), min=low, max=high,
                     norm=math.sqrt(square))
    return found
