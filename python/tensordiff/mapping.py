"""Which module of B does the work of which module of A.

By the same path and class first. A module of another path is known by the rows of its weights:
those of a fused projection are the rows of several modules of A, or the other way round. Where the
rows of a module lie in another order in all layers alike, that may be a layout, as of q and k for
another RoPE; whether it is, only those who read them tell (layouts_found). Norms,
which may all be alike, are known by their place between modules that are known. What is left has
no counterpart; its results are compared at the next door.
"""

from __future__ import annotations

import collections
import copy
import dataclasses
import inspect
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from . import trees
from .observe import ModuleCall
from .places import by_place
from .record import Keeper, Kept
from .values import error, unit

# A module is known by its rows if this share of them is found: the others may be mistakes.
_ROWS_MIN = 0.5
# Unrelated weights are sqrt(2) apart; a mistake in some rows leaves them far closer.
_CLOSE = 0.5


@dataclasses.dataclass
class _Part:
    """Columns of B's result that are columns of a module of A."""

    path: str
    of_b: torch.Tensor
    of_a: torch.Tensor


class Mapper:
    """Finds the call of A for a call of B."""

    def __init__(self, paths_a: dict[str, torch.nn.Module], paths_b: dict[str, torch.nn.Module],
                 kept: Keeper, given: Mapping[str, str], order_b: list[str]) -> None:
        self.paths_a, self.paths_b = paths_a, paths_b
        self.calls = kept.calls
        self.same: dict[str, str] = {"": "", **given}
        self.parts: dict[str, list[_Part]] = {}
        # Orders of rows in force: B's row at each place is the row of A with that number.
        self.layouts: dict[str, torch.Tensor] = {}
        self._orders: dict[str, tuple[int, ...]] = {}  # Of modules known by their rows.
        for path, module in paths_b.items():
            other = paths_a.get(path)
            if path not in self.same and other is not None and _alike(other, module):
                self.same[path] = path
        self._order_a = [call.path for call in kept.calls.values()]
        self._map_rows()
        self._map_vectors(order_b)
        taken = {*self.same.values(), *kept.handed_on,
                 *(part.path for parts in self.parts.values() for part in parts)}
        self._places = by_place(self._order_a, order_b, paths_a, paths_b, self._first_of, taken)

    # --- finding ---

    def counterpart(self, call: ModuleCall) -> Kept | None:
        suffix = f"@{call.number}" if call.number else ""
        if call.path in self.same:
            path = self.same[call.path]
            kept = self.calls.get(path + suffix)
            if kept is not None and call.path in self.layouts:
                kept = _turned(kept, self.layouts[call.path])
            other = path in self.paths_a and type(self.paths_a[path]) is not type(call.module)
            if kept and other and (path or not _shares_names(kept, call.module)):
                return _by_first_argument(kept, call.module)
            return kept
        parts = self.parts.get(call.path)
        found = [self.calls.get(part.path + suffix) for part in parts or ()]
        if not parts or any(kept is None for kept in found):
            return None
        return self._assembled(call, parts, [kept for kept in found if kept is not None])

    def place(self, call: ModuleCall) -> Kept | None:
        """The call of A at the same place, for a module without weights: a guess."""
        path = self._places.get(call.path)
        return self.calls.get(path + (f"@{call.number}" if call.number else "")) if path else None

    def _assembled(self, call: ModuleCall, parts: list[_Part], kept: list[Kept]) -> Kept | None:
        """A call of A as it would be if its modules were split as B's are."""
        outs = [trees.tensors(each.out) for each in kept]
        if any(len(out) != 1 for out in outs):
            return None
        first = outs[0][0][1]
        width = sum(len(part.of_b) for part in parts)
        out = first.new_empty((*first.shape[:-1], width))
        for part, ((_, tensor),) in zip(parts, outs):
            out[..., part.of_b] = tensor[..., part.of_a]
        made = _by_first_argument(kept[0], call.module)
        made.out = out
        return made

    def same_weights(self, path: str) -> str | None:
        """The module of A whose weights have the same names and layout."""
        other, module = self.paths_a.get(self.same.get(path, path)), self.paths_b[path]
        turned = [type(each).__name__ == "Conv1D" for each in (other, module)]
        if other is None or not _alike(other, module) or turned[0] != turned[1]:
            return None
        return self.same.get(path)

    def area(self, path: str) -> tuple[str, bool] | None:
        """The module of A to look into for a module of B, and whether that is its counterpart.

        Without a counterpart: the smallest module of A with all that its inner modules map to.
        """
        if path in self.same:
            return self.same[path], True
        inner = [self.same[each] for each in self.same if each.startswith(path + ".")]
        inner += [part.path for each, parts in self.parts.items() if each.startswith(path + ".")
                  for part in parts]
        if not inner:
            return None
        common = os.path.commonprefix([each.split(".") for each in inner])
        return ".".join(common), False

    def missing(self, called: set[str], agreed: set[str]) -> Iterator[tuple[str, str]]:
        """(module of B, what) for each call of A that B does not make.

        Not in calls of B whose results agree: they do the same in another way.
        """
        back = {path_a: path_b for path_b, path_a in self.same.items()}
        for label, kept in self.calls.items():
            here = back.get(kept.path)
            if here is None or kept.parent is None:
                continue
            number = label[len(kept.path):]
            parent, _, count = kept.parent.partition("@")
            above = back.get(parent)
            if above is None or here + number in called:
                continue
            if above + (f"@{count}" if count else "") in called - agreed:
                yield above, f"does not call {here}"

    def other_paths(self) -> dict[str, str]:
        found = {b: a for b, a in self.same.items() if a != b}
        return found | {b: " + ".join(part.path for part in parts)
                        for b, parts in self.parts.items()}

    # --- by weights ---

    def _map_rows(self) -> None:
        """Modules with a matrix, by its rows."""
        dtype = torch.float32
        for module in [*self.paths_a.values(), *self.paths_b.values()]:
            matrix = _matrix(module)
            if matrix is not None and unit(matrix.dtype) > unit(dtype):
                dtype = matrix.dtype
        taken = set(self.same.values())
        theirs = {path: _rows(matrix, dtype) for path, module in self.paths_a.items()
                  if path not in taken and (matrix := _matrix(module)) is not None}
        for path, module in self.paths_b.items():
            matrix = _matrix(module)
            if path in self.same or matrix is None:
                continue
            lookup = isinstance(module, torch.nn.Embedding)
            rows = _rows(matrix, dtype)
            place = {row: at for at, row in enumerate(rows)}
            parts = [part for other, other_rows in theirs.items()
                     if isinstance(self.paths_a[other], torch.nn.Embedding) == lookup
                     and _axes(self.paths_a[other]) == _axes(module)
                     and (part := _part(other, other_rows, place, len(rows))) is not None]
            whole = [part for part in parts if len(part.of_b) == len(rows)]
            if whole and len(theirs[whole[0].path]) == len(rows):
                self.same[path] = whole[0].path
                self._orders[path] = _order(theirs[whole[0].path], place)
            elif whole:
                self.parts[path] = whole[:1]
            elif sum(len(part.of_b) for part in parts) == len(rows) and not lookup:
                self.parts[path] = parts
            else:
                near = self._nearest(module, [p for p in theirs if p not in self.same.values()])
                if near is not None:
                    self.same[path] = near

    def layouts_found(self) -> dict[str, torch.Tensor]:
        """Orders of rows that most layers share, and which are not A's: layouts, or mistakes."""
        groups: dict[str, list[str]] = {}
        for path in self._orders:
            if _axes(self.paths_b[path]) == 2:
                groups.setdefault(re.sub(r"\d+", "#", path), []).append(path)
        found: dict[str, torch.Tensor] = {}
        for group in groups.values():
            orders = collections.Counter(self._orders[each] for each in group)
            order, count = orders.most_common(1)[0]
            if order and 2 * count > len(group) and list(order) != sorted(order):
                found |= {path: torch.tensor(order) for path in group
                          if (weight := _weight(self.paths_b[path])) is not None
                          and len(weight) == len(order)}
        return found

    def _nearest(self, module: torch.nn.Module, among: list[str]) -> str | None:
        """The one module of A whose weight is closest, if it is close."""
        mine = _weight(module)
        if mine is None:
            return None
        apart = sorted((error(theirs.detach(), mine.detach()) or 0.0, path) for path in among
                       if (theirs := _weight(self.paths_a[path])) is not None
                       and theirs.shape == mine.shape)
        if not apart or apart[0][0] > _CLOSE:
            return None
        unique = len(apart) == 1 or apart[1][0] > max(2 * apart[0][0], 1e-3)
        return apart[0][1] if unique else None

    def _map_vectors(self, order_b: list[str]) -> None:
        """Norms by their weights; then all that is left by its place between known modules."""
        used = {*self.same.values(),
                *(part.path for parts in self.parts.values() for part in parts)}
        left = [path for path, module in self.paths_a.items()
                if path not in used and _weight(module) is not None]
        for path, module in self.paths_b.items():
            if path not in self.same and path not in self.parts and _is_vector(module):
                near = self._nearest(module, left)
                if near is not None:
                    self.same[path] = near
                    left.remove(near)
        for at, path in enumerate(order_b):
            weight = _weight(self.paths_b[path])
            if path in self.same or path in self.parts or weight is None:
                continue
            alike = [each for each in left if (other := _weight(self.paths_a[each])) is not None
                     and other.shape == weight.shape]
            near = self._between(order_b, at, alike)
            if near is not None:
                self.same[path] = near
                left.remove(near)

    def _between(self, order_b: list[str], at: int, left: list[str]) -> str | None:
        """The only one of A that runs between the same known modules."""
        before = next((p for path in reversed(order_b[:at])
                       if (p := self._first_of(path)) is not None), None)
        after = next((p for path in order_b[at + 1:]
                      if (p := self._first_of(path)) is not None), None)
        order = self._order_a
        begin = order.index(before) + 1 if before in order else 0
        end = order.index(after) if after in order else len(order)
        found = list(dict.fromkeys(path for path in order[begin:end] if path in left))
        return found[0] if len(found) == 1 else None

    def _first_of(self, path: str) -> str | None:
        """Of leaves only: a container ends after all that is in it."""
        if path in self.parts:
            return self.parts[path][0].path
        return self.same.get(path) if path and not any(self.paths_b[path].children()) else None


def _alike(a: torch.nn.Module, b: torch.nn.Module) -> bool:
    if type(a) is type(b):
        return True
    shapes = [[(name, p.shape) for name, p in m.named_parameters(recurse=False)] for m in (a, b)]
    containers = any(True for _ in a.children()) or any(True for _ in b.children())
    return shapes[0] == shapes[1] and (not containers or type(a).__name__ == type(b).__name__)


def _weight(module: torch.nn.Module) -> torch.Tensor | None:
    weight = dict(module.named_parameters(recurse=False)).get("weight")
    return weight if weight is not None and weight.layout == torch.strided else None


def _is_vector(module: torch.nn.Module) -> bool:
    weight = _weight(module)
    return weight is not None and weight.dim() == 1


def _matrix(module: torch.nn.Module) -> torch.Tensor | None:
    """The weight with one row for each output; None for anything but plain products."""
    weight = _weight(module)
    if weight is None or weight.dim() < 2 or any(True for _ in module.children()):
        return None
    if type(module).__name__ == "Conv1D":  # transformers': stored the other way round.
        return weight.detach().t()
    return weight.detach().flatten(1)


def _axes(module: torch.nn.Module) -> int:
    weight = _weight(module)
    return weight.dim() if weight is not None else 0


def _rows(matrix: torch.Tensor, dtype: torch.dtype) -> list[bytes]:
    """Each row without its scale, as a key."""
    rounded = matrix.to(dtype).to("cpu", torch.float32)
    scaled = rounded / rounded.abs().amax(dim=1, keepdim=True).clamp_min(1e-30)
    return [row.tobytes() for row in (scaled * 64).round().to(torch.int8).numpy()]


def _part(path: str, rows_a: list[bytes], place_in_b: dict[bytes, int],
          count_b: int) -> _Part | None:
    """How the rows of a module of A lie in those of B. Gaps, which are mistakes, are filled."""
    found = {at: place_in_b[row] for at, row in enumerate(rows_a) if row in place_in_b}
    small = min(len(rows_a), count_b)
    if len(found) < max(1, _ROWS_MIN * small):
        return None
    if len(rows_a) == count_b:  # The whole module, wherever its rows lie: see layouts_found().
        return _Part(path, torch.arange(count_b), torch.arange(count_b))
    shift, fit = collections.Counter(b - a for a, b in found.items()).most_common(1)[0]
    if fit > _ROWS_MIN * len(found):  # One block: what lies elsewhere is a mistake, no layout.
        found = {at: at + shift for at in range(len(rows_a)) if 0 <= at + shift < count_b}
    if len(rows_a) <= count_b and len(found) < len(rows_a):
        for at in range(len(rows_a)):
            if at not in found:
                near = min(found, key=lambda known: abs(known - at))
                found[at] = found[near] + at - near
    if len(rows_a) > count_b and len(found) < count_b:
        first = min(found)
        found = {first - found[first] + at: at for at in range(count_b)}
    pairs = sorted(found.items())
    if any(not 0 <= b < count_b for _, b in pairs) or len({b for _, b in pairs}) < len(pairs) \
            or any(not 0 <= a < len(rows_a) for a, _ in pairs):
        return None
    return _Part(path, torch.tensor([b for _, b in pairs]), torch.tensor([a for a, _ in pairs]))


def _order(rows_a: list[bytes], place_in_b: dict[bytes, int]) -> tuple[int, ...]:
    """Which row of A lies at each place of B; () where some are not found, or not once."""
    places = [place_in_b.get(row, -1) for row in rows_a]
    if sorted(places) != list(range(len(rows_a))):
        return ()
    return tuple(sorted(range(len(places)), key=places.__getitem__))


def _turned(kept: Kept, order: torch.Tensor) -> Kept:
    """The call with the columns of its result in another order."""
    made = copy.copy(kept)
    made.out = trees.replace(kept.out, {
        path: tensor.index_select(-1, order.to(tensor.device))
        for path, tensor in trees.tensors(kept.out)
        if tensor.dim() and tensor.shape[-1] == len(order)})
    return made


def _shares_names(kept: Kept, module: torch.nn.Module) -> bool:
    names = inspect.signature(type(module).forward).parameters
    return any(path[0] in names for path, leaf in kept.args.items()
               if isinstance(leaf, torch.Tensor))


def _by_first_argument(kept: Kept, module: torch.nn.Module) -> Kept:
    """The call with only its first tensor, under the name that B's module has for it."""
    parameters = list(inspect.signature(type(module).forward).parameters)
    made: Any = object.__new__(Kept)
    made.path, made.label, made.parent, made.out = kept.path, kept.label, kept.parent, kept.out
    made.args = {}
    first = next((leaf for leaf in kept.args.values() if isinstance(leaf, torch.Tensor)), None)
    if first is not None and len(parameters) > 1:
        made.args = {(parameters[1],): first}
    return made
