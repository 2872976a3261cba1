#!/usr/bin/env python3
"""The server where things are missing, full, damaged or taken: a clear message, a documented exit
status, nothing lost, nobody let in."""

import os
import pathlib
import resource
import signal
import stat
import subprocess
import tempfile
import time
import unittest

from serving import DEMO, PROGRAM, Server, write_safetensors

A, B = DEMO / "reference.zip", DEMO / "constant_scale.tgz"


class FaultTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        self.state = self.folder / "state"

    def start(self, *arguments, **options):
        server = Server(self.state, "--root", DEMO, "--root", self.folder, *arguments, **options)
        self.addCleanup(server.stop)
        return server

    def refused(self, *arguments, **environment):
        """What a server that cannot start says."""
        command = [PROGRAM, "serve", "--port", "0", "--no-open", "--root", DEMO, *arguments]
        unset = {name: value for name, value in {**os.environ, **environment}.items()
                 if value is not None}
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=unset,
                              timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
        self.assertTrue(done.stderr.startswith("tensordiff: "), done.stderr)
        return done.stderr


class Starting(FaultTest):
    def run_briefly(self, *arguments, **environment):
        """What a server says on stderr, and its exit status when it is told to stop."""
        unset = {name: value for name, value in {**os.environ, **environment}.items()
                 if value is not None}
        command = [PROGRAM, "serve", "--port", "0", "--no-open", "--root", DEMO, *arguments]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=unset) as process:
            self.assertTrue(process.stdout.readline().startswith("http://"))
            process.terminate()
            process.stdout.read()
            said = process.stderr.read()
            return said, process.wait(timeout=300)

    def test_no_home(self):
        said, status = self.run_briefly(HOME=None, XDG_STATE_HOME=None)
        self.assertIn("sessions end with this server: neither XDG_STATE_HOME nor HOME", said)
        self.assertEqual(status, 0)

    def test_a_home_that_cannot_be_written(self):
        said, status = self.run_briefly(HOME="/proc/none", XDG_STATE_HOME=None)
        self.assertIn("sessions end with this server: cannot keep sessions in '/proc/none", said)
        self.assertEqual(status, 0)

    def test_no_folder_for_temporary_files(self):
        said = self.refused(HOME=None, XDG_STATE_HOME=None, TMPDIR=str(self.folder / "none"))
        self.assertIn("TMPDIR", said)

    def test_a_state_that_cannot_be_written(self):
        self.assertIn("cannot keep sessions in '/proc/none/x'",
                      self.refused("--state", "/proc/none/x"))
        (self.folder / "file").write_text("x")
        self.assertIn("is not a folder", self.refused("--state", self.folder / "file"))

    def test_a_folder_that_everybody_may_write_to(self):
        self.state.mkdir()
        self.state.chmod(0o777)
        self.assertIn("everybody may write there", self.refused("--state", self.state))
        self.assertEqual(stat.S_IMODE(self.state.stat().st_mode), 0o777)

    def test_a_damaged_database(self):
        self.state.mkdir(mode=0o700)
        (self.state / "sessions.db").write_bytes(b"x" * 10_000)
        said = self.refused("--state", self.state)
        self.assertIn("sessions.db: the database of sessions is damaged", said)
        self.assertIn("move it away", said)

    def test_a_database_damaged_in_the_middle(self):
        server = self.start()
        session = server.compare(A, B)
        server.stop()
        path = self.state / "sessions.db"
        data = bytearray(path.read_bytes())
        self.assertGreater(len(data), 3 * 4096)
        data[2 * 4096:] = b"\xff" * (len(data) - 2 * 4096)
        path.write_bytes(data)
        try:
            server = self.start()
        except RuntimeError as refused:
            self.assertIn("damaged", str(refused))
            return
        # What is left of it is shown, and what is gone is said so; nothing is overwritten.
        for answer in (server.get("/sessions"), server.get(f"/sessions/{session}")):
            self.assertIn(answer.status, (200, 404, 507), answer.body)
        self.assertEqual(server.get("/health").status, 200)

    def test_two_servers_on_one_state(self):
        first = self.start()
        session = first.compare(A, B)
        said, status = self.run_briefly("--state", self.state)
        self.assertIn(f"sessions end with this server: another server has '{self.state}'", said)
        self.assertEqual(status, 0)
        self.assertEqual(first.get(f"/sessions/{session}").json()["state"], "done")


class Full(FaultTest):
    def test_a_disk_that_is_full_is_507_and_the_server_goes_on(self):
        def no_large_files():
            # Writes beyond this fail as on a full disk.
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (600_000, 600_000))
        server = self.start(preexec_fn=no_large_files, restore_signals=False)
        session = server.compare(A, B)
        statuses = set()
        for row in range(39):
            for _ in range(4):
                note = {"text": "x" * 10_000}
                statuses.add(server.put(f"/sessions/{session}/pairs/{row}/note", note).status)
        self.assertEqual(statuses, {204, 507})
        self.assertEqual(server.get("/health").status, 200)
        self.assertEqual(server.get(f"/sessions/{session}").json()["state"], "done")


class Unfinished(FaultTest):
    def write_large(self, name, elements):
        path = self.folder / name
        write_safetensors(path, {"w": ([0], [])})
        header = ('{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}'
                  % (elements, 4 * elements)).encode()
        with open(path, "wb") as file:
            file.write(len(header).to_bytes(8, "little") + header)
            file.truncate(8 + len(header) + 4 * elements)
        return path

    def listed(self, server, session):
        return next(each["state"] for each in server.get("/sessions").json()["sessions"]
                    if each["id"] == session)

    def test_is_not_listed_as_done_and_is_not_tried_for_ever(self):
        paths = [self.write_large(name, 4 << 30) for name in ("a.safetensors", "b.safetensors")]
        server = self.start()
        sources = [server.source(path) for path in paths]
        session = server.post("/sessions", {"a": sources[:1], "b": sources[1:]}).json()["id"]
        while not server.rows(session)["rows"]:
            time.sleep(0.01)
        server.kill()

        server = self.start()
        self.assertEqual(self.listed(server, session), "unfinished")
        self.assertIsNotNone(server.get(f"/sessions/{session}").json()["job"])
        while not server.rows(session)["rows"]:
            time.sleep(0.01)
        server.kill()

        # Twice it was under way when the server was killed: not a third time by itself.
        server = self.start()
        self.assertEqual(self.listed(server, session), "failed")
        state = server.get(f"/sessions/{session}").json()
        self.assertEqual((state["state"], state["job"]), ("failed", None))
        self.assertIn("reload to compare again", state["error"])
        self.assertEqual(server.post(f"/sessions/{session}/reload").status, 202)
        server.stop()

        # Told to stop, it goes on with the next server.
        server = self.start()
        self.assertEqual(self.listed(server, session), "unfinished")
        begun = server.get(f"/sessions/{session}").json()
        server.ask("DELETE", f"/api/v1/jobs/{begun['job']}")
        self.assertEqual(server.wait(session)["state"], "cancelled")
        server.kill()
        server = self.start()
        self.assertEqual(self.listed(server, session), "cancelled")
        self.assertIsNone(server.get(f"/sessions/{session}").json()["job"])


class Token(FaultTest):
    def test_lasts_over_a_restart_and_is_for_nobody_else(self):
        server = self.start()
        token, path = server.token, self.state / "token"
        self.assertEqual(path.read_text(), token)
        self.assertEqual(stat.S_IMODE(path.stat().st_mode), 0o600)
        server.kill()
        self.assertEqual(self.start().token, token)

    def test_guards_the_earlier_routes_too(self):
        server = self.start()
        for path in ("/upload", "/get_tensor_values", "/reorder_matches", "/regroup_matches",
                     "/manual_pair"):
            answer = server.ask("POST", path, {"match_index": 0}, headers={"X-Token": ""})
            self.assertEqual(answer.status, 401, path)
        for headers, query in (({}, ""), ({"X-Token": ""}, f"?token={server.token}")):
            answer = server.ask("POST", f"/get_tensor_values{query}", {"match_index": 0},
                                headers=headers)
            self.assertIn("No data loaded", answer.json()["error"])

    def test_legacy_open_is_said_aloud(self):
        server = self.start("--legacy-open")
        answer = server.ask("POST", "/get_tensor_values", {}, headers={"X-Token": ""})
        self.assertIn("No data loaded", answer.json()["error"])
        self.assertEqual(server.ask("GET", "/api/v1/health", headers={"X-Token": ""}).status, 401)
        server.process.terminate()
        self.assertIn("--legacy-open", server.process.stderr.read())

    def test_is_on_no_command_line(self):
        tools = self.folder / "tools"
        tools.mkdir()
        opener = tools / "xdg-open"
        opener.write_text(f'#!/bin/sh\necho "$@" > {self.folder}/seen.new\n'
                          f'mv {self.folder}/seen.new {self.folder}/seen\n')
        opener.chmod(0o755)
        environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "BROWSER": "x"}
        command = [PROGRAM, "serve", "--port", "0", "--state", self.state, "--root", DEMO]
        with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, env=environment) as process:
            url = process.stdout.readline().strip()
            token = (self.state / "token").read_text()
            self.assertIn(token, url)
            for _ in range(3000):
                if (self.folder / "seen").exists():
                    break
                time.sleep(0.01)
            page = pathlib.Path((self.folder / "seen").read_text().strip())
            self.assertNotIn(token, str(page))
            self.assertEqual(stat.S_IMODE(page.stat().st_mode), 0o600)
            self.assertIn(f"url={url}", page.read_text())
            process.terminate()
            process.wait(timeout=300)
            self.assertFalse(page.exists())
            process.stdout.read()
            process.stderr.read()


class Answers(FaultTest):
    def test_a_wrong_method_says_which_are_right(self):
        server = self.start()
        for method, path, allow in (("DELETE", "/api/v1/health", "GET"),
                                    ("PUT", "/api/v1/sessions/x", "GET, PATCH, DELETE"),
                                    ("GET", "/upload", "POST"), ("POST", "/", "GET, HEAD")):
            answer = server.ask(method, path)
            self.assertEqual((answer.status, answer.headers["Allow"]), (405, allow), path)

    def test_every_answer_carries_the_security_headers(self):
        server = self.start()
        for data in (b"nonsense\r\n\r\n",
                     b"GET / HTTP/1.1\r\nHost: %s\r\nX: %s\r\n\r\n" % (server.host.encode(),
                                                                       b"x" * 20_000),
                     b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n",
                     b"GET /api/v1/health HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
                     % server.host.encode()):
            answer = server.raw(data)
            for header in (b"Content-Security-Policy", b"nosniff", b"X-Frame-Options: DENY"):
                self.assertIn(header, answer, data[:40])


if __name__ == "__main__":
    unittest.main()
