#!/usr/bin/env python3
"""Tests of tools/lint.py."""

import pathlib
import subprocess
import tempfile
import unittest
import unittest.mock

import lint

SOURCES = {
    "src/a.cpp": '#include "a.h"\n',
    "src/b.cpp": '#include "a.h"\n#include "deep/only.h"\n',
    "src/c_test.cpp": '#include "deep/only.h"\n',
}


class SourcesToCheck(unittest.TestCase):
    def test_changed_sources_and_nothing_else(self):
        changed = ["src/b.cpp", "docs/cli.md", "tests/x.py"]
        self.assertEqual(lint.sources_to_check(changed, SOURCES), ["src/b.cpp"])

    def test_a_header_is_seen_through_its_own_source(self):
        self.assertEqual(lint.sources_to_check(["src/a.h"], SOURCES), ["src/a.cpp"])

    def test_or_through_one_that_includes_it(self):
        self.assertEqual(lint.sources_to_check(["src/deep/only.h"], SOURCES),
                         ["src/b.cpp"])

    def test_a_header_needs_no_other_source_than_one_that_is_checked_anyway(self):
        changed = ["src/deep/only.h", "src/c_test.cpp"]
        self.assertEqual(lint.sources_to_check(changed, SOURCES), ["src/c_test.cpp"])


class ChangedPaths(unittest.TestCase):
    def test_committed_edited_and_new_files_but_not_deleted_ones(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)

            def git(*command):
                subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", *command],
                               cwd=root, check=True, capture_output=True)

            def write(**files):
                for name, text in files.items():
                    (root / f"{name}.cpp").write_text(text)

            git("init", "-q")
            write(same="1", committed="1", edited="1", deleted="1")
            git("add", ".")
            git("commit", "-qm", "first")
            write(committed="2")
            git("commit", "-qam", "second")
            write(edited="2", new="1")
            (root / "deleted.cpp").unlink()
            self.assertEqual(sorted(lint.changed_paths("HEAD~1", root)),
                             ["committed.cpp", "edited.cpp", "new.cpp"])


COMMAND = "clang++-14 -Isrc -Wshadow -std=c++20 -o x.o -c x.cpp"


class Units(unittest.TestCase):
    def test_only_sources_that_are_compiled_alike_are_joined(self):
        paths = ["src/base/sha256.cpp", "src/base/text.cpp"]
        apart = {paths[0]: COMMAND, paths[1]: COMMAND.replace("-Isrc", "-Isrc -DMORE")}
        self.assertEqual(len(lint.units_of(paths, dict.fromkeys(paths, COMMAND))), 1)
        self.assertEqual(len(lint.units_of(paths, apart)), 2)

    def test_a_joined_unit_may_shadow(self):
        self.assertEqual(lint.flags_of(COMMAND, False), ["-Isrc", "-Wshadow", "-std=c++20"])
        self.assertEqual(lint.flags_of(COMMAND, True), ["-Isrc", "-std=c++20"])


class Findings(unittest.TestCase):
    def test_each_has_its_lines_and_no_path_of_this_machine(self):
        text = (f"{lint.ROOT}/src/a.cpp:3:7: error: wrong [x]\n  int a;\n      ^\n"
                "src/b.h:1:1: error: bad [y]\nint b;\n")
        self.assertEqual(lint.findings_in(text),
                         ["src/a.cpp:3:7: error: wrong [x]\n  int a;\n      ^\n",
                          "src/b.h:1:1: error: bad [y]\nint b;\n"])

    def test_what_does_not_compile_joined_is_checked_alone(self):
        asked = []

        def clang_tidy(paths, _command_of, _deadline):
            asked.append(paths)
            return "src/a.cpp:1:1: error: twice [clang-diagnostic-error]\n" if paths[1:] else ""

        with unittest.mock.patch.object(lint, "tidied", clang_tidy):
            self.assertEqual(lint.lint(["src/a.cpp", "src/b.cpp"], {}, None)[1], [])
        self.assertEqual(asked, [["src/a.cpp", "src/b.cpp"], ["src/a.cpp"], ["src/b.cpp"]])


if __name__ == "__main__":
    unittest.main()
