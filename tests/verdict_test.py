#!/usr/bin/env python3
"""A verdict that is green means something: nothing that was not compared passes for agreement.

$TENSORDIFF says where the program is.
"""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml

from serving import write_safetensors

DATA = pathlib.Path(__file__).resolve().parent / "data" / "parity"
A, B = DATA / "reference.zip", DATA / "constant_scale.tgz"
PROGRAM = str(pathlib.Path(os.environ.get("TENSORDIFF", "build/tensordiff")).resolve())
OUTPUTS = ("text", "stats", "json", "yaml", "report", "csv", "markdown", "html", "junit")


def tensordiff(*arguments, timeout=60, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=timeout, **options)


class Folder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()

    def write(self, name, tensors):
        path = self.folder / name
        write_safetensors(path, tensors)
        return path


class EmptySelection(Folder):
    def test_is_trouble_in_every_output(self):
        for filters in (("--path", "nosuch"), ("--ignore-keys-regex", ".")):
            for output in OUTPUTS:
                result = tensordiff(A, A, *filters, "-o", output)
                self.assertEqual(result.returncode, 2, (filters, output))
                self.assertIn("0 tensors selected", result.stdout.replace("\\", ""), output)
        report = json.loads(tensordiff(A, A, "--path", "nosuch", "-o", "report").stdout)
        self.assertEqual(report["summary"]["verdict"], "trouble")

    def test_is_an_error_of_junit(self):
        suite = xml.fromstring(tensordiff(A, A, "--path", "nosuch", "-o", "junit").stdout)[0]
        self.assertEqual((suite.get("tests"), suite.get("errors")), ("1", "1"))
        self.assertIn("0 tensors selected", suite.find("testcase/error").get("message"))

    def test_exit_zero_does_not_hide_it(self):
        self.assertEqual(tensordiff(A, A, "--path", "nosuch", "--exit-zero").returncode, 2)

    def test_of_a_trend_is_trouble_too(self):
        result = tensordiff("trend", A, A, "--path", "nosuch")
        self.assertEqual(result.returncode, 2)
        self.assertIn("0 tensors selected", result.stderr)

    def test_files_without_a_tensor_agree_on_nothing(self):
        empty = self.write("empty.safetensors", {})
        self.assertEqual(tensordiff(empty, empty).returncode, 2)


class ShapeOnly(Folder):
    def test_says_so_in_every_output(self):
        a = self.write("a.safetensors", {"w": ([2], [1, 2])})
        b = self.write("b.safetensors", {"w": ([2], [3, 4])})
        for output in OUTPUTS:
            result = tensordiff(a, b, "--shape-only", "-o", output)
            self.assertEqual(result.returncode, 0, output)
            self.assertIn("shapes match, values not compared", result.stdout.lower(), output)
            if output not in ("report", "csv"):  # They have counts of that name.
                said = re.sub(r"<(style|script)>.*?</", "", result.stdout, flags=re.S)
                self.assertNotRegex(said, r"\b(same|equal|identical)\b(?! shape)", output)
        report = json.loads(tensordiff(a, b, "--shape-only", "-o", "report").stdout)
        self.assertEqual(report["summary"]["verdict"], "shapes_match")
        self.assertEqual([pair["status"] for pair in report["pairs"]], ["same_shape"])
        self.assertIn("shapes match, values not compared",
                      tensordiff(a, b, "--shape-only", "--brief").stdout)

    def test_other_shapes_differ(self):
        a = self.write("a.safetensors", {"w": ([2], [1, 2]), "v": ([1], [0])})
        b = self.write("b.safetensors", {"w": ([1, 2], [1, 2]), "v": ([1], [0])})
        result = tensordiff(a, b, "--shape-only", "-o", "report")
        self.assertEqual(result.returncode, 1)
        report = json.loads(result.stdout)
        self.assertEqual(report["summary"]["verdict"], "different")
        self.assertEqual(sorted(pair["status"] for pair in report["pairs"]),
                         ["different", "same_shape"])
        self.assertIn("values not compared", tensordiff(a, b, "--shape-only", "--brief").stdout)


class Names(Folder):
    """Misspelt ones are refused with the right one."""

    def refused(self, wanted, *arguments):
        result = tensordiff(*arguments)
        self.assertEqual(result.returncode, 2, result.stdout)
        self.assertIn(wanted, result.stderr)

    def test_of_thresholds(self):
        both = (A, B, "--regression-test", "--threshold")
        self.refused("no limit 'rel-l2'; did you mean 'rel_l2'?", *both, "rel-l2=0.1")
        self.refused("no limit 'cosin'; did you mean 'cosine'?", *both, "cosin=0.1")
        self.refused("no limit 'perplexity'; known are", *both, "perplexity=0.1")

    def test_of_thresholds_that_nobody_looks_at(self):
        self.refused("--threshold: 'rel_l2' has no effect without --regression-test",
                     A, B, "--threshold", "rel_l2=0.1")
        self.refused("'loss' has no effect without --alert-on-degradation",
                     A, B, "--regression-test", "--threshold", "loss=0.1")

    def test_every_metric_of_a_tolerance_file_is_a_threshold(self):
        # The error lists the names of the one table.
        file = self.folder / "tolerances.yaml"
        file.write_text("'.*': {perplexity: 1}\n")
        known = tensordiff(A, B, "--tolerance-file", file).stderr.split("known are ")[1]
        known = known.split("\n")[0].split(", ")
        self.assertIn("mean_rel", known)
        predictions = {"kl_mean", "kl_p99", "kl_max", "same_top", "delta_p_rms",
                       "perplexity_ratio", "ratio_error"}  # Of logits, not of a pair.
        for name in set(known) - {"atol", "rtol", "norm_ratio"} - predictions:
            result = tensordiff(A, A, "--regression-test", "--threshold", f"{name}=0.5", "-o",
                                "report")
            self.assertIn(result.returncode, (0, 1), result.stderr)
        docs = (DATA.parents[2] / "docs" / "cli.md").read_text()
        for name in known:
            self.assertIn(f"`{name}`", docs)

    def test_of_options_keys_and_limits(self):
        self.refused("unknown option '--thresold'; did you mean '--threshold'?",
                     A, B, "--thresold", "rel_l2=1")
        self.refused("--rtol needs a value", A, B, "--rtol")
        self.refused("did you mean 'markdown'?", A, B, "-o", "markdwon")
        self.refused("did you mean 'pickle'?", A, B, "--limit", "pickel=1")
        file = self.folder / "tolerances.yaml"
        file.write_text("'.*': {cosin: 1}\n")
        self.refused("unknown key 'cosin'; did you mean 'cosine'?", A, B, "--tolerance-file", file)
        runs = self.folder / "runs.yaml"
        runs.write_text(f"runs:\n  - {{a: {A}, b: {B}, rtoll: 1}}\n")
        self.refused("did you mean 'rtol'?", "batch", runs)
        (self.folder / ".tensordiff.yaml").write_text("atoll: 1\n")
        result = tensordiff(A, B, cwd=self.folder)
        self.assertEqual(result.returncode, 2)
        self.assertIn("did you mean 'atol'?", result.stderr)


class Baseline(Folder):
    def setUp(self):
        super().setUp()
        self.baseline = self.folder / "baseline.json"
        self.baseline.write_text(tensordiff(A, B, "-o", "report").stdout)

    def test_what_is_known_passes_everywhere(self):
        known = (A, B, "--baseline", self.baseline)
        self.assertEqual(tensordiff(*known).returncode, 0)
        self.assertTrue(tensordiff(*known, "--brief").stdout.startswith("KNOWN DIFFERENCES ONLY"))
        self.assertIn("known differences only", tensordiff(*known, "-o", "markdown").stdout)
        report = json.loads(tensordiff(*known, "-o", "report").stdout)
        self.assertEqual(report["summary"]["verdict"], "known")
        self.assertEqual({pair["baseline"] for pair in report["pairs"]
                          if pair["status"] == "different"}, {"known"})
        suite = xml.fromstring(tensordiff(*known, "-o", "junit").stdout)[0]
        self.assertEqual((suite.get("failures"), suite.get("errors")), ("0", "0"))
        self.assertEqual(int(suite.get("skipped")), report["summary"]["different"])

    def test_what_is_new_fails_everywhere(self):
        other = DATA / "clean_fp32.tar.gz"
        self.baseline.write_text(tensordiff(A, other, "-o", "report").stdout)
        new = (A, B, "--baseline", self.baseline)
        self.assertEqual(tensordiff(*new).returncode, 1)
        self.assertTrue(tensordiff(*new, "--brief").stdout.startswith("DIFFERENT"))
        report = json.loads(tensordiff(*new, "-o", "report").stdout)
        self.assertEqual(report["summary"]["verdict"], "different")
        suite = xml.fromstring(tensordiff(*new, "-o", "junit").stdout)[0]
        self.assertEqual(int(suite.get("failures")), report["summary"]["different"])


class OneInput(Folder):
    def test_is_a_slip_unless_it_is_asked_for(self):
        for arguments in ((A,), (A, ""), ("", A), ("compare", A), (A, "--memory-analysis")):
            result = tensordiff(*arguments)
            self.assertEqual(result.returncode, 2, arguments)
            self.assertEqual(result.stdout, "")
        self.assertIn("--single", tensordiff(A).stderr)
        self.assertIn("empty", tensordiff(A, "").stderr)

    def test_is_compared_with_itself_when_asked_for(self):
        result = tensordiff(A, "--single", "--brief")
        self.assertEqual(result.returncode, 1)
        self.assertIn("741 pairs", result.stdout)
        self.assertEqual(tensordiff(A, B, "--single").returncode, 2)


class Weights(Folder):
    def setUp(self):
        super().setUp()
        values = [float(i % 7) - 3 for i in range(32)]
        self.a = self.write("a.safetensors", {"0_post_ln_pre_attn": ([1, 4, 8], values),
                                              "0_query": ([1, 4, 8], values[::-1])})
        self.weights = "model.layers.0.self_attn.q_proj.weight"

    def notes(self, *arguments):
        return "\n".join(json.loads(tensordiff(*arguments, "-o", "report").stdout)["notes"])

    def test_says_how_many_steps_they_are_good_for(self):
        good = self.write("good.safetensors", {self.weights: ([8, 8], [0.5] * 64)})
        self.assertIn("--weights: 1 of 1 steps can be computed again",
                      self.notes(self.a, self.a, "--weights", good))

    def test_warns_when_they_are_good_for_none(self):
        bad = self.write("bad.safetensors", {self.weights: ([5, 5], [0.5] * 25)})
        self.assertIn("warning: --weights: 0 of 1 steps",
                      self.notes(self.a, self.a, "--weights", bad))
        self.assertIn("warning: --weights has no effect",
                      self.notes(bad, bad, "--weights", bad))

    def test_are_suggested_for_a_dump_against_a_model(self):
        model = self.write("model.safetensors", {self.weights: ([8, 8], [0.5] * 64)})
        self.assertIn(f"--weights {model}", self.notes(self.a, model))
        self.assertIn(f"--weights {model}", self.notes(model, self.a))
        self.assertNotIn("--weights", self.notes(self.a, self.a))


class Patterns(Folder):
    """An expression that keeps a backtracking engine busy for ever."""

    SLOW = "(a+)+$"

    def test_run_in_linear_time(self):
        name = "a" * 1990 + "!"
        a = self.write("a.safetensors", {name: ([1], [1])})
        rules = self.folder / "rules.yaml"
        rules.write_text(f"'{self.SLOW}': {{atol: 1}}\n")
        for arguments in (("--ignore-keys-regex", self.SLOW), ("--tolerance-file", rules),
                          ("--match-regex", "(?<key>(a+)+)$")):
            result = tensordiff(a, a, *arguments, timeout=120)
            self.assertEqual(result.returncode, 0, result.stderr)

    def test_name_what_the_engine_does_not_have(self):
        for pattern in ("(?=x)", r"(a)\1"):
            result = tensordiff(A, A, "--ignore-keys-regex", pattern)
            self.assertEqual(result.returncode, 2)
            self.assertIn("no lookaround and no backreferences", result.stderr)


class Conversion(Folder):
    GGUF = DATA.parent / "gguf"

    def rules(self, name, *options):
        a, b = self.GGUF / "port_hf.safetensors", self.GGUF / name
        return tensordiff("conversion", a, b, *options)

    def test_holds_against_itself(self):
        known = self.folder / "known.json"
        known.write_text(self.rules("port_f16.gguf", "-o", "json").stdout)
        self.assertEqual(self.rules("port_f16.gguf", "--conversion", known).returncode, 0)
        self.assertEqual(self.rules("port_q8_0.gguf", "--conversion", known).returncode, 0)

    def test_a_rule_that_changed_is_a_difference(self):
        known = self.folder / "known.json"
        report = json.loads(self.rules("port_f16.gguf", "-o", "json").stdout)
        [rope] = [rule for rule in report["rules"] if rule["b"] == "blk.#.attn_q.weight"]
        rope["rule"] = "as it is"
        report["rules"].append({"rule": "transposed", "a": "x", "b": "y"})
        known.write_text(json.dumps(report))
        result = self.rules("port_f16.gguf", "--conversion", known)
        self.assertEqual(result.returncode, 1)
        self.assertIn("rows in the other RoPE order (heads of 16, halves in A), was as it is",
                      result.stdout)
        self.assertIn("x → y: gone, was transposed", result.stdout)

    def test_a_file_that_is_no_conversion_is_refused(self):
        known = self.folder / "known.json"
        for text in ("{}", "[1", '{"schema": "tensordiff.report/1"}'):
            known.write_text(text)
            result = self.rules("port_f16.gguf", "--conversion", known)
            self.assertEqual(result.returncode, 2, text)
            self.assertIn("known.json", result.stderr, text)
        self.assertEqual(tensordiff("conversion", A).returncode, 2)


if __name__ == "__main__":
    unittest.main()
