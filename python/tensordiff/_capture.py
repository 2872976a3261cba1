"""Records a run of a model: the outputs of its modules, and the graph of what was computed.

    with torch.no_grad(), tensordiff.capture(model, "ref"):
        model(**inputs)

writes ref/tensors-00001.safetensors ... and, last, ref/trace.json; docs/python/capture.md has the
format. The model computes exactly what it computes without.
"""

from __future__ import annotations

import contextlib
import fnmatch
import inspect
import os
import pathlib
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, Literal

import torch

from . import trees
from .folder import CaptureError, prepare_folder
from .identity import Identities
from .observe import FunctionCall, Handler, ModuleCall, Observer, Ops
from .shards import DTYPES, ShardWriter
from .source import lines_of, places_of
from .stats import statistics
from .trace import TraceWriter

Mode = Literal["full", "stats", "sample"]
Globs = str | Sequence[str] | None
Progress = Callable[[int, int], None]

# A long capture tells how far it is this often, in seconds, if stderr is a terminal.
_PROGRESS_EVERY = 2.0


class Capture(Handler):
    """A capture that runs while it is entered. Made by capture()."""

    def __init__(self, model: torch.nn.Module, path: str | os.PathLike[str], *,
                 include: Globs = None, exclude: Globs = None, mode: Mode = "full",
                 ops: Ops = "functions",
                 values: Literal["modules", "all"] = "modules", sample: int = 4096,
                 source: bool = True, rank: int | None = None,
                 compiled: Literal["eager", "keep"] = "eager",
                 on_error: Literal["record", "raise"] = "record",
                 progress: Progress | None = None) -> None:
        _one_of("mode", mode, ("full", "stats", "sample"))
        _one_of("ops", ops, ("functions", "none", "aten"))
        _one_of("values", values, ("modules", "all"))
        _one_of("compiled", compiled, ("eager", "keep"))
        _one_of("on_error", on_error, ("record", "raise"))
        if values == "all" and ops == "none":
            raise ValueError("values='all' needs ops='functions' or 'aten'")
        if sample < 1:
            raise ValueError(f"sample must be at least 1, not {sample}")
        self.model = model
        self.rank, self.world = _rank(rank)
        self.path = pathlib.Path(path) / f"rank_{self.rank}" if self.world else pathlib.Path(path)
        self.mode, self.values, self.sample, self.source = mode, values, sample, source
        self.compiled, self.on_error = compiled, on_error
        self.errors: list[dict[str, Any]] = []
        self.tensors_written = 0
        self._include, self._exclude = _globs(include), _globs(exclude)
        self._chosen: dict[str, bool] = {}  # By path, what the globs say.
        self._ids = Identities()
        self._observer = Observer(model, self, ops)
        self._trace = TraceWriter(self._observer)
        self._names: dict[str, int] = {}
        self._made: dict[str, int] = {}
        self._shards: ShardWriter | None = None
        self._failed = False
        self._open = contextlib.ExitStack()
        self._end = 0
        self._progress = progress or _terminal_progress()
        self._told = time.monotonic()

    @property
    def bytes_written(self) -> int:
        return self._shards.bytes if self._shards else 0

    # --- the context ---

    def __enter__(self) -> Capture:
        prepare_folder(self.path)
        self._shards = ShardWriter(self.path)
        with contextlib.ExitStack() as undo:
            if self.compiled == "eager":
                undo.enter_context(_eager())
            undo.enter_context(self._observer)
            self._open = undo.pop_all()
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._open.close()
        assert self._shards is not None
        try:
            self._shards.close()
        except OSError as problem:
            self.failed(problem)
        complete = error is None and not self._failed
        try:
            self._trace.write(self.path / "trace.json", rank=self.rank, world=self.world,
                              complete=complete, errors=self.errors, compiled=self.compiled)
        except OSError as problem:
            self.errors.append({"error": f"trace.json: {problem}"})
            self._failed = True
        if self._failed and error is None:
            text = f"{self.path}: incomplete capture: {self.errors[-1]['error']}"
            if self.on_error == "raise":
                raise CaptureError(text)
            print(f"tensordiff: {text}", file=sys.stderr)

    # --- the calls ---

    def begin(self, call: ModuleCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        record: dict[str, Any] = {
            "kind": "module", "name": type(call.module).__name__, "path": call.path,
            "call": call.number, "parent": call.parent.id if call.parent else None}
        if self.source and call.parent is not None:
            record["source"] = places_of(_frame_of_caller())
        record["args"], record["kwargs"] = self.writing(args, kwargs)
        call.id = self._trace.add(record)
        call.state = record

    def end(self, call: ModuleCall, out: Any, raised: bool) -> None:
        record = call.state
        record["end"] = self._end
        self._end += 1
        if raised:
            record["raised"] = True
            return
        record["out"] = self._describe(out)
        if not self._selected(call.path):
            return
        found = trees.tensors(out)
        base = call.label or "output"
        for path, tensor in found:
            name = base if len(found) == 1 else ".".join((base, *path))
            self._keep(name, tensor)

    def writing(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return ([self._describe(each) for each in args],
                {key: self._describe(each) for key, each in kwargs.items()})

    def function(self, call: ModuleCall | None, done: FunctionCall) -> None:
        made = trees.tensors(done.out)
        if not made:
            return
        record: dict[str, Any] = {
            "kind": "function", "name": done.name, "parent": call.id if call else None}
        if self.source:
            record["source"] = places_of(inspect.currentframe())
        record["args"], record["kwargs"] = done.before or self.writing(done.args, done.kwargs)
        number = self._trace.add(record)
        for _, tensor in trees.tensors(done.written):
            self._ids.written(tensor, number)
        record["out"] = self._describe(done.out)
        record["end"] = self._end
        self._end += 1
        path = call.path if call else ""
        if self.values == "all" and self._selected(path):
            base = ".".join(filter(None, (path, _helper(record), done.name.strip("_"))))
            count = self._made.get(base, 0)
            self._made[base] = count + 1
            base += f"@{count}" if count else ""
            for at, tensor in made:
                self._keep(base if len(made) == 1 else ".".join((base, *at)), tensor)

    def failed(self, error: Exception) -> None:
        """Disk full and the like: the model's run goes on, and the trace says so."""
        self._failed = True
        call = self._observer.current
        self.errors.append({"call": call.id if call else None,
                            "error": f"{type(error).__name__}: {error}"})

    # --- the tensors ---

    def _describe(self, tree: Any) -> Any:
        return trees.describe(tree, self._reference)

    def _reference(self, tensor: torch.Tensor) -> dict[str, Any]:
        parameter = self._trace.parameter_name(tensor)
        if parameter is not None:
            return {"p": parameter}
        number, new, writer = self._ids.of(tensor)
        if new:
            facts: dict[str, Any] = {"dtype": str(tensor.dtype).removeprefix("torch."),
                                     "shape": list(tensor.shape)}
            if writer is not None:  # Changed through another view of its storage.
                facts["written_by"] = writer
            self._trace.tensors.append(facts)
        return {"t": number}

    def _keep(self, name: str, tensor: torch.Tensor) -> None:
        """Writes a tensor, or what the mode wants of it, if that was not done before."""
        found = self._ids.find(tensor)
        if found is None or self._failed:
            return
        facts = self._trace.tensors[found]
        if "name" in facts or "stats" in facts or "unsaved" in facts:
            return
        reason = _unsaved(tensor)
        if reason:
            facts["unsaved"] = reason
            return
        if self.mode == "stats":
            facts["stats"] = statistics(tensor)
            return
        self._write(self._unique(name), tensor, facts)
        if self._progress and time.monotonic() - self._told > _PROGRESS_EVERY:
            self._told = time.monotonic()
            self._progress(self.tensors_written, self.bytes_written)

    def _write(self, name: str, tensor: torch.Tensor, facts: dict[str, Any]) -> None:
        assert self._shards is not None
        tensor = tensor.detach()
        if self.mode == "sample" and tensor.numel() > self.sample:
            step = -(-tensor.numel() // self.sample)
            tensor = tensor.reshape(-1)[::step]
            facts["sample"] = step
        if tensor.dtype not in DTYPES:
            facts["viewed"] = facts["dtype"]
            tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() \
                else tensor.contiguous().view(torch.uint8)
        self._shards.add(name, tensor)
        facts["name"] = name
        self.tensors_written += 1

    def _unique(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return name if count == 0 else self._unique(f"{name}+{count}")

    def _selected(self, path: str) -> bool:
        known = self._chosen.get(path)
        if known is None:
            inside = not self._include or any(fnmatch.fnmatchcase(path, g) for g in self._include)
            known = inside and not any(fnmatch.fnmatchcase(path, glob) for glob in self._exclude)
            self._chosen[path] = known
        return known


def capture(model: torch.nn.Module, path: str | os.PathLike[str], *, include: Globs = None,
            exclude: Globs = None, mode: Mode = "full",
            ops: Ops = "functions",
            values: Literal["modules", "all"] = "modules", sample: int = 4096,
            source: bool = True, rank: int | None = None,
            compiled: Literal["eager", "keep"] = "eager",
            on_error: Literal["record", "raise"] = "record",
            progress: Progress | None = None) -> Capture:
    """Records what a model computes while the returned context is open.

    include, exclude: globs on module paths; they choose whose outputs are written. The trace has
        every call.
    mode: "full" writes all values; "sample" at most `sample` of each tensor, at a fixed stride;
        "stats" only mean, std, min, max, norm and counts of NaN and Inf, in the trace.
    ops: "functions" records torch functions too; "aten" the kernels below them instead, whose names
        depend on device and version; "none" only modules.
    values: "all" writes the results of functions as well.
    source: note the lines of code.
    rank: of a run of several processes, each writes a folder rank_N; by default from
        torch.distributed.
    compiled: "eager" runs compiled models uncompiled, since hooks see nothing inside of them.
    on_error: what to do if a value cannot be written (disk full): "record" it in the trace, let the
        model go on and say so at the end, or "raise" at the end.
    progress: called now and then with the numbers of tensors and of bytes written.

    >>> import tempfile, torch, tensordiff
    >>> model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    >>> folder = tempfile.mkdtemp()
    >>> with torch.no_grad(), tensordiff.capture(model, folder) as run:
    ...     _ = model(torch.ones(1, 4))
    >>> run.tensors_written
    2
    """
    return Capture(model, path, include=include, exclude=exclude, mode=mode, ops=ops,
                   values=values, sample=sample, source=source, rank=rank, compiled=compiled,
                   on_error=on_error, progress=progress)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(allowed)}, not {value!r}")


def _globs(globs: Globs) -> tuple[str, ...]:
    if globs is None:
        return ()
    return (globs,) if isinstance(globs, str) else tuple(globs)


def _rank(rank: int | None) -> tuple[int, int | None]:
    """This process's rank, and of how many; None where it is alone."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        world = distributed.get_world_size()
        return (distributed.get_rank() if rank is None else rank), world if world > 1 else None
    return (0, None) if rank is None else (rank, rank + 1)


def _eager() -> contextlib.AbstractContextManager[Any]:
    if hasattr(torch, "compiler") and hasattr(torch.compiler, "set_stance"):
        return torch.compiler.set_stance("force_eager")
    return contextlib.nullcontext()  # Before torch 2.6.


def _unsaved(tensor: torch.Tensor) -> str | None:
    if tensor.layout != torch.strided:
        return str(tensor.layout).removeprefix("torch.")
    if tensor.is_quantized:
        return "quantized"
    return "meta" if tensor.device.type == "meta" else None


def _helper(record: dict[str, Any]) -> str | None:
    """The function between forward() and a call that it is made in, as apply_rotary_pos_emb."""
    source = lines_of(record.get("source", [])[:1])
    name = source[0][2] if source else "forward"
    return None if name in ("forward", "<lambda>", "<module>") or not name.isidentifier() else name


def _frame_of_caller() -> Any:
    """The frame that called the module whose hook runs now."""
    frame: Any = inspect.currentframe()
    while frame is not None and frame.f_code.co_name != "_call_impl":
        frame = frame.f_back
    return frame.f_back if frame is not None else None


def _terminal_progress() -> Progress | None:
    if not sys.stderr.isatty():
        return None

    def show(tensors: int, size: int) -> None:
        print(f"tensordiff: {tensors} tensors, {size / 1e6:.0f} MB", file=sys.stderr)

    return show
