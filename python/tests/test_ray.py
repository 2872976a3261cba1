"""tensordiff.distributed on a Ray cluster of several nodes, which runs on this machine.

The nodes are real Ray nodes with processes of their own; workers and nodes are really killed.
$TENSORDIFF names the program where the package has none.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="needs Ray: pip install 'tensordiff[ray]'")

from ray.cluster_utils import Cluster  # noqa: E402

from tensordiff import distributed  # noqa: E402
from tensordiff.program import program_path  # noqa: E402

PROGRAM = program_path() or os.environ.get("TENSORDIFF", "")
pytestmark = pytest.mark.skipif(not PROGRAM, reason="needs the program: install the wheel")


def write(path: pathlib.Path, tensors: dict[str, np.ndarray]) -> str:
    header: dict[str, Any] = {}
    end = 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": values.shape,
                        "data_offsets": [end, end + values.nbytes]}
        end += values.nbytes
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text
                     + b"".join(values.tobytes() for values in tensors.values()))
    return str(path)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """One tensor is large enough to be split; one is scaled in B, which diagnosis names."""
    folder = tmp_path_factory.mktemp("models")
    chance = np.random.default_rng(25)
    a = {f"model.layers.{i}.mlp.{part}_proj.weight": chance.standard_normal((128, 64), np.float32)
         for i in range(4) for part in ("up", "down")}
    a["model.embed_tokens.weight"] = chance.standard_normal((2400, 1000), np.float32)
    b = {name: values.copy() for name, values in a.items()}
    b["model.layers.2.mlp.up_proj.weight"] *= np.float32(1.25)
    b["model.embed_tokens.weight"][-1, -1] = np.nan
    return write(folder / "a.safetensors", a), write(folder / "b.safetensors", b)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    for _ in range(2):
        made.add_node(num_cpus=1)
    made.wait_for_nodes()
    # Workers import the package from where the tests do.
    paths = os.pathsep.join(path for path in sys.path if path)
    ray.init(address=made.address, log_to_driver=False,
             runtime_env={"env_vars": {"PYTHONPATH": paths}})
    yield made
    ray.shutdown()
    made.shutdown()


def one_process(models: tuple[str, str], *options: str) -> subprocess.CompletedProcess[bytes]:
    # Given explicitly, since readline puts COLUMNS into the environment behind Python's back.
    return subprocess.run([PROGRAM, *models, *options], capture_output=True, check=False,
                          env=dict(os.environ))


@pytest.mark.parametrize("output", ["text", "report", "markdown"])
def test_the_report_is_that_of_one_process(cluster: Any, models: tuple[str, str],
                                           output: str) -> None:
    seen: list[tuple[int, int]] = []
    done = distributed.run(*models, merge_options=["-o", output], program=PROGRAM,
                           progress=lambda *at: seen.append(at))
    whole = one_process(models, "-o", output)
    assert (done.output, done.status) == (whole.stdout, whole.returncode)
    assert done.status == 1
    assert seen == [(1, 3), (2, 3), (3, 3)]
    assert len(set(done.ran_on)) == 3, "one part on each node"


def test_options_go_to_every_part(cluster: Any, models: tuple[str, str]) -> None:
    options = ["--atol", "10", "--ignore-keys-regex", "embed"]
    done = distributed.run(*models, options=options, merge_options=["-o", "report"],
                           program=PROGRAM, parts=2)
    assert done.status == 0
    assert done.output == one_process(models, "-o", "report", *options).stdout


def test_parts_run_where_their_data_is(cluster: Any, models: tuple[str, str]) -> None:
    nodes = sorted((node["NodeID"] for node in ray.nodes() if node["Alive"]), reverse=True)
    done = distributed.run(*models, program=PROGRAM, parts=6,
                           nodes=nodes)
    assert done.ran_on == (nodes[0],) * 2 + (nodes[1],) * 2 + (nodes[2],) * 2


def slow_once(folder: pathlib.Path, part: str) -> tuple[str, pathlib.Path]:
    """The program, but the first process that does this part writes down who runs it and waits."""
    marker = folder / "started"
    script = folder / "tensordiff"
    script.write_text(
        f"""#!/bin/sh
case " $* " in
  *" --part {part} "*)
    if [ ! -e {marker} ]; then
      echo "$$ $PPID" > {marker}.new && mv {marker}.new {marker}
      exec sleep 600
    fi ;;
esac
exec {PROGRAM} "$@"
""")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return str(script), marker


def once_started(marker: pathlib.Path, act: Any) -> threading.Thread:
    def watch() -> None:
        for _ in range(1200):
            if marker.exists():
                program, worker = map(int, marker.read_text().split())
                return act(program, worker)
            time.sleep(0.1)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def test_a_killed_worker_is_replaced(cluster: Any, models: tuple[str, str],
                                     tmp_path: pathlib.Path) -> None:
    program, marker = slow_once(tmp_path, "2/3")
    killed: list[int] = []

    def kill(program: int, worker: int) -> None:
        os.kill(worker, signal.SIGKILL)
        killed.append(program)

    thread = once_started(marker, kill)
    done = distributed.run(*models, merge_options=["-o", "report"], program=program,
                           parts=3)
    thread.join()
    assert killed, "the part was never started"
    assert done.output == one_process(models, "-o", "report").stdout
    with pytest.raises(ProcessLookupError):  # What the worker had started ended with it.
        os.kill(killed[0], 0)


def test_a_killed_program_is_started_again(cluster: Any, models: tuple[str, str],
                                           tmp_path: pathlib.Path) -> None:
    program, marker = slow_once(tmp_path, "1/2")
    thread = once_started(marker, lambda program, worker: os.kill(program, signal.SIGKILL))
    done = distributed.run(*models, merge_options=["-o", "report"], program=program,
                           parts=2)
    thread.join()
    assert done.output == one_process(models, "-o", "report").stdout


def test_a_lost_node_is_replaced(cluster: Any, models: tuple[str, str],
                                 tmp_path: pathlib.Path) -> None:
    extra = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    program, marker = slow_once(tmp_path, "1/2")
    thread = once_started(marker, lambda program, worker: cluster.remove_node(extra))
    done = distributed.run(*models, merge_options=["-o", "report"], program=program,
                           parts=2, nodes=[extra.node_id])
    thread.join()
    assert done.output == one_process(models, "-o", "report").stdout
    assert extra.node_id not in done.ran_on[:1]


def test_what_cannot_be_read_is_told_at_once(cluster: Any, models: tuple[str, str]) -> None:
    with pytest.raises(distributed.PartError, match="nosuch"):
        distributed.run(models[0], models[1] + ".nosuch", program=PROGRAM)
    with pytest.raises(ValueError, match="no node of the cluster is called mars"):
        distributed.run(*models, program=PROGRAM, nodes=["mars"])


def test_the_command_prints_the_report(cluster: Any, models: tuple[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tensordiff.ray", *models, "--address", cluster.address,
         "--program", PROGRAM, "--parts", "2", "--atol", "0.5"],
        capture_output=True, check=False, cwd=os.path.dirname(models[0]),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)})
    whole = one_process(models, "--atol", "0.5")
    assert (done.stdout, done.returncode) == (whole.stdout, whole.returncode), done.stderr
    assert b"2 of 2 parts" in done.stderr


def test_compare_gives_a_report(cluster: Any, models: tuple[str, str]) -> None:
    pytest.importorskip("tensordiff._engine", reason="needs the engine: install the wheel")
    report = distributed.compare(*models, program=PROGRAM, parts=2)
    assert report.verdict == "different"
    assert report.json.encode() == one_process(models, "-o", "report").stdout


def test_neighbouring_parts_share_a_node() -> None:
    nodes = [{"NodeID": name, "Alive": True, "Resources": {"CPU": cpus}}
             for name, cpus in (("b", 32), ("a", 16), ("head", 0))]
    assert distributed.plan_parts(nodes) == distributed.Plan(("a", "b", "b"), 16)
    plan = distributed.plan_parts(nodes, parts=6, cpus=32, wanted=["b", "a"])
    assert plan.nodes == ("b", "b", "b", "a", "a", "a")
    with pytest.raises(ValueError, match="1 or more"):
        distributed.plan_parts(nodes, parts=0)
