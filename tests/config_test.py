#!/usr/bin/env python3
"""Runs the program where files hold settings for it. $TENSORDIFF says where it is."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

DATA = pathlib.Path(__file__).resolve().parent / "data" / "parity"
A, B = DATA / "reference.zip", DATA / "constant_scale.tgz"
PROGRAM = str(pathlib.Path(os.environ.get("TENSORDIFF", "build/tensordiff")).resolve())


class Config(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.here = self.folder / "project" / "deep"
        self.here.mkdir(parents=True)
        self.project = self.folder / "project" / ".tensordiff.yaml"
        self.user = self.folder / "config" / "tensordiff" / "config.yaml"
        self.user.parent.mkdir(parents=True)

    def tensordiff(self, *arguments):
        environment = {**os.environ, "XDG_CONFIG_HOME": str(self.folder / "config"),
                       "COLUMNS": "160",
                       "XDG_STATE_HOME": str(self.folder / "state")}
        return subprocess.run([PROGRAM, *map(str, arguments)], cwd=self.here, env=environment,
                              capture_output=True, text=True, timeout=60)

    def test_the_folder_wins_over_the_user_and_the_line_over_both(self):
        self.assertEqual(self.tensordiff(A, B).returncode, 1)
        self.user.write_text("atol: 1000\n")
        self.assertEqual(self.tensordiff(A, B).returncode, 0)
        self.project.write_text("atol: 0\nrtol: 0\n")
        self.assertEqual(self.tensordiff("config", "trust").returncode, 0)
        self.assertEqual(self.tensordiff(A, B).returncode, 1)
        self.assertEqual(self.tensordiff(A, B, "--atol", "1000").returncode, 0)
        self.assertEqual(self.tensordiff(A, B, "--no-config").returncode, 1)

    def test_an_unknown_key_is_an_error_with_its_place(self):
        self.project.write_text("# ours\natoll: 1\n")
        for arguments in ((A, B), ("show", A), ("config",)):
            result = self.tensordiff(*arguments)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"{self.project}: line 2: unknown key 'atoll'", result.stderr)
        self.assertEqual(self.tensordiff("compare", "--help").returncode, 0)

    def test_a_folder_cannot_make_us_write(self):
        self.project.write_text("out: stolen.txt\n")
        result = self.tensordiff(A, B)
        self.assertEqual(result.returncode, 2)
        self.assertIn("'out' is for the command line only", result.stderr)
        self.assertFalse((self.here / "stolen.txt").exists())

    def test_config_shows_where_each_setting_comes_from(self):
        self.user.write_text("atol: 1\nstats: true\n")
        self.project.write_text("atol: 2\n")
        self.assertEqual(self.tensordiff("config", "trust").returncode, 0)
        shown = json.loads(self.tensordiff("config", "--rtol", "3", "-o", "json").stdout)
        self.assertEqual(shown["files"], [{"path": str(self.user), "found": True, "trusted": True},
                                          {"path": str(self.project), "found": True,
                                           "trusted": True}])
        self.assertEqual(
            [tuple(each.values()) for each in shown["settings"]],
            [("atol", "1", f"{self.user}:1", True, False),
             ("stats", "true", f"{self.user}:2", False, False),
             ("atol", "2", f"{self.project}:1", False, False),
             ("rtol", "3", "command line", False, False)])
        self.assertIn("overridden", self.tensordiff("config").stdout)

    def test_files_named_in_a_setting_lie_beside_it(self):
        (self.folder / "project" / "tolerances.yaml").write_text("'.*': {atol: 1000}\n")
        self.project.write_text("tolerance-file: tolerances.yaml\n")
        self.assertEqual(self.tensordiff("config", "trust").returncode, 0)
        self.assertEqual(self.tensordiff(A, B).returncode, 0)


class Trust(Config):
    """What a folder sets cannot weaken a verdict until the user says so."""
    test_the_folder_wins_over_the_user_and_the_line_over_both = None
    test_an_unknown_key_is_an_error_with_its_place = None
    test_a_folder_cannot_make_us_write = None
    test_config_shows_where_each_setting_comes_from = None
    test_files_named_in_a_setting_lie_beside_it = None

    def test_what_weakens_is_ignored_until_it_is_trusted(self):
        (self.folder / "project" / "tolerances.yaml").write_text("'.*': {atol: 1000}\n")
        for text in ("exit-zero: true\n", "atol: 1000\n", "epsilon: 1000\n",
                     "ignore-keys-regex: '1_|2_'\n", "path: 0_\n",
                     "tolerance-file: tolerances.yaml\n", "show: identical\n"):
            self.project.write_text(text)
            key = text.split(":")[0]
            result = self.tensordiff(A, B, "-o", "report")
            self.assertEqual(result.returncode, 1, text)
            self.assertEqual(result.stderr.count("\n"), 1)
            self.assertIn(f"{self.project}: none in effect; ignored", result.stderr)
            self.assertIn(f": {key}=" if "true" not in text else f": {key}", result.stderr)
            trusted = self.tensordiff("config", "trust")
            self.assertEqual(trusted.returncode, 0, trusted.stderr)
            self.assertIn("trusted as it is now", trusted.stdout)
            result = self.tensordiff(A, B)
            self.assertEqual(result.returncode, 1 if key == "show" else 0, text)
            self.assertIn(f"settings of {self.project}: {key}", result.stderr)
            self.assertIn("in effect", result.stderr)
            self.assertEqual(self.tensordiff("config", "untrust").returncode, 0)
            self.assertEqual(self.tensordiff(A, B).returncode, 1)

    def test_how_it_looks_needs_no_trust(self):
        self.project.write_text("output: csv\n")
        result = self.tensordiff(A, B)
        self.assertTrue(result.stdout.startswith("index,name_a"))
        self.assertEqual(result.stderr,
                         f"tensordiff: settings of {self.project}: output=csv in effect\n")

    def test_a_file_that_changed_has_to_be_trusted_again(self):
        rules = self.folder / "project" / "tolerances.yaml"
        rules.write_text("'.*': {atol: 0}\n")
        self.project.write_text("tolerance-file: tolerances.yaml\n")
        self.assertEqual(self.tensordiff("config", "trust", self.project.parent).returncode, 0)
        self.assertIn("in effect", self.tensordiff(A, B).stderr)
        rules.write_text("'.*': {atol: 1000}\n")
        self.assertEqual(self.tensordiff(A, B).returncode, 1)
        self.assertIn("not trusted", self.tensordiff(A, B).stderr)
        self.assertEqual(self.tensordiff("config", "trust").returncode, 0)
        self.assertEqual(self.tensordiff(A, B).returncode, 0)
        self.project.write_text("tolerance-file: tolerances.yaml\nexit-zero: true\n")
        self.assertEqual(self.tensordiff(A, B).returncode, 1)

    def test_a_copy_elsewhere_is_not_trusted(self):
        self.project.write_text("exit-zero: true\n")
        self.assertEqual(self.tensordiff("config", "trust").returncode, 0)
        (self.here / ".tensordiff.yaml").write_text("exit-zero: true\n")
        self.assertEqual(self.tensordiff(A, B).returncode, 1)

    def test_config_shows_what_is_ignored(self):
        self.project.write_text("atol: 1\n")
        self.assertIn("not trusted", self.tensordiff("config").stdout)
        shown = json.loads(self.tensordiff("config", "-o", "json").stdout)
        self.assertEqual([each["ignored"] for each in shown["settings"]], [True])
        self.assertEqual(shown["files"][1]["trusted"], False)

    def test_a_file_of_the_user_alone_says_what_is_in_force(self):
        self.user.write_text("exit-zero: true\n")
        result = self.tensordiff(A, B)
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr,
                         f"tensordiff: settings of {self.user}: exit-zero in effect\n")


class Batch(Config):
    test_the_folder_wins_over_the_user_and_the_line_over_both = None
    test_an_unknown_key_is_an_error_with_its_place = None
    test_a_folder_cannot_make_us_write = None
    test_config_shows_where_each_setting_comes_from = None
    test_files_named_in_a_setting_lie_beside_it = None

    def test_goes_on_where_it_was(self):
        old, new = self.here / "old", self.here / "new"
        for folder, source in ((old, A), (new, B)):
            folder.mkdir()
            (folder / "one").write_bytes(A.read_bytes())
            (folder / "two").write_bytes(source.read_bytes())
        state = self.here / "state.json"
        first = self.tensordiff("batch", old, new, "--resume", state, "-o", "json")
        self.assertEqual(first.returncode, 1, first.stderr)
        # What is remembered is not computed again: change the memory, and it shows.
        text = state.read_text()
        self.assertIn('"different"', text)
        state.write_text(text.replace('"verdict": "same"', '"verdict": "close"'))
        second = self.tensordiff("batch", old, new, "--resume", state, "-o", "json")
        verdicts = [run["verdict"] for run in json.loads(second.stdout)["runs"]]
        self.assertEqual(verdicts, ["close", "different"])
        # A file that changed is compared again.
        (new / "one").write_bytes(B.read_bytes())
        third = json.loads(self.tensordiff("batch", old, new, "--resume", state, "-o",
                                           "json").stdout)
        self.assertEqual([run["verdict"] for run in third["runs"]], ["different", "different"])
        self.assertEqual(self.tensordiff("batch", old, old).returncode, 0)


if __name__ == "__main__":
    unittest.main()
