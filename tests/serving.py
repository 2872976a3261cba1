"""A running server for tests, and a client that speaks plain HTTP to it."""

import http.client
import json
import math
import os
import pathlib
import socket
import struct
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEMO = ROOT / "demo"
PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")
TYPES = {"u8": "B", "u32": "I", "i32": "i", "f64": "d"}


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)

    def floats(self, letter="f"):
        return struct.unpack(f"<{len(self.body) // struct.calcsize(letter)}{letter}", self.body)


class Server:
    def __init__(self, state, *arguments, **options):
        command = [PROGRAM, "serve", "--port", "0", "--no-open", "--state", str(state), "--quiet"]
        self.process = subprocess.Popen([*command, *map(str, arguments)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, **options)
        self.url = self.process.stdout.readline().strip()
        if not self.url:
            _, said = self.process.communicate()
            raise RuntimeError(said)
        address, fragment = self.url.split("/#")
        self.host = address.removeprefix("http://")
        self.token = fragment.removeprefix("t=").split("&")[0]
        self.port = int(self.host.rsplit(":", 1)[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.wait(timeout=120)
        self.process.stdout.close()
        self.process.stderr.close()

    def kill(self):
        """As a machine that loses its power."""
        self.process.kill()
        self.stop()

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)

    def ask(self, method, path, body=None, headers=None, connection=None):
        own = connection is None
        connection = connection or self.connect()
        if body is not None and not isinstance(body, (bytes, str)):
            body = json.dumps(body)
        try:
            connection.request(method, path, body, {"X-Token": self.token, **(headers or {})})
            return Answer(connection.getresponse())
        finally:
            if own:
                connection.close()

    def get(self, path, **headers):
        return self.ask("GET", "/api/v1" + path, headers=headers)

    def post(self, path, body=None):
        return self.ask("POST", "/api/v1" + path, {} if body is None else body)

    def put(self, path, body):
        return self.ask("PUT", "/api/v1" + path, body)

    def raw(self, data, timeout=120):
        """Sends bytes as they are, and gives back all that comes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as connection:
            connection.sendall(data)
            received = b""
            while piece := connection.recv(65536):
                received += piece
            return received

    def source(self, path):
        answer = self.post("/sources", {"path": str(path)})
        assert answer.status == 201, answer.body
        return answer.json()["id"]

    def compare(self, a, b=None, **more):
        """A finished session on two paths."""
        body = {"a": [self.source(a)], "b": [self.source(b)] if b else [], **more}
        answer = self.post("/sessions", body)
        assert answer.status == 201, answer.body
        session = answer.json()["id"]
        self.wait(session)
        return session

    def wait(self, session, seconds=300):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            state = self.get(f"/sessions/{session}").json()
            if state["state"] in ("done", "failed", "cancelled", "stale"):
                return state
            time.sleep(0.02)
        raise TimeoutError(state)

    def rows(self, session, since=""):
        answer = self.get(f"/sessions/{session}/pairs?since={since}", Accept="application/json")
        assert answer.status == 200, answer.body
        return answer.json()


def columns(data):
    """Reads the column format: header, and name -> list."""
    assert data[:4] == b"TDBC"
    size = struct.unpack_from("<I", data, 4)[0]
    header = json.loads(data[8:8 + size])
    start, table = 8 + size, {}
    assert start % 8 == 0
    for column in header["columns"]:
        assert column["offset"] % 8 == 0
        at, n = start + column["offset"], header["n"]
        if column["type"] == "str":
            offsets = struct.unpack_from(f"<{n + 1}I", data, at)
            text = data[at + 4 * (n + 1):at + column["bytes"]]
            table[column["name"]] = [text[a:b].decode() for a, b in zip(offsets, offsets[1:])]
        else:
            layout = f"<{n}{TYPES[column['type']]}"
            table[column["name"]] = list(struct.unpack_from(layout, data, at))
    return header, table


def write_safetensors(path, tensors):
    """{name: (shape, values)} as f32."""
    header, data = {}, b""
    for name, (shape, values) in tensors.items():
        values = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(values)]}
        data += values
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


class ServerTest(unittest.TestCase):
    """One server for all tests of a class, with a folder of files beneath its root."""

    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name).resolve()
        cls.files = cls.folder / "files"
        cls.files.mkdir()
        write_safetensors(cls.files / "a.safetensors", {
            "w": ([2, 3, 4], [float(i) for i in range(24)]), "alone_a": ([2], [1, 2]),
            "nan": ([3], [1, math.nan, 3]), "scalar": ([], [7]), "empty": ([0, 4], [])})
        write_safetensors(cls.files / "b.safetensors", {
            "w": ([2, 3, 4], [float(i) + (100 if i == 17 else 0) for i in range(24)]),
            "nan": ([3], [1, math.nan, 4]), "scalar": ([], [7]), "empty": ([0, 4], [])})
        cls.server = Server(cls.folder / "state", "--root", cls.files, "--root", DEMO)

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()
        cls.temporary.cleanup()

    def session(self):
        return self.server.compare(self.files / "a.safetensors", self.files / "b.safetensors")

    def row(self, session, name):
        rows = self.server.rows(session)["rows"]
        return next(row for row in rows if name in (row["nameA"], row["nameB"]))

    def pair(self, name, path="", session=None):
        session = session or self.session()
        return f"/sessions/{session}/pairs/{self.row(session, name)['id']}{path}"
