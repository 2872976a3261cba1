"""python -m tensordiff capture SCRIPT: records the model of any script, without editing it."""

from __future__ import annotations

import argparse
import contextlib
import pathlib
import runpy
import sys
from collections.abc import Iterator
from typing import Any


def capture_main(argv: list[str]) -> int:
    """Runs a script, and captures the first model that it calls."""
    parser = argparse.ArgumentParser(
        prog="python -m tensordiff capture",
        description="Run a Python script and record the first PyTorch model that it calls.")
    parser.add_argument("-o", "--out", default="capture", help="folder to write; default: capture")
    parser.add_argument("--model", help="class of the model to record; default: the first called")
    parser.add_argument("--include", action="append", help="only modules whose path fits this glob")
    parser.add_argument("--exclude", action="append", help="not modules whose path fits this glob")
    parser.add_argument("--mode", choices=["full", "stats", "sample"], default="full",
                        help="what to keep of each tensor; default: full")
    parser.add_argument("--values", choices=["modules", "all"], default="modules",
                        help="all: results of functions too; default: modules")
    parser.add_argument("script", help="the script to run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    options = parser.parse_args(argv)
    if not pathlib.Path(options.script).is_file():
        parser.error(f"no file named '{options.script}'")
    with _first_model(options) as found:
        sys.argv = [options.script, *options.arguments]
        sys.path.insert(0, str(pathlib.Path(options.script).resolve().parent))
        runpy.run_path(options.script, run_name="__main__")
    if not found:
        wanted = f"no {options.model}" if options.model else "no PyTorch model"
        print(f"tensordiff: {wanted} was called by {options.script}", file=sys.stderr)
        return 2
    run = found[0]
    print(f"tensordiff: {run.tensors_written} tensors of {type(run.model).__name__} in {run.path}",
          file=sys.stderr)
    return 2 if run.errors else 0


@contextlib.contextmanager
def _first_model(options: Any) -> Iterator[list[Any]]:
    """Opens a capture when the first fitting module is called; closes it at the end."""
    import torch

    from ._capture import capture
    found: list[Any] = []
    original = torch.nn.Module.__call__

    def watching(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        fits = options.model is None or type(module).__name__ == options.model
        if not found and fits:
            run = capture(module, options.out, include=options.include, exclude=options.exclude,
                          mode=options.mode, values=options.values)
            stack.enter_context(run)
            found.append(run)
        return original(module, *args, **kwargs)

    with contextlib.ExitStack() as stack:
        torch.nn.Module.__call__ = watching
        try:
            yield found
        finally:
            torch.nn.Module.__call__ = original
