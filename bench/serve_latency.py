#!/usr/bin/env python3
"""How quickly the server answers on a large tensor, over HTTP: bench/serve_latency.py [GIB].

Makes two sparse files of one square f32 matrix of so many GiB each (4), compares them in a server,
and measures slices at random places and tiles of every level. Prints JSON.
"""

import json
import pathlib
import random
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from serving import Server  # noqa: E402  (the tests' client)


def write_matrix(path, side):
    header = json.dumps({"w": {"dtype": "F32", "shape": [side, side],
                               "data_offsets": [0, 4 * side * side]}}).encode()
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 4 * side * side)


def timed(server, connection, path):
    start = time.perf_counter()
    answer = server.ask("GET", "/api/v1" + path, connection=connection)
    assert answer.status == 200, answer.body
    return 1000 * (time.perf_counter() - start)


def spread(times):
    times = sorted(times)
    return {"median_ms": round(times[len(times) // 2], 3),
            "p99_ms": round(times[len(times) * 99 // 100], 3), "max_ms": round(times[-1], 3)}


def main():
    gib = float(sys.argv[1]) if len(sys.argv) > 1 else 4
    side = int((gib * (1 << 30) / 4) ** 0.5) // 256 * 256
    random.seed(1)
    with tempfile.TemporaryDirectory() as folder:
        for name in "ab":
            write_matrix(f"{folder}/{name}.safetensors", side)
        with Server(f"{folder}/state", "--root", folder) as server:
            start = time.perf_counter()
            sources = [server.source(f"{folder}/{name}.safetensors") for name in "ab"]
            session = server.post("/sessions", {"a": sources[:1], "b": sources[1:]}).json()["id"]
            while not server.rows(session)["rows"]:
                pass
            result = {"gib": gib, "side": side,
                      "first_rows_ms": round(1000 * (time.perf_counter() - start), 1)}
            server.wait(session, 600)
            result["all_metrics_ms"] = round(1000 * (time.perf_counter() - start), 1)
            pair = f"/sessions/{session}/pairs/0"
            connection = server.connect()
            slices = []
            for _ in range(1000):
                y, x = (random.randrange(side - 64) for _ in "yx")
                slices.append(timed(server, connection,
                                    f"{pair}/slice?plane=abd&at=y,x&y={y}:{y + 32}&x={x}:{x + 32}"))
            result["slice"] = spread(slices)
            pyramid = server.get(f"{pair}/pyramid?at=y,x").json()
            result["tile"] = {}
            for level in range(pyramid["levels"]):
                tiles = -(-side // (256 << level))
                first = timed(server, connection, f"{pair}/tile/d/{level}/0/0?at=y,x")
                times = [timed(server, connection, f"{pair}/tile/d/{level}/"
                               f"{random.randrange(tiles)}/{random.randrange(tiles)}?at=y,x")
                         for _ in range(50)]
                result["tile"][level] = {"first_ms": round(first, 1), **spread(times)}
            result["rss_mib"] = server.get("/health").json()["memory"]["rss"] >> 20
            connection.close()
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
