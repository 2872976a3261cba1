"""Modules without weights, such as activations, by their places between modules that are known.

Such a place is a guess: two implementations may do their steps in another order. So nothing is put
in the place of what these modules pass, and no mistake is made of them alone. They only tell where
between two known modules B departs from A, if it does (Forcer in doors.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch


def by_place(order_a: list[str], order_b: list[str], paths_a: Mapping[str, torch.nn.Module],
             paths_b: Mapping[str, torch.nn.Module], known: Callable[[str], str | None],
             taken: set[str]) -> dict[str, str]:
    """Module of B -> module of A. The orders are those in which calls end.

    known: the module of A for a module of B that is known otherwise; taken: all of these of A.
    """
    order_a = list(dict.fromkeys(order_a))
    at_a = {path: at for at, path in enumerate(order_a)}
    free_a = {path for path in order_a if path not in taken and _plain(paths_a[path])}
    found: dict[str, str] = {}
    gap: list[str] = []
    before = -1
    for path in [*order_b, ""]:
        anchor = known(path) if path else ""
        if anchor is None:
            if _plain(paths_b[path]):
                gap.append(path)
            continue
        end = at_a.get(anchor, len(order_a)) if anchor else len(order_a)
        between = [each for each in order_a[before + 1:end] if each in free_a]
        found |= _pairs(between, gap, paths_a, paths_b)
        gap, before = [], at_a.get(anchor, before)
    return found


def _plain(module: torch.nn.Module) -> bool:
    return not any(True for _ in module.children()) and not any(True for _ in module.parameters())


def _pairs(a: list[str], b: list[str], paths_a: Mapping[str, torch.nn.Module],
           paths_b: Mapping[str, torch.nn.Module]) -> dict[str, str]:
    """In order, if there are as many; otherwise those of a class that occurs once on each side."""
    if len(a) == len(b):
        return dict(zip(b, a))
    kinds_a, kinds_b = ([type(paths[each]) for each in side] for side, paths in
                        ((a, paths_a), (b, paths_b)))
    return {b[kinds_b.index(kind)]: a[kinds_a.index(kind)] for kind in kinds_b
            if kinds_a.count(kind) == 1 and kinds_b.count(kind) == 1}
