"""Rows of the debugger: how quickly the server answers, what it takes, and how the page moves."""

import gzip
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import data

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import serving  # noqa: E402  (the tests' client)

MIB = 1 << 20
PAIRS = 50_000


def square(path, side):
    """A matrix of zeros that takes no room on the disk."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [side, side],
                               "data_offsets": [0, 4 * side * side]}}).encode()
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 4 * side * side)


def p99(times):
    return sorted(times)[len(times) * 99 // 100]


def timed(server, connection, path):
    start = time.perf_counter()
    answer = server.ask("GET", "/api/v1" + path, connection=connection)
    assert answer.status == 200, answer.body
    return 1000 * (time.perf_counter() - start)


def open_two(server, a, b):
    """A session on two paths; milliseconds until its first rows, and until all is measured."""
    start = time.perf_counter()
    sources = [server.source(path) for path in (a, b)]
    made = server.post("/sessions", {"a": sources[:1], "b": sources[1:]}).json()
    session, job = made["id"], made["job"]
    while not server.get(f"/sessions/{session}").json()["summary"]["pairs"]:
        time.sleep(0.001)
    rows = server.get(f"/sessions/{session}/pairs")
    assert rows.status == 200
    first = 1000 * (time.perf_counter() - start)
    server.wait(session, 600)
    done = 1000 * (time.perf_counter() - start)
    while server.get(f"/jobs/{job}").json()["state"] == "running":
        time.sleep(0.01)
    return session, first, done


def anonymous_mib(server):
    with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024


class Peak:
    """The most anonymous memory that a server has while something is done, in MiB."""

    def __init__(self, server):
        self.server, self.mib, self.over = server, 0, threading.Event()
        self.watcher = threading.Thread(target=self.watch)

    def watch(self):
        while not self.over.wait(0.002):
            self.mib = max(self.mib, anonymous_mib(self.server))

    def __enter__(self):
        self.watcher.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.watcher.join()


def server_at(bench, folder, *paths):
    serving.PROGRAM = bench.program
    roots = [word for path in paths for word in ("--root", os.path.dirname(path))]
    return serving.Server(pathlib.Path(folder) / "state", *roots)


def first_rows(bench, folder):
    size = bench.options.size
    a = bench.file(f"F32-{size}-a.safetensors", data.safetensors, "F32", size * MIB // 4)
    b = bench.file(f"F32-{size * MIB // 4}-1e-06-b.safetensors", data.safetensors, "F32",
                   size * MIB // 4, 1e-6)
    for path in (a, b):  # From memory, as the engine is timed.
        subprocess.run(["cat", path], stdout=subprocess.DEVNULL, check=True)
    with server_at(bench, folder, a) as server:
        _, first, done = open_two(server, a, b)
    bench.row(f"serve: two files of {size} MiB: first rows", first, "ms",
              f"all metrics: {done:.0f} ms")


def slices_and_tiles(bench, folder):
    side = int((4 * bench.options.size * MIB / 4) ** 0.5) // 256 * 256
    paths = [bench.file(f"square-{side}-{name}.safetensors", square, side) for name in "ab"]
    random.seed(1)
    with server_at(bench, folder, *paths) as server:
        session, *_ = open_two(server, *paths)
        pair = f"/sessions/{session}/pairs/0"
        connection = server.connect()

        def slice_at(y, x):
            window = f"at=y,x&y={y}:{y + 32}&x={x}:{x + 32}"
            return timed(server, connection, f"{pair}/slice?plane=abd&{window}")
        times = [slice_at(random.randrange(side - 64), random.randrange(side - 64))
                 for _ in range(1000)]
        bench.row(f"serve: slice of a {side} x {side} pair, p99", p99(times), "ms",
                  f"median {sorted(times)[500]:.2f} ms")
        for level in range(server.get(f"{pair}/pyramid?at=y,x").json()["levels"]):
            tiles = -(-side // (256 << level))

            def tile(more=""):
                where = f"{random.randrange(tiles)}/{random.randrange(tiles)}"
                return timed(server, connection, f"{pair}/tile/d/{level}/{where}?at=y,x{more}")
            glance = tile("&rough=1")
            first = tile()
            times = [tile() for _ in range(100)]
            bench.row(f"serve: tile of level {level}, p99", p99(times), "ms",
                      f"the first {first:.0f} ms, rough {glance:.0f} ms")
        bench.row("serve: anonymous memory with this pair", anonymous_mib(server), "MiB")
        connection.close()


def many_pairs(bench, folder):
    a = bench.file(f"many-{PAIRS}-a.safetensors", data.many_tensors, PAIRS, 16)
    b = bench.file(f"many-{PAIRS}-b.safetensors", data.many_tensors, PAIRS, 16, 1e-6)
    with server_at(bench, folder, a) as server:
        with Peak(server) as peak:
            _, first, done = open_two(server, a, b)
        bench.row(f"serve: {PAIRS:,} pairs: first rows", first, "ms", f"all: {done:.0f} ms")
        bench.row(f"serve: {PAIRS:,} pairs: anonymous memory, most", peak.mib, "MiB",
                  f"afterwards {anonymous_mib(server):.0f} MiB")
    if not shutil.which("node") or not (ROOT / "web/node_modules/playwright-core").is_dir():
        print("  serve: no browser here: ./dev browser installs one")
        return
    out = subprocess.run(["node", str(ROOT / "bench/page.mjs"), bench.program, a, b],
                         capture_output=True, text=True, check=True).stdout
    found = json.loads(out)
    bench.row(f"serve: {PAIRS:,} pairs: page usable after", found["usable_ms"], "ms",
              "the median of five")
    bench.row(f"serve: {PAIRS:,} pairs: script time a frame", found["script_ms"], "ms",
              f"over {found['frames']} frames of scrolling")
    bench.row(f"serve: {PAIRS:,} pairs: a key in the palette", found["key_ms"], "ms",
              f"of the main thread, the median; at most {found['key_ms_max']:.0f}")


def bundle(bench):
    size = sum(len(gzip.compress(path.read_bytes(), 9))
               for path in (ROOT / "web/dist").rglob("*") if path.is_file())
    bench.row("serve: page, compressed", size / 1000, "kB")


def run(bench):
    if not bench.wanted("serve"):
        return
    for part in (first_rows, slices_and_tiles, many_pairs):
        with tempfile.TemporaryDirectory() as folder:
            part(bench, folder)
    bundle(bench)
