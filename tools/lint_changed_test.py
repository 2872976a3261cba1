#!/usr/bin/env python3
"""Which files lint_changed.py checks."""

import pathlib
import subprocess
import tempfile
import unittest

import lint_changed

SOURCES = {
    "src/a.cpp": '#include "a.h"\n',
    "src/b.cpp": '#include "a.h"\n#include "deep/only.h"\n',
    "src/c_test.cpp": '#include "deep/only.h"\n',
}


class SourcesToCheck(unittest.TestCase):
    def test_changed_sources_and_nothing_else(self):
        changed = ["src/b.cpp", "docs/cli.md", "tests/x.py"]
        self.assertEqual(lint_changed.sources_to_check(changed, SOURCES), ["src/b.cpp"])

    def test_a_header_is_seen_through_its_own_source(self):
        self.assertEqual(lint_changed.sources_to_check(["src/a.h"], SOURCES), ["src/a.cpp"])

    def test_or_through_one_that_includes_it(self):
        self.assertEqual(lint_changed.sources_to_check(["src/deep/only.h"], SOURCES),
                         ["src/b.cpp"])

    def test_a_header_needs_no_other_source_than_one_that_is_checked_anyway(self):
        changed = ["src/deep/only.h", "src/c_test.cpp"]
        self.assertEqual(lint_changed.sources_to_check(changed, SOURCES), ["src/c_test.cpp"])


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
            self.assertEqual(sorted(lint_changed.changed_paths("HEAD~1", root)),
                             ["committed.cpp", "edited.cpp", "new.cpp"])


if __name__ == "__main__":
    unittest.main()
