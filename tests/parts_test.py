#!/usr/bin/env python3
"""A comparison in parts gives the report of one process, byte for byte, and bad parts are named.

$TENSORDIFF says where the program is.
"""

import os
import pathlib
import random
import subprocess
import tempfile
import unittest

from serving import write_safetensors

HERE = pathlib.Path(__file__).resolve().parent
DATA = HERE / "data"
A, B = DATA / "parity" / "reference.zip", DATA / "parity" / "constant_scale.tgz"
PROGRAM = str(pathlib.Path(os.environ.get("TENSORDIFF", "build/tensordiff")).resolve())
OUTPUTS = ("text", "stats", "json", "yaml", "report", "csv", "markdown", "html", "junit")


def tensordiff(*arguments, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=300, check=False, **options)


class Parts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def run_parts(self, count, *arguments):
        for part in range(1, count + 1):
            done = tensordiff(*arguments, "--part", f"{part}/{count}", cwd=self.folder)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout, "")
        return sorted(self.folder.glob("*.tdpart"))

    def assert_same(self, count, *arguments, outputs=("text", "report")):
        """Whether `count` parts give what one process gives."""
        for old in self.folder.glob("*.tdpart"):
            old.unlink()
        parts = self.run_parts(count, *arguments)
        self.assertEqual(len(parts), count)
        for output in outputs:
            whole = tensordiff(*arguments, "-o", output, cwd=self.folder)
            merged = tensordiff("merge", *parts, "-o", output, cwd=self.folder)
            self.assertEqual(merged.stdout, whole.stdout, (count, output, merged.stderr))
            self.assertEqual(merged.returncode, whole.returncode)
            self.assertIn(merged.returncode, (0, 1), merged.stderr)

    def large_pair(self):
        """Tensors that are split, an empty one, and some that are not in both."""
        chance = random.Random(25)
        a = [chance.gauss(0, 1) for _ in range(2_400_000)]
        b = [value + 1e-3 * (i % 7 == 0) for i, value in enumerate(a)]
        b[2_200_000] = float("nan")
        small = [chance.gauss(0, 1) for _ in range(4096)]
        for name, large, scale in (("a", a, 1), ("b", b, 1.25)):
            write_safetensors(self.folder / f"{name}.safetensors", {
                "model.embed_tokens.weight": ([2400, 1000], large),
                "model.layers.0.mlp.up_proj.weight":
                    ([64, 64], [scale * value for value in small]),
                "model.layers.0.mlp.down_proj.weight": ([64, 64], small),
                "empty": ([0, 4], []),
                f"only_{name}": ([1], [1.0]),
            })
        return self.folder / "a.safetensors", self.folder / "b.safetensors"

    def test_give_the_report_of_one_process_in_every_output(self):
        self.assert_same(3, A, B, outputs=OUTPUTS)

    def test_may_be_one_or_more_than_there_are_pairs(self):
        self.assert_same(1, A, B)
        self.assert_same(60, A, B)

    def test_split_large_tensors(self):
        a, b = self.large_pair()
        for count in (2, 5):
            self.assert_same(count, a, b)

    def test_use_the_options_of_the_parts(self):
        self.assert_same(2, A, B, "--no-diagnose", "--atol", "0.5")
        self.assert_same(2, A, B, "--ignore-keys-regex", "mlp", "--no-equal-nan", "--explain")
        self.assert_same(2, A, B, "--shape-only")
        self.assert_same(2, A, "--single")

    def test_cover_every_format_of_the_tests(self):
        for pair in (("formats/pair_f32_a.pth", "formats/pair_f32_b.pth"),):
            self.assert_same(2, *(DATA / name for name in pair))

    def test_may_be_given_as_a_folder(self):
        self.run_parts(2, A, B)
        self.assertEqual(tensordiff("merge", self.folder).stdout, tensordiff(A, B).stdout)

    def test_of_the_job_are_numbered_by_its_variables(self):
        for rank in range(2):
            done = tensordiff(A, B, "--part", "auto", cwd=self.folder,
                              env={**os.environ, "SLURM_PROCID": str(rank), "SLURM_NTASKS": "2"})
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(tensordiff("merge", self.folder).stdout, tensordiff(A, B).stdout)

    def fails(self, parts, words):
        done = tensordiff("merge", *parts, cwd=self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn(words, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_that_are_missing_torn_foreign_or_twice_are_named(self):
        parts = self.run_parts(3, A, B)
        self.fails([parts[0], parts[2]], "part 2 of 3 is missing: run it again with --part 2/3")
        self.fails([*parts, parts[1]], "part-2-of-3.tdpart: part 2 of 3, as is")
        whole = parts[1].read_bytes()
        parts[1].write_bytes(whole[:-100])
        self.fails(parts, "part-2-of-3.tdpart: damaged")
        # Doing it again alone is enough.
        tensordiff(A, B, "--part", "2/3", cwd=self.folder)
        self.assertEqual(parts[1].read_bytes(), whole)
        self.assertEqual(tensordiff("merge", *parts).stdout, tensordiff(A, B).stdout)
        tensordiff(A, A, "--part", "2/3", cwd=self.folder)
        self.fails(parts, "part-2-of-3.tdpart: part of another comparison")

    def test_of_inputs_that_changed_are_refused(self):
        for name, value in (("a", 1.0), ("b", 2.0)):
            write_safetensors(self.folder / name, {"w": ([64], [value] * 64)})
        parts = self.run_parts(2, "a", "b")
        write_safetensors(self.folder / "b", {"w": ([64], [3.0] * 64)})
        self.fails(parts, "the inputs are not those that the parts were made of")

    def test_never_run_a_program(self):
        script = self.folder / "matcher"
        script.write_text(f"#!/bin/sh\ntouch {self.folder}/ran\n")
        script.chmod(0o755)
        parts = self.run_parts(1, A, A, "--match", f"exec:{script},exact")
        (self.folder / "ran").unlink()
        self.fails(parts, "merge runs none")
        self.assertFalse((self.folder / "ran").exists())

    def test_may_find_their_inputs_elsewhere(self):
        for name, value in (("a", 1.0), ("b", 2.0)):
            write_safetensors(self.folder / name, {"w": ([64], [value] * 64)})
        parts = self.run_parts(2, "a", "b")
        (self.folder / "b").rename(self.folder / "moved")
        self.fails(parts, "b")
        done = tensordiff("merge", *parts, "--b", "moved", cwd=self.folder)
        self.assertEqual(done.returncode, 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
