"""A comparison by many machines: its parts as Ray tasks, merged into the report of one process.

    report = tensordiff.distributed.compare("/data/a", "/data/b", parts=16)

Every node needs the wheel and reads both models itself, from a shared file system or by address
(https, s3, gs, hf). Only partial results travel, some hundred bytes for each tensor.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
import importlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .program import program_path

if TYPE_CHECKING:
    from .report import Report

_PR_SET_PDEATHSIG = 1  # From sys/prctl.h.
_WAIT_S = 1.0  # Between two looks at what is finished; only Ctrl-C waits for it.
# More threads in one process gain little where reading is the limit: docs/scale.md.
_CPUS_MAX = 16


class PartError(RuntimeError):
    """A part, or the merge, that failed in a way that doing it again does not change."""


class Interrupted(RuntimeError):
    """A process that was ended by a signal: it is started again."""


@dataclasses.dataclass(frozen=True)
class Plan:
    """How a comparison is shared out: which node each part should run on."""

    nodes: tuple[str, ...]  # One for each part: the id of a Ray node.
    cpus: int  # Threads of each part.

    @property
    def parts(self) -> int:
        return len(self.nodes)


@dataclasses.dataclass(frozen=True)
class Merged:
    """What the merge printed and how it ended, and where each part ran."""

    status: int
    output: bytes
    messages: str
    ran_on: tuple[str, ...]


Progress = Callable[[int, int], None]


def compare(a: str, b: str, *, options: Sequence[str] = (), parts: int | None = None,
            cpus: int | None = None, nodes: Sequence[str] = (), retries: int = 3,
            address: str | None = None, program: str | None = None,
            progress: Progress | None = None) -> Report:
    """Compares two models on a Ray cluster. `options` are those of the command line that say what
    is compared and how; `nodes` has ids or addresses of nodes, in the order in which they should
    get the parts; `progress` is called with the parts that are done and all of them."""
    from .report import ComparisonError, Report
    done = run(a, b, options=options, merge_options=("-o", "report"), parts=parts,
               cpus=cpus, nodes=nodes, retries=retries, address=address, program=program,
               progress=progress)
    if done.status not in (0, 1):
        raise ComparisonError(_last_line(done.messages))
    return Report(done.output.decode())


def run(a: str, b: str, *, options: Sequence[str] = (), merge_options: Sequence[str] = (),
        parts: int | None = None, cpus: int | None = None, nodes: Sequence[str] = (),
        retries: int = 3, address: str | None = None, program: str | None = None,
        progress: Progress | None = None) -> Merged:
    """Plans, runs the parts, and merges them with `merge_options` on one of the nodes."""
    ray = importlib.import_module("ray")
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    plan = plan_parts(_living_nodes(ray), parts=parts, cpus=cpus, wanted=nodes)
    words = [_absolute(a), _absolute(b), *options]
    refs = [_remote(ray, _measure, plan, node, retries).remote(
                program, [*words, "--part", f"{number}/{plan.parts}",
                          "--threads", str(plan.cpus), "--quiet"])
            for number, node in enumerate(plan.nodes, 1)]
    try:
        _wait(ray, refs, progress)
        merge = _remote(ray, _merge, plan, plan.nodes[0], retries)
        return ray.get(merge.remote(program, list(merge_options), _columns(), *refs))
    except ray.exceptions.RayTaskError as error:
        raise error.as_instanceof_cause() from None
    finally:
        _, left = ray.wait(refs, num_returns=len(refs), timeout=0, fetch_local=False)
        for ref in left:
            ray.cancel(ref, force=True)


def plan_parts(alive: Sequence[dict[str, Any]], *, parts: int | None = None,
               cpus: int | None = None, wanted: Sequence[str] = ()) -> Plan:
    """Neighbouring parts read neighbouring tensors, so they go to one node: it opens fewer files,
    and the next comparison finds them in its page cache. A node is a hint: Ray takes another one
    if it is busy or gone."""
    known = {str(node[key]): node for node in alive
             for key in ("NodeID", "NodeManagerAddress", "NodeName") if key in node}
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"no node of the cluster is called {', '.join(unknown)}")
    chosen = [known[name] for name in wanted]
    if not chosen:
        chosen = sorted((node for node in alive if _cpus_of(node) > 0),
                        key=lambda node: str(node["NodeID"]))
    if not chosen:
        raise ValueError("the Ray cluster has no node with CPUs")
    if cpus is None:
        cpus = max(1, min(_CPUS_MAX, *(_cpus_of(node) for node in chosen)))
    slots = [node for node in chosen for _ in range(max(1, _cpus_of(node) // cpus))]
    if parts is None:
        parts = len(slots)
    if parts < 1:
        raise ValueError("the number of parts must be 1 or more")
    return Plan(tuple(str(slots[part * len(slots) // parts]["NodeID"]) for part in range(parts)),
                cpus)


def _cpus_of(node: dict[str, Any]) -> int:
    return int(node.get("Resources", {}).get("CPU", 0))


def _living_nodes(ray: Any) -> list[dict[str, Any]]:
    return [node for node in ray.nodes() if node["Alive"]]


def _remote(ray: Any, function: Callable[..., Any], plan: Plan, node: str, retries: int) -> Any:
    affinity = importlib.import_module("ray.util.scheduling_strategies")
    strategy = affinity.NodeAffinitySchedulingStrategy(node_id=node, soft=True)
    return ray.remote(num_cpus=plan.cpus, max_retries=retries, retry_exceptions=[Interrupted],
                      scheduling_strategy=strategy)(function)


def _wait(ray: Any, refs: Sequence[Any], progress: Progress | None) -> None:
    """Until all are done. The first that fails for good ends it."""
    left = list(refs)
    while left:
        done, left = ray.wait(left, num_returns=1, timeout=_WAIT_S, fetch_local=False)
        if not done:
            continue
        ray.get(done)
        if progress is not None:
            progress(len(refs) - len(left), len(refs))


def _absolute(path: str) -> str:
    """Tasks start in another folder. An address stays as it is."""
    return path if "://" in path else os.path.abspath(path)


def _measure(program: str | None, words: list[str]) -> tuple[str, bytes]:
    """One part: where it ran, and its partial result."""
    with tempfile.TemporaryDirectory(prefix="tensordiff-") as folder:
        file = pathlib.Path(folder, "result.tdpart")
        done = _run(program, [*words, "--out", str(file)])
        if done.returncode != 0:
            raise PartError(_last_line(_text(done.stderr)))
        return _this_node(), file.read_bytes()


def _merge(program: str | None, options: list[str], columns: str | None,
           *parts: tuple[str, bytes]) -> Merged:
    with tempfile.TemporaryDirectory(prefix="tensordiff-") as folder:
        for number, (_, part) in enumerate(parts, 1):
            pathlib.Path(folder, f"{number:08}.tdpart").write_bytes(part)
        done = _run(program, ["merge", folder, *options], columns)
        return Merged(done.returncode, done.stdout, _text(done.stderr),
                      tuple(node for node, _ in parts))


def _text(output: bytes) -> str:
    return output.decode(errors="replace")


def _last_line(messages: str) -> str:
    """The error, which stands behind what was told before."""
    return messages.strip().rpartition("\n")[2].removeprefix("tensordiff: ")


def _this_node() -> str:
    return str(importlib.import_module("ray").get_runtime_context().get_node_id())


def _columns() -> str | None:
    """How wide the text may be, as the program tells for itself."""
    if "COLUMNS" in os.environ:
        return os.environ["COLUMNS"]
    return str(shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def _run(program: str | None, words: list[str],
         columns: str | None = None) -> subprocess.CompletedProcess[bytes]:
    path = program or program_path() or shutil.which("tensordiff")
    if path is None:
        raise PartError("tensordiff is not installed on this node: install the wheel")
    # The C library is found before the fork: loading it in the child could wait for a lock forever.
    end_with_worker = functools.partial(ctypes.CDLL(None).prctl, _PR_SET_PDEATHSIG, signal.SIGKILL)
    variables = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    if columns is not None:
        variables["COLUMNS"] = columns
    done = subprocess.run([path, *words], capture_output=True, check=False, env=variables,
                          preexec_fn=end_with_worker)
    if done.returncode < 0:
        raise Interrupted(f"tensordiff was ended by signal {-done.returncode}")
    return done
