"""The port's side of isolation: B runs once, forced at each module's door.

Before a module runs, what B passes to it is compared with what A passed, and A's is put in its
place; after it, likewise with what it returns. So what B computes between two doors is made of A's
tensors only: an error there is made there, and none is carried along.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any

import torch

from . import trees
from .findings import Door, Mistake, NotChecked
from .identity import Identities
from .observe import FunctionCall, Handler, ModuleCall
from .record import Bound, Kept, bind
from .torch_versions import storage_of
from .values import MOVES, budget_of, cast, error, fits, near_ties, same_values

_NOTHING: frozenset[str] = frozenset()


@dataclasses.dataclass
class _Origin:
    """Where a tensor of B comes from."""

    maker: ModuleCall | None  # In whose code it was made; None: put there at a door.
    after: str | None = None  # The last module that ended in that code before.
    wrong: frozenset[str] = _NOTHING  # Modules whose mistakes it carries.
    unseen: frozenset[str] = _NOTHING  # Modules without a counterpart that it was made by.
    foreign: frozenset[str] = _NOTHING  # Modules whose tensors got into it past all doors.
    blamed: bool = False
    right: bool = False  # Compared, and as it should be.
    moved: _Origin | None = None  # What it is a view or copy of.
    suspect: _Origin | None = None  # The first on the way here that is not A's at the same place.


@dataclasses.dataclass
class _Door:
    """The state of a call of B."""

    kept: Kept | None
    guess: Kept | None = None  # Without a counterpart: the call of A at the same place.
    odd: str | None = None  # An argument that is a tensor on one side and None on the other.


class Forcer(Handler):
    """Compares and replaces at each door of B, and collects the mistakes."""

    def __init__(self, counterpart: Callable[[ModuleCall], Kept | None], budget: float | None,
                 coarsest: torch.dtype, protected: Iterable[torch.Tensor],
                 rounded: torch.dtype | None = None,
                 place: Callable[[ModuleCall], Kept | None] = lambda call: None) -> None:
        self.findings: dict[str, Mistake] = {}
        self.not_checked: dict[str, NotChecked] = {}
        self.called: dict[str, ModuleCall] = {}
        self.samples: dict[str, tuple[torch.Tensor, torch.Tensor]] = {}
        self.checked = 0
        self.unseen: dict[str, str] = {}  # Modules without a counterpart that compute, and why.
        self.seen: set[str] = set()  # Those of which something was compared later.
        self.parents: set[str] = set()
        # Of a module with a mistake: those whose tensors it used that passed no door; and those of
        # whose tensors such a use came out right.
        self.foreign: dict[str, frozenset[str]] = {}
        self.trusted: set[str] = set()
        self.doors: list[Door] = []
        self._misshapen: str | None = None  # A module whose result of another shape went on.
        self.counts: set[str] = set()  # Modules that choose another number of rows than A's.
        self._counterpart, self._place = counterpart, place
        self._budget, self._coarsest = budget, coarsest
        self._rounded = rounded  # Round what is put in the place of a tensor, to see what it does.
        self._ids = Identities()
        self._origins: dict[int, _Origin] = {}
        self._protected = {storage_of(tensor)._cdata for tensor in protected
                           if tensor.layout == torch.strided}

    # --- the calls ---

    def begin(self, call: ModuleCall, args: tuple[Any, ...],
              kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        self.called[call.label] = call
        if call.parent:
            self.parents.add(call.parent.path)
        lost = call.parent is not None and call.parent.state.kept is None \
            and call.parent.path in self.not_checked
        kept = None if lost else self._counterpart(call)
        call.state = _Door(kept)
        if kept is None:
            passed = [tensor for tree in (args, kwargs) for _, tensor in trees.tensors(tree)]
            for tensor in passed:
                self._ids.of(tensor)
            call.state.guess = None if lost else self._place(call)
            self._look(call, passed, entering=True)
            return None
        bound = bind(call.module, args, kwargs)
        changed = self._force_arguments(call, kept, bound)
        return bound.back(changed) if changed is not None else None

    def _force_arguments(self, call: ModuleCall, kept: Kept,
                         bound: Bound) -> dict[str, Any] | None:
        values: dict[trees.Path, Any] = {}
        ours = dict(trees.leaves(bound.arguments))
        for path, a in kept.args.items():
            b = ours.get(path)
            name = ".".join(path)
            if isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor):
                put = self._compare(a, b, call, f"argument `{name}`", entering=True)
                if put is None:
                    call.state.kept = None
                    self.not_checked[call.path] = NotChecked(
                        call.path, f"argument `{name}`: shape {list(b.shape)}, in A "
                                   f"{list(a.shape)}")
                    return None
                values[path] = put
            elif (a is None and isinstance(b, torch.Tensor)
                  or b is None and isinstance(a, torch.Tensor)):
                call.state.odd = f"argument `{name}` of {call.path} is " + (
                    "a tensor in A and None in B" if b is None else "None in A and a tensor in B")
            elif _number(a) and _number(b) and a != b and call.parent:
                self._blame(call.parent, f"argument `{name}` of {call.path} is {b}, in A {a}")
        return trees.replace(bound.arguments, values) if values else None

    def end(self, call: ModuleCall, out: Any, raised: bool) -> Any:
        kept = call.state.kept
        if not raised and kept is None:
            self._made_unseen(call, out)
            self._look(call, [tensor for _, tensor in trees.tensors(out)], entering=False)
        if raised or kept is None:
            return None
        self.checked += 1
        theirs = dict(trees.tensors(kept.out))
        values: dict[trees.Path, Any] = {}
        ours = trees.tensors(out)
        for path, b in ours:
            a = theirs.get(path)
            if a is None:  # Another structure around the same tensors.
                alike = [each for each in theirs.values() if each.shape == b.shape]
                a = alike[0] if len(alike) == 1 else None
            if a is None:
                continue
            name = f"result `{'.'.join(path)}`" if path else "the result"
            if near_ties(a, b, [each for _, each in ours], self.budget()):
                values[path] = self._stand_in(a, b)
                continue
            put = self._compare(a, b, call, name, entering=False)
            if put is not None:
                values[path] = put
        if theirs and not ours:
            self._blame(call, "returns no tensor")
        return trees.replace(out, values) if values else None

    def _made_unseen(self, call: ModuleCall, out: Any) -> None:
        """What a module without a counterpart returns and no function made: a kernel of its own.

        A container, nn.Identity or dropout that is off only hands on what others made: it has
        nothing to check.
        """
        for _, tensor in trees.tensors(out):
            if self._ids.find(tensor) is None:
                self.unseen.setdefault(call.path, "no counterpart in A")
                number, _, _ = self._ids.of(tensor)
                self._origins[number] = _Origin(call, unseen=frozenset((call.path,)))

    def _look(self, call: ModuleCall, ours: list[torch.Tensor], entering: bool) -> None:
        """Holds a tensor against A's at the same place: only to know where to look for a mistake
        that the next door shows."""
        guess: Kept | None = call.state.guess
        if guess is None or not ours:
            return
        theirs = [each for each in guess.args.values() if isinstance(each, torch.Tensor)] \
            if entering else [each for _, each in trees.tensors(guess.out)]
        fitted = fits(theirs[0], ours[0].shape) if theirs else None
        apart = error(fitted, ours[0]) if fitted is not None else None
        origin = self._origin(ours[0])
        if fitted is None or apart is None or origin is None or origin.maker is None:
            return
        if apart <= self.budget(fitted.dtype, ours[0].dtype):
            origin.right = True
            self.seen |= origin.unseen
        elif origin.suspect is None:
            origin.suspect = self._source(origin, fitted, ours[0])

    def _source(self, origin: _Origin, a: torch.Tensor, b: torch.Tensor) -> _Origin:
        """Who made the values of a wrong tensor; where only their places are wrong, who moved
        them."""
        made = origin
        while made.moved is not None and made.moved.maker is not None and not made.moved.right:
            made = made.moved
        if made is origin or a.numel() != b.numel() or same_values(a, b, self.budget()):
            return origin
        return made

    def function(self, call: ModuleCall | None, done: FunctionCall) -> None:
        made = trees.tensors(done.out)
        if not made:
            return
        wrong = unseen = foreign = _NOTHING
        suspect: _Origin | None = None
        used = [*trees.tensors(done.args), *trees.tensors(done.kwargs)]
        for _, tensor in used:
            origin = self._origin(tensor)
            if origin is not None and not origin.right:
                suspect = suspect or origin.suspect
                wrong |= origin.wrong
                unseen |= origin.unseen
                foreign |= origin.foreign
                if origin.maker is not None and origin.maker is not call:
                    foreign |= {origin.maker.path}
        if done.before is not None:
            wrong |= done.before.wrong
            unseen |= done.before.unseen
            suspect = suspect or done.before.suspect
        if call is not None and call.state.kept is None:
            unseen |= {call.path}
        moved = self._origin(used[0][1]) if len(used) == 1 and done.name in MOVES else None
        for _, tensor in trees.tensors(done.written):
            self._ids.written(tensor)
        after = call.last_child.path if call and call.last_child else None
        for _, tensor in made:
            number, new, _ = self._ids.of(tensor)
            if new:
                self._origins[number] = _Origin(call, after, wrong, unseen, foreign,
                                                moved=moved, suspect=suspect)
                if call is not None and call.state.kept is None:
                    self.unseen.setdefault(call.path, "no counterpart in A")

    def writing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self._origin(args[0]) if args and isinstance(args[0], torch.Tensor) else None

    def rescue(self, call: ModuleCall, problem: Exception) -> Any:
        """The module raised: B goes on with what A's returned. Raises where A has nothing."""
        kept = call.state.kept if call.state else None
        if kept is None:
            raise problem
        text = str(problem).split("\n")[0][:200]
        if self._misshapen:  # It went on, for want of another; what raises may do so for that.
            self.not_checked[call.path] = NotChecked(
                call.path, f"raises {type(problem).__name__} behind a result of another shape, of "
                           f"{self._misshapen or '(model)'}")
        else:
            self._blame(call, f"raises {type(problem).__name__}: {text}")
            self.not_checked[call.path] = NotChecked(
                call.path, "raises: the rest of it did not run")
        call.state.kept = None
        like = next((p for p in call.module.parameters() if p.is_floating_point()), None)
        values: dict[trees.Path, Any] = {}
        for path, a in trees.tensors(kept.out):
            floats = like is not None and a.is_floating_point()
            values[path] = self._stand_in(a, like if floats and like is not None else a)
        return trees.replace(kept.out, values)

    # --- the tensors ---

    def _origin(self, tensor: torch.Tensor) -> _Origin | None:
        number = self._ids.find(tensor)
        return self._origins.get(number) if number is not None else None

    def budget(self, *dtypes: torch.dtype) -> float:
        return self._budget if self._budget is not None else budget_of(*dtypes, self._coarsest)

    def _stand_in(self, a: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
        """A copy of A's tensor, which B may write to."""
        if self._rounded is not None and a.is_floating_point():
            a = a.to(self._rounded)
        made = cast(a, like)
        number, _, _ = self._ids.of(made)
        self._origins[number] = _Origin(None)
        return made

    def _compare(self, a: torch.Tensor, b: torch.Tensor, call: ModuleCall, name: str,
                 entering: bool) -> torch.Tensor | None:
        """Compares, blames where they differ, and returns what goes on in the place of `b`.

        None where the shapes differ, so that there is nothing to put in its place.
        """
        origin = self._origin(b)
        if origin is not None:
            self.seen |= origin.unseen
        fitted = fits(a, b.shape)
        apart = error(fitted, b) if fitted is not None else float("inf")
        if apart is None:  # A mask of bools against one of numbers: leave B its own.
            return b
        budget = self.budget(a.dtype, b.dtype)
        agrees = apart <= budget
        self.doors.append(Door(call.path, call.label, name, apart if apart < float("inf") else None,
                               budget, agrees))
        if not agrees:
            self._blame_tensor(origin, call, name, entering, apart, (a, b))
            if fitted is None and not entering and call.path in self.findings:
                self._misshapen = call.path
            self._repair(fitted, b, origin)
        elif origin is not None:
            origin.right = True
            self.trusted |= origin.foreign
        return self._stand_in(fitted, b) if fitted is not None else None

    def _blame_tensor(self, origin: _Origin | None, call: ModuleCall, name: str, entering: bool,
                      apart: float, pair: tuple[torch.Tensor, torch.Tensor]) -> None:
        made = origin
        if origin is not None and origin.maker is not None:
            made = origin.suspect or self._source(origin, *pair)
        maker = made.maker if made else None
        if maker is None:  # Right as it is, but it should not be here; or made out of our sight.
            maker = call.parent if entering else call
        if maker is None or origin is not None and origin.blamed:
            return
        where = f"{name} of {call.path}" if entering else name
        before = call.path if entering else "the end"
        after = made.after if made and made.maker else None
        if after is None and maker.last_child and maker is (call.parent if entering else call):
            after = maker.last_child.path
        if maker.path in self.parents:
            where = f"between {_short(after, maker)} and {_short(before, maker)} ({where})"
        elif maker is call:
            where = ""
        if origin is not None:
            origin.blamed = True
            carried = origin.wrong - {maker.path}
            origin.wrong = origin.wrong | {maker.path}
            if carried:
                # A mistake from elsewhere got in beside the doors, in a cache or an attribute.
                if maker.path not in self.findings:
                    self.not_checked[maker.path] = NotChecked(
                        maker.path, f"reached by a wrong tensor of {sorted(carried)[0]}")
                return
        if pair[0].shape != pair[1].shape and pair[0].shape[1:] == pair[1].shape[1:]:
            self.counts.add(maker.path)
        if self._blame(maker, where, apart):
            if origin is not None:
                self.foreign[maker.path] = origin.foreign - {maker.path}
                finding = self.findings.get(maker.path)
                if finding is not None:
                    finding.or_in = sorted((made or origin).unseen - {maker.path})
            if pair[0].shape == pair[1].shape:
                self.samples[maker.path] = (pair[0], pair[1].detach().clone())

    def _blame(self, maker: ModuleCall, where: str, apart: float | None = None) -> bool:
        """Adds a finding, or counts it with the one there is. True if it is new."""
        while maker.state.odd and maker.parent:  # A call with an odd argument: its caller's.
            maker, where = maker.parent, maker.state.odd
        found = self.findings.get(maker.path)
        if found is not None:
            found.calls = max(found.calls, maker.number + 1)
            return False
        kind = "own code" if maker.path in self.parents else "module"
        finite = apart if apart is not None and apart < float("inf") else None
        kept = maker.state.kept
        other = kept.path if kept is not None and kept.path != maker.path else None
        self.findings[maker.path] = Mistake(maker.path, kind, where, finite, path_a=other)
        return True

    def _repair(self, a: torch.Tensor | None, b: torch.Tensor, origin: _Origin | None) -> None:
        """Writes A's values into a tensor that B made, for whoever else in B holds it."""
        if a is None or origin is None or origin.maker is None or b.requires_grad:
            return
        overlaps = any(step == 0 and size > 1 for step, size in zip(b.stride(), b.shape))
        if overlaps or storage_of(b)._cdata in self._protected:
            return
        b.copy_(cast(a, b))
        self._ids.written(b)
        number, _, _ = self._ids.of(b)
        self._origins[number] = _Origin(None)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _short(path: str | None, inside: ModuleCall) -> str:
    if path is None:
        return "the start"
    return path.removeprefix(inside.path + ".") if inside.path else path
