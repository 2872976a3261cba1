"""The reference's side of isolation: every call of A with its arguments and its result."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch

from . import trees
from .identity import Identities
from .observe import Handler, ModuleCall

Leaves = dict[trees.Path, Any]


class Kept:
    """One call of A. Tensors are copies: what the model does to its own later does not matter."""

    __slots__ = ("args", "label", "out", "parent", "path")

    def __init__(self, call: ModuleCall, args: Leaves) -> None:
        self.path = call.path
        self.label = call.label
        self.parent = call.parent.label if call.parent else None
        self.args = args
        self.out: Any = None


class Keeper(Handler):
    """Keeps each tensor that passes a door once."""

    def __init__(self, values: bool = True) -> None:
        self._values = values
        self.calls: dict[str, Kept] = {}  # By label, in order of their ends.
        self.handed_on: set[str] = set()  # Modules that return what they were passed.
        self._begun: dict[str, tuple[Kept, set[int]]] = {}
        self._ids = Identities()
        self._copies: dict[int, torch.Tensor] = {}

    def begin(self, call: ModuleCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        found: Leaves = {}
        if self._values:
            found = {path: self._copy(leaf)
                     for path, leaf in trees.leaves(bind(call.module, args, kwargs).arguments)}
        passed = {self._ids.of(tensor)[0] for tree in (args, kwargs)
                  for _, tensor in trees.tensors(tree)}
        self._begun[call.label] = Kept(call, found), passed

    def end(self, call: ModuleCall, out: Any, raised: bool) -> None:
        kept, passed = self._begun.pop(call.label)
        if raised:
            return
        if all(self._ids.of(tensor)[0] in passed for _, tensor in trees.tensors(out)):
            self.handed_on.add(call.path)
        if self._values:
            kept.out = trees.replace(out, {path: self._copy(t) for path, t in trees.tensors(out)})
        self.calls[call.label] = kept

    def _copy(self, leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        number, _, _ = self._ids.of(leaf)
        if number not in self._copies:
            self._copies[number] = leaf.detach().clone()
        return self._copies[number]


class Bound:
    """The arguments of a call by name, and the way back to a call."""

    def __init__(self, arguments: dict[str, Any],
                 back: Callable[[dict[str, Any]], tuple[tuple[Any, ...], dict[str, Any]]]) -> None:
        self.arguments = arguments
        self.back = back


@functools.lru_cache(maxsize=4096)
def _signature(forward: Any) -> inspect.Signature | None:
    try:
        return inspect.signature(forward)
    except (TypeError, ValueError):
        return None


def bind(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
    """Positional and keyword calls mix, so arguments are known by their names in forward()."""
    signature = _signature(type(module).forward)
    try:
        if signature is None:
            raise TypeError
        bound = signature.bind(module, *args, **kwargs)
    except TypeError:  # No signature, or a call that does not fit it and will fail by itself.
        return _by_position(args, kwargs)
    own = next(iter(bound.arguments))
    rest = next((name for name, parameter in signature.parameters.items()
                 if parameter.kind is inspect.Parameter.VAR_KEYWORD), "")
    named = {name: value for name, value in bound.arguments.items() if name != own}

    # As it was called, positions as positions: a decorator may add keywords of its own.
    def back(changed: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        bound.arguments.update(changed)
        now = {**bound.arguments.get(rest, {}), **bound.arguments}
        return bound.args[1:1 + len(args)], {key: now[key] for key in kwargs}

    return Bound(named, back)


def _by_position(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Bound:
    named = {str(at): value for at, value in enumerate(args)}

    def back(changed: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return (tuple(changed[str(at)] for at in range(len(args))),
                {key: changed[key] for key in kwargs})

    return Bound({**named, **kwargs}, back)
