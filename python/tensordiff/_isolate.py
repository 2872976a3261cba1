"""Finds every mistake of a port at its own place, by giving each module of B the inputs of A."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Generator, Mapping
from typing import Any

import torch

from . import trees
from .doors import Forcer
from .findings import Isolation, Mistake, NotChecked
from .hint import PortSteps, ReferenceSteps, hint, wanted
from .mapping import Mapper
from .observe import ModuleCall, Observer, module_paths
from .record import Keeper, Kept
from .torch_versions import same_randomness
from .values import unit
from .weights import coarsest_dtype, differing, in_dtype

Run = Callable[[torch.nn.Module, Any], Any]


class MappingError(ValueError):
    """A mapping that names a module which is not there."""


def isolate(a: torch.nn.Module, b: torch.nn.Module, inputs: Any, *, inputs_b: Any = None,
            run: Run | None = None, mapping: Mapping[str, str] | None = None,
            compute: torch.dtype | None = None, budget: float | None = None,
            hints: bool = True) -> Isolation:
    """Runs A, then B with A's tensors at each module's door, and says where B is wrong.

    Mistakes are not carried from one module to the next, so that each is found at its own place.

    inputs: a dict for model(**inputs), a tuple for model(*inputs), or the only argument.
    inputs_b: those of B, where its arguments are called otherwise.
    run: how a model is called, such as
        lambda m, x: m.generate(**x, max_new_tokens=4, do_sample=False)
    mapping: module of B -> module of A, where the paths differ and are not found by the weights.
    compute: torch.float32 rounds the weights of both to the coarser dtype and computes in f32,
        which shows mistakes that are smaller than bf16's rounding.
    budget: the relative error that counts as rounding; by default by the coarsest dtype.
    hints: run both once more after a finding, to name a line of code to look at first.

    >>> import copy, torch, tensordiff
    >>> a = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.GELU(), torch.nn.Linear(4, 2))
    >>> b = copy.deepcopy(a)
    >>> b[1] = torch.nn.GELU(approximate="tanh")
    >>> answer = tensordiff.isolate(a, b, torch.linspace(-2, 2, 8).reshape(2, 4))
    >>> answer.verdict, [finding.path for finding in answer.findings]
    ('different', ['1'])
    """
    run = run or call_model
    inputs_b = inputs if inputs_b is None else inputs_b
    paths_a, paths_b = (dict((path, module) for module, path in module_paths(model)[0].items())
                        for model in (a, b))
    _check_mapping(mapping, paths_a, paths_b)
    with torch.no_grad(), in_dtype(compute, a, b):
        if compute is not None:
            inputs, inputs_b = _floats_to(compute, inputs), _floats_to(compute, inputs_b)
        coarsest = coarsest_dtype(a, b)
        kept = keep(a, inputs, run)
        order_b = order_of(b, inputs_b, run) if paths_a.keys() != paths_b.keys() else []
        mapper = Mapper(paths_a, paths_b, kept, mapping or {}, order_b)
        protected = [*a.parameters(), *a.buffers(), *b.parameters(), *b.buffers(),
                     *(t for _, t in trees.tensors(inputs_b)),
                     *(t for _, t in trees.tensors(inputs))]
        forcer, stopped = _forced(mapper, lambda f: force(b, inputs_b, run, f), lambda: Forcer(
            mapper.counterpart, budget, coarsest, protected, place=mapper.place))
        answer = _sum_up(forcer, mapper, stopped, paths_a, paths_b)
        _explain(answer, forcer)
        places = [finding for finding in answer.findings if wanted(finding)]
        if hints and places:
            again = PortSteps(mapper.counterpart, budget, coarsest, protected)
            _add_hints(places, mapper, (a, inputs), (b, inputs_b), run, again)
        if compute is None and unit(coarsest) > unit(torch.float32):
            _ask_a(answer, forcer.counts, (a, inputs), run, coarsest, lambda: Forcer(
                _same_calls(kept), budget, coarsest, protected, rounded=coarsest))
    if mapper.layouts:
        answer.notes.append(f"rows of {next(iter(mapper.layouts))} and {len(mapper.layouts) - 1} "
                            "more lie in another order than in A; what reads them agrees")
    if a.training or b.training:
        answer.notes.append("a model is in training mode: dropout makes runs differ")
    if compute is None and coarsest not in (torch.float32, torch.float64):
        answer.notes.append(f"rounding of {str(coarsest).removeprefix('torch.')} hides small "
                            "mistakes; compute=torch.float32 shows them")
    return answer


def call_model(model: torch.nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    if isinstance(inputs, (tuple, list)):
        return model(*inputs)
    return model(inputs)


def keep(model: torch.nn.Module, inputs: Any, run: Run) -> Keeper:
    """Runs A and keeps what passes its doors."""
    keeper = Keeper()
    with same_randomness(), Observer(model, keeper, "none"):
        run(model, _fresh(inputs))
    return keeper


def order_of(model: torch.nn.Module, inputs: Any, run: Run) -> list[str]:
    """The modules that compute, in the order in which their first calls end; if it fails, up to
    there."""
    keeper = Keeper(values=False)
    with same_randomness(), Observer(model, keeper, "none"), \
            contextlib.suppress(Exception):
        run(model, _fresh(inputs))
    return [path for path in dict.fromkeys(kept.path for kept in keeper.calls.values())
            if path not in keeper.handed_on]


def force(model: torch.nn.Module, inputs: Any, run: Run, forcer: Forcer) -> Exception | None:
    """Runs B; what it raised outside of all modules that A has too, or None."""
    observer = Observer(model, forcer)
    with same_randomness(), guarded(observer, forcer), observer:
        try:
            run(model, _fresh(inputs))
        except Exception as problem:
            return problem
    return None


def _forced(mapper: Mapper, go: Callable[[Forcer], Exception | None],
            new: Callable[[], Forcer]) -> tuple[Forcer, Exception | None]:
    """The run of B; with rows in B's own order where those who read them then agree.

    Rows that a converter left in the wrong order are told from a layout by that: what reads a
    layout as A's order gets it wrong, and what reads a mistake as a layout does.
    """
    plain = new()
    stopped = go(plain)
    layouts = mapper.layouts_found()
    if not layouts:
        return plain, stopped
    mapper.layouts = layouts
    turned = new()
    stopped_turned = go(turned)

    def wrong(forcer: Forcer, problem: Exception | None) -> tuple[int, int]:
        readers = len(forcer.findings.keys() - layouts.keys())
        return readers + (problem is not None), len(forcer.findings)

    if wrong(turned, stopped_turned) < wrong(plain, stopped):
        return turned, stopped_turned
    mapper.layouts = {}
    return plain, stopped


@contextlib.contextmanager
def guarded(observer: Observer, forcer: Forcer) -> Generator[None]:
    """Lets B go on after a module that raises."""
    before: list[tuple[torch.nn.Module, Any]] = []

    def guard(forward: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(forward)
        def safe(*args: Any, **kwargs: Any) -> Any:
            try:
                return forward(*args, **kwargs)
            except Exception as problem:
                call = observer.current
                if call is None:
                    raise
                observer.busy = True
                try:
                    return forcer.rescue(call, problem)
                finally:
                    observer.busy = False
        return safe

    try:
        for module in observer.paths:
            if not isinstance(module, torch.jit.ScriptModule):
                before.append((module, vars(module).get("forward")))
                vars(module)["forward"] = guard(module.forward)
        yield
    finally:
        for module, forward in before:
            if forward is None:
                del vars(module)["forward"]
            else:
                vars(module)["forward"] = forward


def _fresh(inputs: Any) -> Any:
    """Copies, since a model may write to its inputs."""
    return trees.replace(inputs, {path: t.clone() for path, t in trees.tensors(inputs)})


def _floats_to(dtype: torch.dtype, inputs: Any) -> Any:
    return trees.replace(inputs, {path: tensor.to(dtype) for path, tensor in trees.tensors(inputs)
                                  if tensor.is_floating_point()})


def _check_mapping(mapping: Mapping[str, str] | None, paths_a: Mapping[str, Any],
                   paths_b: Mapping[str, Any]) -> None:
    for path_b, path_a in (mapping or {}).items():
        for side, path, known in (("B", path_b, paths_b), ("A", path_a, paths_a)):
            if path not in known:
                raise MappingError(f"mapping: {side} has no module '{path}'")


def _sum_up(forcer: Forcer, mapper: Mapper, stopped: Exception | None,
            paths_a: dict[str, torch.nn.Module],
            paths_b: dict[str, torch.nn.Module]) -> Isolation:
    findings, not_checked = forcer.findings, forcer.not_checked
    for path, reason in forcer.unseen.items():
        if path not in forcer.seen and path not in findings:
            not_checked.setdefault(path, NotChecked(path, reason))
    if stopped is not None:
        text = f"raises {type(stopped).__name__}: {str(stopped).splitlines()[0][:200]}"
        findings.setdefault("", Mistake("", "own code", text))
    disagree = {door.call for door in forcer.doors if not door.agrees}
    results = {door.call for door in forcer.doors if not door.name.startswith("argument")}
    for path, text in mapper.missing(set(forcer.called), results - disagree):
        below = any(_inside(path, lost) for lost in not_checked)
        if stopped is not None or below:
            not_checked.setdefault(path, NotChecked(path, "was not called"))
        elif path not in findings:
            findings[path] = Mistake(path, "own code", text)
    _merge_shared(forcer)
    _add_weights(forcer, mapper, paths_a, paths_b)
    for path in list(not_checked):
        if path in findings and findings[path].kind != "weights":
            del not_checked[path]
    return Isolation(list(findings.values()), list(not_checked.values()), forcer.checked,
                     mapper.other_paths(), doors=forcer.doors,
                     modules={path: type(module).__name__ for path, module in paths_b.items()})


def _add_hints(findings: list[Mistake], mapper: Mapper, a: tuple[torch.nn.Module, Any],
               b: tuple[torch.nn.Module, Any], run: Run, port: PortSteps) -> None:
    areas = {each.path: area for each in findings
             if (area := mapper.area(each.path)) is not None}
    reference = ReferenceSteps(set(areas.values()))
    port.watch(set(areas))
    with same_randomness(), Observer(a[0], reference):
        run(a[0], _fresh(a[1]))
    force(b[0], b[1], run, port)
    for each in findings:
        if each.path in areas:
            each.hint = hint(port.steps[each.path], reference.steps[areas[each.path]],
                             port.budget(torch.float32), areas[each.path][1])


def _same_calls(kept: Keeper) -> Callable[[ModuleCall], Kept | None]:
    return lambda call: kept.calls.get(call.label)


def _ask_a(answer: Isolation, counts: set[str], a: tuple[torch.nn.Module, Any], run: Run,
           coarsest: torch.dtype, forcer: Callable[[], Forcer]) -> None:
    """Takes back what A itself shows: with its tensors rounded as B's are, or in B's dtype.

    Rounding flips choices: an expert, a token. And torch's own kernel for a dtype may be wrong on
    this processor, as some convolutions in bf16 are. Whether B has a mistake there is not known.
    Buffers stay as they are: that a port rounds a table, as RoPE's, is a mistake of its own.
    """
    if answer.findings:
        twin = forcer()
        force(*a, run, twin)
        _take_back(answer, twin, counts, "rounding may change this")
    if answer.findings:
        with in_dtype(coarsest, a[0], buffers=False):
            twin = forcer()
            force(a[0], _floats_to(coarsest, a[1]), run, twin)
        name = str(coarsest).removeprefix("torch.")
        _take_back(answer, twin, set(), f"A computed in {name} is as far from A")


def _take_back(answer: Isolation, twin: Forcer, counts: set[str], reason: str) -> None:
    """Moves findings that the twin has too to what is not checked.

    Also those where B only chose another number of rows (`counts`).
    """
    for finding in list(answer.findings):
        path = finding.path_a or finding.path
        same = twin.findings.get(path) if path not in twin.not_checked else None
        if finding.weights:
            continue
        flips = finding.rel_l2 is None and finding.path in counts
        if flips or same is not None and (same.rel_l2 is None or finding.rel_l2 is not None
                                          and finding.rel_l2 < 4 * same.rel_l2):
            answer.findings.remove(finding)
            answer.not_checked.append(NotChecked(
                finding.path, f"{reason}; use compute=torch.float32"))


def _merge_shared(forcer: Forcer) -> None:
    """One mistake for all modules that are wrong only with an unchecked tensor of another.

    As RoPE's tables, which a port makes once and hands to all of its layers: if every one of two
    or more modules that use them is wrong, the tables are.
    """
    users: dict[str, list[str]] = {}
    for path, makers in forcer.foreign.items():
        for maker in makers - forcer.trusted:
            if path in forcer.findings:
                users.setdefault(maker, []).append(path)
    for maker, wrong in users.items():
        if len(wrong) < 2 or any(path not in forcer.findings for path in wrong):
            continue
        first = forcer.findings[wrong[0]]
        for path in wrong:
            del forcer.findings[path]
        if maker not in forcer.findings:
            where = f"a tensor that it hands to {wrong[0]} and {len(wrong) - 1} more"
            forcer.findings[maker] = Mistake(maker, "own code", where, first.rel_l2)


def _inside(path: str, outer: str) -> bool:
    return path == outer or outer == "" or path.startswith(outer + ".")


def _add_weights(forcer: Forcer, mapper: Mapper, paths_a: dict[str, torch.nn.Module],
                 paths_b: dict[str, torch.nn.Module]) -> None:
    """Names the weights behind findings, and those that differ where no value showed it."""
    called = {call.path for call in forcer.called.values()}
    owners: dict[int, list[str]] = {}
    differ: dict[str, list[tuple[str, str]]] = {}
    for path, module in paths_b.items():
        for parameter in module.parameters(recurse=False):
            owners.setdefault(id(parameter), []).append(path)
        other = paths_a.get(mapper.same_weights(path) or "")
        if mapper.same_weights(path) is not None and other is not None:
            found = differing(other, module, mapper.layouts.get(path))
            if found:
                differ[path] = found
    for path, found in differ.items():
        texts = [text for _, text in found]
        shared = {other for name, _ in found
                  for other in owners.get(id(getattr(paths_b[path], name, None)), [])}
        also = sorted(shared - {path})
        if any(other in differ and other in forcer.findings
               and forcer.findings[other].also for other in also):
            continue  # Named with the other module of the same parameter.
        finding = forcer.findings.get(path)
        if finding is None and path not in called:
            finding = _rename(forcer, path)
        if finding is None:
            shown = next((o for o in also if o in forcer.findings), None)
            finding = forcer.findings[shown] if shown else Mistake(path, "weights")
            also = sorted(shared - {finding.path})
            forcer.findings.setdefault(finding.path, finding)
        finding.weights, finding.also = texts, also
        for other in also:
            if other in differ and other in forcer.findings:
                del forcer.findings[other]


def _rename(forcer: Forcer, path: str) -> Mistake | None:
    """The finding of an enclosing module that uses these weights without calling their module."""
    outer = path
    while outer:
        outer = outer.rpartition(".")[0]
        finding = forcer.findings.get(outer)
        if finding is None or finding.kind != "module":
            finding = next((each for each in forcer.findings.values() if outer in each.or_in), None)
        if finding is not None:
            del forcer.findings[finding.path]
            finding.path, finding.kind, finding.or_in = path, "module", []
            forcer.findings[path] = finding
            return finding
    return None


def _explain(answer: Isolation, forcer: Forcer) -> None:
    """Lets the diagnosis engine say what B's tensor is, given A's."""
    from .report import compare
    for finding in answer.findings:
        sample = forcer.samples.get(finding.path)
        if sample is None or finding.weights:
            continue
        name = finding.path or "output"
        report = compare({name: sample[0]}, {name: sample[1]})
        causes = [each for each in report.findings if not each.convention]
        if causes:
            finding.cause = causes[0].explanation
