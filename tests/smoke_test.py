#!/usr/bin/env python3
"""Runs the program as users do. $TENSORDIFF says where it is."""

import fcntl
import json
import os
import pathlib
import pty
import resource
import struct
import subprocess
import tempfile
import termios
import unittest

DEMO = pathlib.Path(__file__).resolve().parent.parent / "demo"
A, B = DEMO / "reference.zip", DEMO / "constant_scale.tgz"
PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")


def tensordiff(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60, **options)


def write_zeros(path, elements):
    """A safetensors file of one f32 tensor; its bytes are a hole that takes no place on disk."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [elements],
                               "data_offsets": [0, 4 * elements]}}).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + 4 * elements)


class Smoke(unittest.TestCase):
    def test_says_its_version(self):
        result = tensordiff("--version")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stdout, r"^tensordiff \d+\.\d+\.\d+")

    def test_a_file_is_the_same_as_itself(self):
        result = tensordiff(A, A, "-o", "report")
        self.assertEqual(result.returncode, 0, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["summary"]["verdict"], "same")
        self.assertEqual(report["summary"]["identical"], len(report["pairs"]))

    def test_finds_where_the_demo_goes_wrong(self):
        result = tensordiff(A, B, "-o", "report")
        self.assertEqual(result.returncode, 1, result.stderr)
        report = json.loads(result.stdout)
        self.assertEqual(report["summary"]["pairs"], 39)
        self.assertEqual(report["only_a"] + report["only_b"], [])
        first = report["first_divergence"]
        self.assertEqual((first["layer"], first["stage"]), (1, "post_attn"))

    def test_an_answer_fits_a_terminal_and_is_whole_in_a_pipe(self):
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
        child = subprocess.Popen([PROGRAM, str(A), str(B), "--color", "never"], stdout=slave,
                                 env=environment)
        os.close(slave)
        shown = b""
        while True:
            try:
                part = os.read(master, 65536)
            except OSError:  # The other end was closed.
                break
            if not part:
                break
            shown += part
        os.close(master)
        self.assertEqual(child.wait(60), 1)
        lines = shown.decode().replace("\r\n", "\n").splitlines()
        self.assertLessEqual(max(map(len, lines)), 80)
        evidence = next(i for i, line in enumerate(lines) if line.startswith("evidence"))
        self.assertRegex(lines[evidence + 1], "^ {11}[a-z]")
        piped = tensordiff(A, B, env=environment).stdout.splitlines()
        whole = next(line for line in piped if line.startswith("evidence"))
        self.assertGreater(len(whole), 80)

    def test_every_tensor_appears_exactly_once(self):
        report = json.loads(tensordiff(A, B, "-o", "report").stdout)
        for side in "ab":
            names = [pair[f"name_{side}"] for pair in report["pairs"]]
            names += [tensor["name"] for tensor in report[f"only_{side}"]]
            self.assertEqual(len(names), report[side]["tensors"])
            self.assertEqual(len(set(names)), len(names))

    def test_the_report_does_not_depend_on_the_threads(self):
        one, many = (tensordiff(A, B, "-o", "report", "--threads", n).stdout for n in (1, 5))
        self.assertTrue(one)
        self.assertEqual(one, many)

    @unittest.skipIf(os.environ.get("TENSORDIFF_SANITIZE"), "sanitizers need memory of their own")
    def test_memory_does_not_grow_with_the_tensors(self):
        def limit_memory():
            resource.setrlimit(resource.RLIMIT_DATA, (256 << 20, 256 << 20))

        with tempfile.TemporaryDirectory() as folder:
            a, b = f"{folder}/a.safetensors", f"{folder}/b.safetensors"
            for path in (a, b):
                write_zeros(path, elements=128 << 20)  # 512 MiB
            with open(b, "r+b") as file:
                file.seek(-4, os.SEEK_END)
                file.write(struct.pack("<f", 1))
            result = tensordiff(a, b, "-o", "report", preexec_fn=limit_memory)
        self.assertEqual(result.returncode, 1, result.stderr)
        diff = json.loads(result.stdout)["pairs"][0]["diff"]
        self.assertEqual((diff["exceeding"], diff["max_abs_at"]), (1, [(128 << 20) - 1]))

    def test_an_unreadable_file_is_trouble_and_is_named(self):
        with tempfile.NamedTemporaryFile(suffix=".pt") as junk:
            junk.write(b"no tensors here")
            junk.flush()
            result = tensordiff(A, junk.name)
        self.assertEqual(result.returncode, 2)
        self.assertEqual(result.stdout, "")
        self.assertIn(os.path.basename(junk.name), result.stderr)

    def test_bad_usage_is_trouble(self):
        self.assertEqual(tensordiff("--no-such-option").returncode, 2)


if __name__ == "__main__":
    unittest.main()
