"""Arguments and results of calls as trees: tensors in tuples, lists, dicts, dataclasses."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from .untyped import is_mapping, is_sequence

# Deeper or longer than this, a tree is no argument of a model but a structure of the program.
_DEPTH_MAX = 8
_LENGTH_MAX = 256

Path = tuple[str, ...]

# What is met most often and has no parts.
_LEAVES = frozenset((int, float, bool, str, type(None), torch.Tensor, torch.nn.Parameter,
                     torch.dtype, torch.device, slice, type(Ellipsis)))


def children(tree: Any) -> list[tuple[str, Any]] | None:
    """The named parts of a container; None for everything else, which is a leaf."""
    if type(tree) in _LEAVES or isinstance(tree, (torch.Tensor, type)):
        return None
    if type(tree) in (tuple, list):  # The most frequent by far; the next is slow to ask.
        if len(tree) > _LENGTH_MAX:
            return None
        return [(str(at), value) for at, value in enumerate(tree)]
    if is_mapping(tree):
        if len(tree) > _LENGTH_MAX:
            return None
        return [(str(key), value) for key, value in tree.items()]
    if is_sequence(tree):
        if len(tree) > _LENGTH_MAX:
            return None
        names = getattr(tree, "_fields", None) or range(len(tree))
        return [(str(name), value) for name, value in zip(names, tree)]
    if dataclasses.is_dataclass(tree):
        return [(field.name, getattr(tree, field.name, None))
                for field in dataclasses.fields(tree)]
    return None


def leaves(tree: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """All leaves with their paths, in order."""
    parts = children(tree) if len(path) < _DEPTH_MAX else None
    if parts is None:
        yield path, tree
        return
    for name, value in parts:
        yield from leaves(value, (*path, name))


def tensors(tree: Any) -> list[tuple[Path, torch.Tensor]]:
    """All tensors of a tree with their paths, in order."""
    if isinstance(tree, torch.Tensor):
        return [((), tree)]
    return [(path, leaf) for path, leaf in leaves(tree) if isinstance(leaf, torch.Tensor)]


def replace(tree: Any, values: Mapping[Path, Any], path: Path = ()) -> Any:
    """A copy of the tree with the leaves at these paths replaced. What is unchanged is shared."""
    if path in values:
        return values[path]
    parts = children(tree) if len(path) < _DEPTH_MAX else None
    if not parts or not any(key[:len(path)] == path for key in values):
        return tree
    changed = {name: replace(value, values, (*path, name)) for name, value in parts}
    if type(tree) is not tuple and hasattr(tree, "_fields"):  # A named tuple.
        return type(tree)(**changed)
    if isinstance(tree, tuple):
        return tuple(changed.values())
    if isinstance(tree, list):
        return list(changed.values())
    made = copy.copy(tree)
    if isinstance(tree, Mapping):
        for key in list(made):
            made[key] = changed[str(key)]
    else:
        for name, value in changed.items():
            object.__setattr__(made, name, value)
    return made


def describe(tree: Any, tensor: Callable[[torch.Tensor], Any], depth: int = 0) -> Any:
    """The tree as trace.json writes it; `tensor` describes a tensor."""
    if isinstance(tree, torch.Tensor):
        return tensor(tree)
    if tree is None or isinstance(tree, (bool, int, str)):
        return tree
    if type(tree) in (tuple, list) and len(tree) <= _LENGTH_MAX and depth < _DEPTH_MAX:
        return {"l": [describe(value, tensor, depth + 1) for value in tree]}
    if isinstance(tree, float):
        return tree if math.isfinite(tree) else str(tree)
    parts = children(tree) if depth < _DEPTH_MAX else None
    name = type(tree).__name__
    if parts is None:
        return {"o": name if not isinstance(tree, (torch.dtype, torch.device)) else str(tree)}
    if is_sequence(tree) and not hasattr(tree, "_fields"):
        return {"l": [describe(value, tensor, depth + 1) for _, value in parts]}
    described = {key: describe(value, tensor, depth + 1) for key, value in parts}
    return {"d": described, "class": name}
