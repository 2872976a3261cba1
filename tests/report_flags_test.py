#!/usr/bin/env python3
"""The flags that shape a report of analyses: each on a planted pair, at its edge, and where nothing
can be told. tools/analysis_cases.py puts the comments above the tests into docs/analyses.md.

$TENSORDIFF says where the program is.
"""

import json
import os
import pathlib
import struct
import subprocess
import tempfile
import unittest

PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")


def write(path, tensors):
    """A .safetensors file of float32 vectors."""
    header, data = {}, b""
    for name, values in tensors.items():
        end = len(data) + 4 * len(values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), end]}
        data += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Pair(unittest.TestCase):
    """Three layers, of which the second changed most and the third a little."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.a, self.b = self.folder / "a.safetensors", self.folder / "b.safetensors"
        ones = [1.0, 2.0, 3.0, 4.0]
        write(self.a, {f"layers.{i}.weight": ones for i in range(3)})
        write(self.b, {"layers.0.weight": ones, "layers.1.weight": [9.0, 2.0, 3.0, 4.0],
                       "layers.2.weight": [1.0, 2.0, 3.0, 4.5]})

    def run_program(self, *arguments, status=1):
        result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                                timeout=60)
        self.assertEqual(result.returncode, status, result.stderr + result.stdout)
        return result.stdout + result.stderr


class SortByChangeMagnitude(Pair):
    def order(self, b):
        text = self.run_program(self.a, b, "--sort-by-change-magnitude", "-o", "csv")
        return [line.split("layers.")[1][0] for line in text.splitlines() if "layers." in line]

    # planted: the layer that changed most comes first
    def test_the_largest_change_is_first(self):
        self.assertEqual(self.order(self.b)[:2], ["1", "2"])

    # edge: a tensor with NaN comes before every number
    def test_nan_is_the_largest(self):
        write(self.b, {"layers.0.weight": [1.0, 2.0, 3.0, 4.0],
                       "layers.1.weight": [9e9, 2.0, 3.0, 4.0],
                       "layers.2.weight": [1.0, float("nan"), 3.0, 4.0]})
        self.assertEqual(self.order(self.b)[0], "2")

    # unknown: tensors of different shapes have no magnitude and are still listed
    def test_what_cannot_be_compared_is_listed(self):
        write(self.b, {"layers.0.weight": [1.0, 2.0, 3.0, 4.0], "layers.1.weight": [9.0] * 7,
                       "layers.2.weight": [1.0, 2.0, 3.0, 4.5]})
        self.assertEqual(sorted(self.order(self.b))[:3], ["0", "1", "2"])


class ReviewFriendly(Pair):
    # planted: the tensors that changed are named, with the largest change
    def test_names_what_changed(self):
        text = self.run_program(self.a, self.b, "--review-friendly")
        self.assertIn("layers.1.weight", text)
        self.assertLess(len(text.splitlines()), 40)

    # edge: two models that are the same
    def test_says_that_nothing_changed(self):
        text = self.run_program(self.a, self.a, "--review-friendly", status=0)
        self.assertNotIn("layers.1.weight", text)

    # unknown: formats of data have no half page, and stay as they are
    def test_leaves_data_as_it_is(self):
        plain = self.run_program(self.a, self.b, "-o", "csv")
        self.assertEqual(self.run_program(self.a, self.b, "--review-friendly", "-o", "csv"), plain)


class GenerateReport(Pair):
    # planted: every analysis is in the report, with the answer of each
    def test_has_all_analyses(self):
        text = self.run_program(self.a, self.b, "--generate-report")
        for name in ("Change summary", "What changed", "Risk assessment"):
            self.assertTrue(f"\n## {name}\n" in text, name)

    # edge: only the analyses that were chosen
    def test_has_the_chosen_one_alone(self):
        text = self.run_program(self.a, self.b, "--generate-report", "--memory-analysis")
        self.assertTrue("\n## Memory analysis\n" in text)
        self.assertFalse("\n## Risk assessment\n" in text)

    # unknown: what the files do not hold is said to be unknown
    def test_says_what_is_unknown(self):
        self.assertTrue("| Trend | unknown |" in
                        self.run_program(self.a, self.b, "--generate-report"))


class MarkdownOutput(Pair):
    # planted: a heading with the verdict
    def test_is_markdown(self):
        text = self.run_program(self.a, self.b, "--markdown-output")
        self.assertTrue(text.startswith("# "), text[:80])
        self.assertIn("different", text.splitlines()[0])

    # edge: names with characters of Markdown are escaped
    def test_escapes_names(self):
        write(self.a, {"a*b_c|d": [1.0]})
        write(self.b, {"a*b_c|d": [2.0]})
        text = self.run_program(self.a, self.b, "--markdown-output")
        self.assertNotIn("a*b_c|d", text.replace("`a*b_c|d`", ""))

    # unknown: files that cannot be read give no page, but an error
    def test_gives_no_page_without_input(self):
        text = self.run_program(self.a, self.folder / "none.safetensors", "--markdown-output",
                                status=2)
        self.assertNotIn("# ", text)


class IncludeCharts(Pair):
    # planted: the change by layer is drawn
    def test_draws(self):
        chosen = ["--markdown-output", "--change-summary"]
        plain = self.run_program(self.a, self.b, *chosen)
        drawn = self.run_program(self.a, self.b, *chosen, "--include-charts")
        self.assertGreater(len(drawn), len(plain))

    # edge: a model of one layer has no change by layer to draw
    def test_draws_nothing_of_one_layer(self):
        write(self.a, {"layers.0.weight": [1.0, 2.0]})
        write(self.b, {"layers.0.weight": [1.0, 3.0]})
        text = self.run_program(self.a, self.b, "--markdown-output", "--change-summary",
                                "--include-charts")
        self.assertNotIn("size of the change by layer", text)

    # unknown: formats that show no charts are refused
    def test_refuses_formats_without_charts(self):
        for output in ("text", "json", "csv"):
            text = self.run_program(self.a, self.b, "--include-charts", "-o", output, status=2)
            self.assertIn("--include-charts needs", text)


if __name__ == "__main__":
    unittest.main()
