#!/usr/bin/env python3
"""Holds the output to what diffai should print for its own fixtures, where they are there.

$TENSORDIFF says where the program is. The fixtures are another project's and not part of this one:
without ../shared/corpus the test is skipped.
"""

import json
import math
import os
import pathlib
import subprocess
import tempfile
import unittest

FIXTURES = (pathlib.Path(__file__).resolve().parent.parent.parent
            / "shared" / "corpus" / "kako-jun__diffai")
PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")


def tensordiff(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=60)


def pairs():
    """(old, new, name) of each pair that has an expected output."""
    for path in sorted((FIXTURES / "expected").glob("*.v0.3.tensors.json")):
        name = path.name.removesuffix(".v0.3.tensors.json")
        old, new = name.split("__")
        yield FIXTURES / f"{old}.safetensors", FIXTURES / f"{new}.safetensors", name


def by_tag(changes):
    return {(tag, body[0]): body[1:] for change in changes for tag, body in change.items()}


@unittest.skipUnless(FIXTURES.is_dir(), "there are no fixtures of diffai here")
class Diffai(unittest.TestCase):
    def test_stats_lines_are_the_same(self):
        for old, new, name in pairs():
            with self.subTest(name):
                expected = (FIXTURES / "expected" / f"{name}.v0.3.cli.txt").read_text()
                result = tensordiff(old, new, "--stats")
                self.assertEqual(result.returncode, 1, result.stderr)
                self.assertEqual(sorted(result.stdout.splitlines()), sorted(expected.splitlines()))

    def test_json_entries_are_the_same(self):
        for old, new, name in pairs():
            with self.subTest(name):
                path = FIXTURES / "expected" / f"{name}.v0.3.tensors.json"
                expected = by_tag(json.loads(path.read_text()))
                actual = by_tag(json.loads(tensordiff(old, new, "--output", "json").stdout))
                self.assertEqual(set(actual), set(expected))
                for key, sides in expected.items():
                    for ours, theirs in zip(actual[key], sides, strict=True):
                        self.same_side(ours, theirs, key)

    def same_side(self, ours, theirs, key):
        if isinstance(theirs, list):  # A shape.
            self.assertEqual(ours, theirs, key)
            return
        self.assertEqual(list(ours), list(theirs), key)
        for field, value in theirs.items():
            if field in ("mean", "std"):
                # Sums of floats: the order of adding shows in the last digits of a double.
                self.assertTrue(math.isclose(ours[field], value, rel_tol=1e-9, abs_tol=1e-12),
                                (key, field, ours[field], value))
            else:
                self.assertEqual(ours[field], value, (key, field))

    def test_a_model_is_the_same_as_itself(self):
        for old, _, name in pairs():
            with self.subTest(name):
                result = tensordiff(old, old, "--output", "json")
                self.assertEqual((result.returncode, result.stdout), (0, "[]\n"), result.stderr)

    def test_sees_what_mean_and_std_do_not(self):
        """Two elements change places: every statistic stays what it is."""
        source = FIXTURES / "simple_base.safetensors"
        data = bytearray(source.read_bytes())
        header = json.loads(data[8:8 + int.from_bytes(data[:8], "little")])
        first = 8 + int.from_bytes(data[:8], "little") + header["fc1.weight"]["data_offsets"][0]
        data[first:first + 8] = data[first + 4:first + 8] + data[first:first + 4]
        with tempfile.NamedTemporaryFile(suffix=".safetensors") as changed:
            changed.write(data)
            changed.flush()
            changes = by_tag(json.loads(tensordiff(source, changed.name, "-o", "json").stdout))
        self.assertEqual(list(changes), [("TensorStatsChanged", "fc1.weight")])
        old, new = changes["TensorStatsChanged", "fc1.weight"]
        self.assertTrue(math.isclose(old["std"], new["std"], rel_tol=1e-12))

    def test_check_is_an_option_too(self):
        self.assertEqual(tensordiff("--check", FIXTURES / "simple_base.safetensors").returncode, 0)


if __name__ == "__main__":
    unittest.main()
