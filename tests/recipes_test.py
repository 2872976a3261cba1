#!/usr/bin/env python3
"""Runs the recipes of docs/recipes as they stand there. $TENSORDIFF says where the program is."""

import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import textwrap
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
RECIPES = ROOT / "docs" / "recipes"
PROGRAM = pathlib.Path(os.environ.get("TENSORDIFF", "build/tensordiff")).resolve()


def write_model(path, tensors):
    """A safetensors file; tensors: name -> list of numbers."""
    header, data = {}, b""
    for name, values in tensors.items():
        end = len(data) + 4 * len(values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), end]}
        data += struct.pack(f"<{len(values)}f", *values)
    text = json.dumps(header).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


OLD = {"classifier.weight": [1, 2, 3], "body.weight": [4, 5], "gone": [1]}
TUNED = {"classifier.weight": [1, 2, 3], "body.weight": [4, 6], "gone": [1]}
RESHAPED = {"classifier.weight": [1, 2, 3, 4], "body.weight": [4, 6], "fresh": [1]}


def steps_of(workflow):
    """The shell scripts of a workflow, by the names of their steps."""
    step = r"- name: (.*)\n(?: {8}if: .*\n)? {8}run: \|\n((?: {10}.*\n|\n)+)"
    found = re.findall(step, workflow.read_text())
    return {name: textwrap.dedent(script) for name, script in found}


class Recipes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        # The recipes call `tensordiff`, whatever this build is called.
        (self.folder / "bin").mkdir()
        (self.folder / "bin" / "tensordiff").symlink_to(PROGRAM)
        self.environment = {
            **os.environ, "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder / "config"),
            "GIT_CONFIG_NOSYSTEM": "1", "COLUMNS": "100",
            "GITHUB_STEP_SUMMARY": str(self.folder / "summary.md")}

    def run_here(self, *words, where=None):
        return subprocess.run([str(word) for word in words], cwd=where or self.folder, timeout=60,
                              env=self.environment, capture_output=True, text=True)

    def test_mlflow_counts_by_tag(self):
        write_model(self.folder / "old.safetensors", OLD)
        write_model(self.folder / "new.safetensors", RESHAPED)
        result = self.run_here("python3", RECIPES / "log_to_mlflow.py", "old.safetensors",
                               "new.safetensors")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(json.loads(result.stdout), {
            "total_changes": 4, "TensorStatsChanged": 1, "TensorShapeChanged": 1,
            "TensorAdded": 1, "TensorRemoved": 1})

    def test_a_full_report_takes_its_form_from_the_name(self):
        write_model(self.folder / "old.safetensors", OLD)
        write_model(self.folder / "new.safetensors", TUNED)
        for name, start in (("r.html", "<!doctype html>"), ("r.md", "# "), ("r.xml", "<?xml"),
                            ("r.json", "{"), ("r.csv", "index,")):
            result = self.run_here("tensordiff", "old.safetensors", "new.safetensors",
                                   "--generate-report", "--out", name)
            self.assertEqual(result.returncode, 1, result.stderr)
            text = (self.folder / name).read_text()
            self.assertTrue(text.startswith(start), text[:80])
            self.assertEqual("emory" in text, name != "r.csv", name)  # The analyses are there.

    def test_bash_completes(self):
        def completed(*words):
            script = ('source <(tensordiff completions bash); COMP_WORDS=("$@"); '
                      'COMP_CWORD=$(($# - 1)); _tensordiff; echo "${COMPREPLY[@]}"')
            result = self.run_here("bash", "-c", script, "bash", *words)
            self.assertEqual(result.stderr, "")
            return result.stdout.split()
        self.assertEqual(completed("tensordiff", "tr"), ["trend"])
        self.assertEqual(completed("tensordiff", "a", "b", "--tolerance-f"), ["--tolerance-file"])
        self.assertEqual(completed("tensordiff", "a", "b", "-o", "ht"), ["html"])
        self.assertEqual(completed("tensordiff", "batch", "--res"), ["--resume"])
        self.assertEqual(completed("tensordiff", "git", "un"), ["uninstall"])

    @unittest.skipUnless(shutil.which("jq"), "there is no jq")
    def test_the_workflow_gates_on_shapes(self):
        steps = steps_of(RECIPES / "model-diff.yml")
        self.assertEqual(list(steps), ["Compare models", "Analyze changes",
                                       "Summary for the reviewer"])
        for candidate, expected in ((OLD, 0), (TUNED, 0), (RESHAPED, 1)):
            write_model(self.folder / "models" / "baseline.safetensors", OLD)
            write_model(self.folder / "models" / "candidate.safetensors", candidate)
            compared = self.run_here("bash", "-e", "-c", steps["Compare models"])
            self.assertEqual(compared.returncode, 0, compared.stderr)
            gate = self.run_here("bash", "-e", "-c", steps["Analyze changes"])
            self.assertEqual(gate.returncode, expected, gate.stdout + gate.stderr)
        summary = self.run_here("bash", "-e", "-c", steps["Summary for the reviewer"])
        self.assertEqual(summary.returncode, 0, summary.stderr)
        self.assertIn("## What changed", (self.folder / "summary.md").read_text())


@unittest.skipUnless(shutil.which("git"), "there is no git")
class InARepository(Recipes):
    test_mlflow_counts_by_tag = test_the_workflow_gates_on_shapes = test_bash_completes = None
    test_a_full_report_takes_its_form_from_the_name = None

    def setUp(self):
        super().setUp()
        self.repository = self.folder / "repository"
        self.repository.mkdir()
        self.git("init", "-q")
        self.git("config", "user.name", "tester")
        self.git("config", "user.email", "tester@example.invalid")
        self.model = self.repository / "models" / "a model.safetensors"
        write_model(self.model, OLD)
        self.commit()

    def git(self, *words, status=0):
        result = self.run_here("git", *words, where=self.repository)
        self.assertEqual(result.returncode, status, result.stdout + result.stderr)
        return result.stdout

    def commit(self, status=0):
        self.git("add", "-A")
        return self.git("commit", "-q", "-m", "change", status=status)

    @unittest.skipUnless(shutil.which("jq"), "there is no jq")
    def test_the_hook_refuses_another_architecture(self):
        shutil.copy(RECIPES / "pre-commit", self.repository / ".git" / "hooks" / "pre-commit")
        write_model(self.model, TUNED)
        self.commit()
        write_model(self.model, RESHAPED)
        self.commit(status=1)
        # What is staged counts, not what lies in the folder.
        write_model(self.model, TUNED)
        self.git("commit", "-q", "-m", "staged", status=1)

    def test_git_diff_knows_tensors(self):
        attributes = self.repository / ".git" / "info" / "attributes"
        attributes.parent.mkdir(exist_ok=True)
        attributes.write_text("*.txt text\n")
        installed = self.run_here("tensordiff", "git", "install", where=self.repository)
        self.assertEqual(installed.returncode, 0, installed.stderr)
        write_model(self.model, TUNED)
        diff = self.git("diff")
        self.assertIn("tensordiff a/models/a model.safetensors", diff)
        self.assertIn("1 different", diff)
        self.assertIn("body.weight", diff)
        # Without the driver, as in git log -p: a line for each tensor.
        self.assertRegex(self.git("diff", "--no-ext-diff"),
                         r"(?m)^-body\.weight  f32 \[2\]  mean 4\.5 .* crc [0-9a-f]{8}\n"
                         r"\+body\.weight  f32 \[2\]  mean 5 ")
        write_model(self.repository / "new.safetensors", {"w": [1]})
        self.git("add", "-N", "new.safetensors")
        self.assertIn("+w  f32 [1]", self.git("diff", "--", "new.safetensors"))

        self.run_here("tensordiff", "git", "uninstall", where=self.repository)
        self.assertEqual(attributes.read_text(), "*.txt text\n")
        self.assertIn("Binary files", self.git("diff"))

    def test_a_file_that_holds_no_tensors_does_not_stop_the_diff(self):
        self.run_here("tensordiff", "git", "install", where=self.repository)
        self.model.write_text("version https://git-lfs.github.com/spec/v1\n")
        self.assertIn("not compared", self.git("diff"))
        self.assertIn("+no tensors", self.git("diff", "--no-ext-diff"))

    def test_difftool_runs_it(self):
        self.run_here("tensordiff", "git", "install", where=self.repository)
        write_model(self.model, TUNED)
        shown = self.git("difftool", "--no-prompt", "-t", "tensordiff")
        self.assertIn("1 different", shown)

    def test_global_settings_are_the_users(self):
        installed = self.run_here("tensordiff", "git", "install", "--global")
        self.assertEqual(installed.returncode, 0, installed.stderr)
        write_model(self.model, TUNED)
        self.assertIn("1 different", self.git("diff"))
        self.run_here("tensordiff", "git", "uninstall", "--global")
        self.assertIn("Binary files", self.git("diff"))


if __name__ == "__main__":
    unittest.main()
