#!/usr/bin/env python3
"""64 clients that open, compare, slice, search, upload, cancel and die at random, against a server
under a memory limit that is killed ten times: ./dev soak [SECONDS] [--seed N].

All of it stays on this machine (loopback) and ends by itself. It fails when an answer is a 5xx
other than 503 (too much at once) or 507 (disk full), when what a client was told is saved is not
there after a kill, or when memory grows after the warm-up.
"""

import argparse
import collections
import http.client
import pathlib
import random
import resource
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from serving import DEMO, Server, write_safetensors  # noqa: E402

CLIENTS = 64
KILLS = 10
SESSIONS_EACH = 2  # So many a client keeps; it removes the oldest.
MEMORY_LIMIT = 3 << 30  # Address space of the server: stacks and mapped files count too.
# The allocator keeps some of what was freed, more of it or less: growth is what exceeds this.
GROWTH_FACTOR, GROWTH_BYTES = 1.25, 48 << 20
ASKED_FOR = (503, 507)


class Saved:
    """What clients were told is kept. Uncertain: changed when the server was killed."""

    def __init__(self):
        self.lock = threading.Lock()
        self.sessions = {}  # id -> (verdict, pairs)
        self.notes = {}  # (session, row) -> texts, any of which may be there
        self.chunks = collections.defaultdict(set)  # upload -> chunks

    def forget_session(self, session):
        with self.lock:
            self.sessions.pop(session, None)
            for key in [key for key in self.notes if key[0] == session]:
                del self.notes[key]

    def forget_upload(self, upload):
        with self.lock:
            self.chunks.pop(upload, None)

    def losses(self, server):
        """Sentences about what is not there any more."""
        lost = []
        listed = {each["id"]: each for each in server.get("/sessions").json()["sessions"]}
        for session, (verdict, pairs) in self.sessions.items():
            found = listed.get(session)
            if not found or (found["state"], found["verdict"], found["pairs"]) != (
                    "done", verdict, pairs):
                lost.append(f"session {session}: was {verdict}, {pairs} pairs; now {found}")
        for (session, row), texts in self.notes.items():
            answer = server.get(f"/sessions/{session}/pairs/{row}")
            # A pair without a note has null there.
            note = answer.json().get("note") or "" if answer.status == 200 else answer.status
            if note not in texts:
                lost.append(f"note of {session}/{row}: {note!r} is none of {texts}")
        for upload, chunks in self.chunks.items():
            answer = server.get(f"/uploads/{upload}")
            ranges = answer.json()["received"] if answer.status == 200 else []
            there = {k for first, end in ranges for k in range(first, end)}
            if not chunks <= there:
                lost.append(f"upload {upload}: chunks {chunks} were taken, {there} are there")
        return lost


class Soak:
    def __init__(self, folder, seconds, seed):
        self.folder, self.seconds, self.seed = folder, seconds, seed
        self.files = folder / "files"
        self.files.mkdir()
        self.write_files()
        self.saved = Saved()
        self.statuses = collections.Counter()
        self.ends = collections.Counter()  # Of comparisons.
        self.faults = []
        self.memory = []  # (seconds since the last start, bytes)
        self.running = threading.Event()  # Clients may ask.
        self.over = threading.Event()
        self.busy = 0  # Clients in the middle of something.
        self.changed = threading.Condition()
        self.server = None

    def write_files(self):
        rng = random.Random(self.seed)
        for i in range(4):
            for side in "ab":
                tensors = {}
                for layer in range(24):
                    values = [rng.gauss(0, 1) for _ in range(4096)]
                    if side == "b" and layer == i:
                        values[7] += 1
                    tensors[f"layers.{layer}.mlp.weight"] = ([64, 64], values)
                write_safetensors(self.files / f"{side}{i}.safetensors", tensors)
        self.paths = [(self.files / f"a{i}.safetensors", self.files / f"b{i}.safetensors")
                      for i in range(4)] + [(DEMO / "reference.zip", DEMO / "constant_scale.tgz")]
        # More than the memory limit lets anybody map: opening it fails, and nothing else does.
        header = b'{"w":{"dtype":"F32","shape":[1073741824],"data_offsets":[0,4294967296]}}'
        with open(self.files / "huge.safetensors", "wb") as file:
            file.write(struct.pack("<Q", len(header)) + header)
            file.truncate(8 + len(header) + (4 << 30))

    def start(self, port=0):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
        self.server = Server(self.folder / "state", "--root", self.files, "--root", DEMO,
                             "--port", port, preexec_fn=limit)
        self.started = time.monotonic()

    # --- what the clients do ---

    def client(self, number):
        client = Client(self, random.Random(self.seed * 1000 + number))
        while not self.over.is_set():
            if not self.running.wait(0.1):
                continue
            with self.changed:
                self.busy += 1
            try:
                client.act()
            except (OSError, http.client.HTTPException):
                # Only while the server is down, else it has dropped somebody.
                if self.running.is_set() and self.server.process.poll() is not None:
                    self.faults.append(f"the server ended: {self.server.process.returncode}")
            except Exception as fault:  # Of this program: say it instead of ending one thread.
                self.faults.append(repr(fault))
            finally:
                with self.changed:
                    self.busy -= 1
                    self.changed.notify_all()

    # --- the whole ---

    def run(self):
        threads = [threading.Thread(target=self.client, args=(i,)) for i in range(CLIENTS)]
        self.start()
        self.running.set()
        for thread in threads:
            thread.start()
        try:
            begun = time.monotonic()
            # Kills in the first half; memory is watched in the second, which is long enough.
            for i in range(KILLS):
                self.work_until(begun + self.seconds / 2 * (i + 1) / KILLS)
                self.kill_and_check(i + 1)
            self.memory.clear()
            self.work_until(begun + self.seconds)
        finally:
            self.over.set()
            for thread in threads:
                thread.join()
        self.check_memory()
        self.server.process.terminate()
        if self.server.process.wait(timeout=120) != 0:
            self.faults.append(f"it ended with status {self.server.process.returncode}")

    def work_until(self, end):
        while time.monotonic() < end and not self.faults:
            time.sleep(0.25)
            status = pathlib.Path(f"/proc/{self.server.process.pid}/status")
            for line in status.read_text().splitlines():
                if line.startswith("RssAnon"):
                    age = time.monotonic() - self.started
                    self.memory.append((age, int(line.split()[1]) << 10))

    def kill_and_check(self, number):
        port = self.server.port
        self.running.clear()  # Nobody begins anything new; those under way meet the kill.
        self.server.kill()
        with self.changed:
            self.changed.wait_for(lambda: self.busy == 0)
        self.start(port)
        lost = self.saved.losses(self.server)
        self.faults += lost
        # Nobody remembers the others: their clients met the kill.
        for each in self.server.get("/sessions").json()["sessions"]:
            if each["id"] not in self.saved.sessions:
                self.server.ask("DELETE", f"/api/v1/sessions/{each['id']}")
        print(f"kill {number}: {len(self.saved.sessions)} sessions, {len(self.saved.notes)} notes, "
              f"{len(self.saved.chunks)} uploads checked, {len(lost)} lost", flush=True)
        self.running.set()

    def check_memory(self):
        last = self.memory[-1][0] if self.memory else 0
        thirds = [[size for age, size in self.memory if last * i / 3 <= age <= last * (i + 1) / 3]
                  for i in range(3)]
        if not all(thirds):
            self.faults.append("too short to tell whether memory grows")
            return
        warm, late = statistics.median(thirds[1]), statistics.median(thirds[2])
        print(f"memory: {warm / 2**20:.0f} MiB in the second third, {late / 2**20:.0f} MiB in the "
              f"last, at most {max(max(third) for third in thirds) / 2**20:.0f} MiB")
        if late > warm * GROWTH_FACTOR + GROWTH_BYTES:
            self.faults.append(f"memory grows: {warm} to {late} bytes")


class Client:
    def __init__(self, soak, rng):
        self.soak, self.rng, self.saved = soak, rng, soak.saved
        self.sessions = []  # Finished ones, with their number of rows.

    def ask(self, method, path, body=None, headers=None):
        answer = self.soak.server.ask(method, "/api/v1" + path, body, headers)
        self.soak.statuses[answer.status] += 1
        if answer.status >= 500 and answer.status not in ASKED_FOR:
            self.soak.faults.append(f"{method} {path}: {answer.status} {answer.body[:200]}")
        return answer

    def act(self):
        actions = [(self.compare, 4), (self.look, 12), (self.search, 4), (self.note, 4),
                   (self.upload, 2), (self.cancel, 2), (self.die, 3), (self.open_huge, 1),
                   (self.old_route, 1)]
        names, weights = zip(*actions)
        self.rng.choices(names, weights)[0]()

    def open_sources(self):
        sources = []
        for path in self.rng.choice(self.soak.paths):
            answer = self.ask("POST", "/sources", {"path": str(path)})
            if answer.status != 201:
                return None
            sources.append(answer.json()["id"])
        return sources

    def begin(self):
        sources = self.open_sources()
        if not sources:
            return None
        # Its sources may be removed by a client whose session was the last that used them: 400.
        answer = self.ask("POST", "/sessions", {"a": sources[:1], "b": sources[1:]})
        return answer.json() if answer.status == 201 else None

    def compare(self):
        while len(self.sessions) >= SESSIONS_EACH:
            self.remove(self.sessions.pop(0)[0])
        begun = self.begin()
        if not begun:
            return
        session = begun["id"]
        for _ in range(3000):
            answer = self.ask("GET", f"/sessions/{session}")
            state = answer.json()["state"] if answer.status == 200 else ""
            if answer.status == 404 or state in ("failed", "cancelled"):
                self.soak.ends[state or "removed"] += 1
                break
            if state in ("done", "stale"):
                summary = answer.json()["summary"]
                with self.saved.lock:
                    self.saved.sessions[session] = (summary["verdict"], summary["pairs"])
                self.sessions.append((session, summary["pairs"]))
                self.soak.ends["done"] += 1
                return
            time.sleep(0.05)
        self.remove(session)

    def remove(self, session):
        self.saved.forget_session(session)
        self.ask("DELETE", f"/sessions/{session}")

    def pair(self):
        if not self.sessions:
            return None
        session, rows = self.rng.choice(self.sessions)
        return session, self.rng.randrange(max(rows, 1))

    def look(self):
        chosen = self.pair()
        if not chosen:
            return self.ask("GET", self.rng.choice(["/health", "/sessions", "/fs"]))
        path = f"/sessions/{chosen[0]}/pairs"
        shape = self.ask("GET", f"{path}/{chosen[1]}")
        axes = len(shape.json().get("shape") or []) if shape.status == 200 else 2
        at = ",".join(["0"] * (axes - 2) + ["y", "x"][max(0, 2 - axes):])
        return self.ask("GET", self.rng.choice([
            path, f"{path}/{chosen[1]}/slice?at={at}", f"{path}/{chosen[1]}/pyramid?at={at}",
            f"{path}/{chosen[1]}/tile/d/0/0/0?at={at}", f"{path}/{chosen[1]}/element?flat=0",
            f"{path}/{chosen[1]}/slice?at=nonsense"]))

    def search(self):
        chosen = self.pair()
        if not chosen:
            return
        path = f"/sessions/{chosen[0]}/pairs/{chosen[1]}"
        self.ask("POST", f"{path}/find", {"in": "tol", "limit": 10})
        self.ask("GET", path + self.rng.choice(["/axes", "/histogram?of=d", "/worst?count=5"]))

    def note(self):
        chosen = self.pair()
        if not chosen:
            return
        text = f"{self.rng.random()}"
        # Until the answer comes, the old one or the new one may be there.
        with self.saved.lock:
            self.saved.notes.setdefault(chosen, {""}).add(text)
        answer = self.ask("PUT", f"/sessions/{chosen[0]}/pairs/{chosen[1]}/note", {"text": text})
        with self.saved.lock:
            if answer.status == 204 and chosen in self.saved.notes:
                self.saved.notes[chosen] = {text}

    def upload(self):
        data = pathlib.Path(self.soak.paths[0][0]).read_bytes()
        answer = self.ask("POST", "/uploads", {"name": "x.safetensors", "size": len(data)})
        if answer.status != 201:
            return
        upload = answer.json()["id"]
        if self.ask("PUT", f"/uploads/{upload}/0", data).status == 204:
            with self.saved.lock:
                self.saved.chunks[upload].add(0)
        if self.rng.random() < 0.5:
            self.saved.forget_upload(upload)
            self.ask("POST", f"/uploads/{upload}/complete")
        elif self.rng.random() < 0.9:
            self.saved.forget_upload(upload)
            self.ask("DELETE", f"/uploads/{upload}")

    def cancel(self):
        begun = self.begin()
        if not begun:
            return
        if begun["job"]:
            self.ask("DELETE", f"/jobs/{begun['job']}")
        self.remove(begun["id"])

    def die(self):
        """Sends a request or a part of it, and resets the connection."""
        request = (f"POST /api/v1/demo HTTP/1.1\r\nHost: {self.soak.server.host}\r\n"
                   f"X-Token: wrong\r\nContent-Length: 1000\r\n\r\n" + "x" * 500).encode()
        with socket.create_connection(("127.0.0.1", self.soak.server.port), timeout=60) as dying:
            dying.sendall(request[:self.rng.randrange(len(request))])
            dying.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def open_huge(self):
        self.ask("POST", "/sources", {"path": str(self.soak.files / "huge.safetensors")})

    def old_route(self):
        self.soak.server.ask("POST", "/get_tensor_values", {"match_index": 0})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("seconds", nargs="?", type=int, default=600)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10 ** 6))
    options = parser.parse_args()
    if not 20 <= options.seconds <= 3600:
        parser.error("between 20 and 3600 seconds")
    print(f"seed {options.seed}: {CLIENTS} clients for {options.seconds} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(pathlib.Path(folder).resolve(), options.seconds, options.seed)
        try:
            soak.run()
        finally:
            if soak.server:
                soak.server.kill()
    answers = ", ".join(f"{count} × {status}" for status, count in sorted(soak.statuses.items()))
    print(f"{sum(soak.statuses.values())} answers: {answers}")
    print("comparisons:", ", ".join(f"{count} {state}" for state, count in soak.ends.items()))
    print(*soak.faults[:20], sep="\n")
    print(f"{len(soak.faults)} faults" if soak.faults else "passed")
    return 1 if soak.faults else 0


if __name__ == "__main__":
    sys.exit(main())
