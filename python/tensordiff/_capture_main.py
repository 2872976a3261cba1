"""python -m tensordiff capture SCRIPT: records the model of any script, without editing it."""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import pathlib
import sys
import types
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._capture import Capture


def capture_main(argv: list[str]) -> int:
    """Runs a script, and captures the first model that it calls; `python -m tensordiff capture`.

    argv: the options and the script with its arguments. Gives the exit status.

    >>> import pathlib, tempfile, tensordiff
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "run.py").write_text("import torch; torch.nn.ReLU()(torch.ones(2))")
    >>> tensordiff.capture_main(["-o", str(folder / "ref"), str(folder / "run.py")])
    0
    """
    options = _parsed(argv)
    script = types.ModuleType("__main__")
    end: SystemExit | None = None
    with _first_model(options, vars(script)) as found:
        try:
            _run(options.script, options.arguments, script)
        except SystemExit as exit:  # How many scripts end, whatever they say of it.
            if found.left:
                raise
            end = exit
    run = found.run
    if run is None:
        wanted = f"no {options.model}" if options.model else "no PyTorch model"
        if options.model_attr:
            wanted = f"no model in `{options.model_attr}`"
        print(f"tensordiff: {wanted} was called by {options.script}", file=sys.stderr)
        return 2
    print(f"tensordiff: {run.tensors_written} tensors of {type(run.model).__name__} in {run.path}",
          file=sys.stderr)
    if end is not None and not run.errors:
        raise end
    return 2 if run.errors else 0


def _parsed(argv: list[str]) -> Any:
    parser = argparse.ArgumentParser(
        prog="python -m tensordiff capture",
        description="Run a Python script and record the first PyTorch model that it calls.")
    parser.add_argument("-o", "--out", default="capture", help="folder to write; default: capture")
    parser.add_argument("--model", help="class of the model to record; default: the first called")
    parser.add_argument("--model-attr", metavar="NAME",
                        help="variable of the script that holds it, such as trainer.model")
    parser.add_argument("--include", action="append", help="only modules whose path fits this glob")
    parser.add_argument("--exclude", action="append", help="not modules whose path fits this glob")
    parser.add_argument("--mode", choices=["full", "stats", "sample"], default="full",
                        help="what to keep of each tensor; default: full")
    parser.add_argument("--sample", type=int, default=4096, metavar="N",
                        help="elements of each tensor with --mode sample; default: 4096")
    parser.add_argument("--ops", choices=["functions", "none", "aten"], default="functions",
                        help="record torch functions, aten kernels or modules only")
    parser.add_argument("--values", choices=["modules", "all"], default="modules",
                        help="all: results of functions too; default: modules")
    parser.add_argument("--no-source", dest="source", action="store_false",
                        help="do not note lines of code")
    parser.add_argument("--rank", type=int, help="rank of this process; default: torch.distributed")
    parser.add_argument("--compiled", choices=["eager", "keep"], default="eager",
                        help="how compiled models run; default: eager")
    parser.add_argument("--on-error", choices=["record", "raise"], default="record",
                        help="raise: fail if a value cannot be written; default: record")
    parser.add_argument("script", help="the script to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args(argv)
    if not pathlib.Path(options.script).is_file():
        parser.error(f"no file named '{options.script}'")
    return options


def _run(path: str, arguments: list[str], script: types.ModuleType) -> None:
    """As `python SCRIPT` does: it is __main__ while it runs, and its folder is searched first."""
    script.__file__ = path
    before, argv, places = sys.modules.get("__main__"), sys.argv, list(sys.path)
    sys.modules["__main__"] = script
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(pathlib.Path(path).resolve().parent))
    try:
        exec(compile(pathlib.Path(path).read_bytes(), path, "exec"), vars(script))
    finally:
        if before is not None:
            sys.modules["__main__"] = before
        sys.argv, sys.path[:] = argv, places


def _is_at(module: Any, variables: dict[str, Any], name: str) -> bool:
    """Whether a dotted name of the script is this module now."""
    first, *rest = name.split(".")
    value: Any = variables.get(first)
    for part in rest:
        value = getattr(value, part, None)
    return value is module


@dataclasses.dataclass
class _Found:
    run: Capture | None = None
    left: bool = False  # The script ended inside of a model.


@contextlib.contextmanager
def _first_model(options: Any, variables: dict[str, Any]) -> Generator[_Found]:
    """Opens a capture when the first fitting module is called; closes it at the end."""
    import torch

    from ._capture import capture
    found = _Found()
    original = torch.nn.Module.__call__

    def fits(module: torch.nn.Module) -> bool:
        if options.model_attr and not _is_at(module, variables, options.model_attr):
            return False
        return options.model is None or type(module).__name__ == options.model

    def watching(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        if found.run is None and fits(module):
            run = capture(module, options.out, include=options.include, exclude=options.exclude,
                          mode=options.mode, values=options.values, sample=options.sample,
                          ops=options.ops, source=options.source, rank=options.rank,
                          compiled=options.compiled, on_error=options.on_error)
            stack.enter_context(run)
            found.run = run
        try:
            return original(module, *args, **kwargs)
        except SystemExit:
            found.left = True
            raise

    with contextlib.ExitStack() as stack:
        torch.nn.Module.__call__ = watching
        try:
            yield found
        finally:
            torch.nn.Module.__call__ = original
