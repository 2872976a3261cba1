#!/usr/bin/env python3
"""Where the system fails the program: streams closed, disks full, folders missing. Each is a clear
message and a documented exit status. $TENSORDIFF says where the program is."""

import os
import pathlib
import subprocess
import tempfile
import unittest

DATA = pathlib.Path(__file__).resolve().parent / "data" / "parity"
A, B = DATA / "reference.zip", DATA / "constant_scale.tgz"
PROGRAM = str(pathlib.Path(os.environ.get("TENSORDIFF", "build/tensordiff")).resolve())


def tensordiff(*arguments, close=(), environment=None, stdout=subprocess.PIPE):
    def close_streams():
        for stream in close:
            os.close(stream)

    return subprocess.run([PROGRAM, *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE,
                          stdin=subprocess.DEVNULL, text=True, timeout=60, env=environment,
                          preexec_fn=close_streams)


class Faults(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def test_a_closed_stdout_is_trouble(self):
        for arguments in ((A, A), (A, B, "-o", "report"), ("--help",), ("--version",),
                          ("compare", "--help"), ("show", A), ("check", A), ("config",)):
            for closed in ((1,), (0, 1)):
                result = tensordiff(*arguments, close=closed)
                self.assertEqual(result.returncode, 2, arguments)
                self.assertIn("tensordiff: stdout: writing failed", result.stderr)

    def test_a_closed_stderr_is_no_trouble(self):
        self.assertEqual(tensordiff(A, A, close=(2,)).returncode, 0)
        self.assertEqual(tensordiff(A, B, close=(0, 2)).returncode, 1)
        for arguments in ((A, "/no/such/file"), ("--no-such-option",), (), (A, B, "--rtol", "x")):
            self.assertEqual(tensordiff(*arguments, close=(2,)).returncode, 2, arguments)
            self.assertEqual(tensordiff(*arguments, close=(0, 1, 2)).returncode, 2, arguments)

    def test_no_message_ends_in_the_result(self):
        out = self.folder / "out.txt"
        self.assertEqual(tensordiff(A, B, "--brief", "--out", out, close=(0, 1, 2)).returncode, 1)
        self.assertTrue(out.read_text().startswith("DIFFERENT  39 pairs"))

    def test_a_full_disk_is_trouble(self):
        with open("/dev/full", "w") as full:
            for arguments in ((A, A), ("--help",), ("--version",), ("compare", "--help")):
                result = tensordiff(*arguments, stdout=full)
                self.assertEqual(result.returncode, 2, arguments)
                self.assertIn("No space left on device", result.stderr)
        for option in ("--out", "--save-pairs"):
            result = tensordiff(A, A, option, "/dev/full")
            self.assertEqual(result.returncode, 2)
            self.assertIn("/dev/full: writing failed, the output is incomplete: No space left",
                          result.stderr)

    def test_a_folder_that_cannot_be_written_to_is_named(self):
        closed = self.folder / "closed"
        closed.mkdir(0o500)
        where = [self.folder / "nosuch" / "out"]
        if os.geteuid() != 0:  # Whom no mode stops.
            where.append(closed / "out")
        for path in where:
            for option in ("--out", "--save-pairs"):
                result = tensordiff(A, A, option, path)
                self.assertEqual(result.returncode, 2)
                self.assertIn(f"{path}: cannot write it", result.stderr)
            result = tensordiff("batch", self.folder, self.folder, "--resume", path)
            self.assertEqual(result.returncode, 2)

    def test_a_missing_tmpdir_is_named(self):
        environment = {**os.environ, "TMPDIR": str(self.folder / "nosuch")}
        result = tensordiff(A, B, environment=environment)
        self.assertEqual(result.returncode, 2)
        self.assertIn(f"cannot make a temporary file in '{self.folder / 'nosuch'}'",
                      result.stderr + result.stdout)

    def test_nothing_needs_a_home(self):
        bare = {"PATH": os.environ["PATH"]}
        for arguments, status in (((A, B), 1), ((A, A), 0), (("show", A), 0), (("config",), 0)):
            self.assertEqual(tensordiff(*arguments, environment=bare).returncode, status)
        result = tensordiff("config", "untrust", environment=bare)
        self.assertEqual(result.returncode, 2)
        self.assertIn("set XDG_STATE_HOME or HOME", result.stderr)


if __name__ == "__main__":
    unittest.main()
