#!/usr/bin/env python3
"""The examples of CONTRIBUTING.md compile in the tree of today.

Each is laid over a copy of the headers it says to edit, and compiled with them.
"""

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
BLOCKS = re.findall(r"```cpp\n(// (src/\S+?)(?:, in (\w+))?\n.*?)```",
                    (ROOT / "CONTRIBUTING.md").read_text(), re.S)


def edited(path, *changes):
    """The text of a file with each (pattern, replacement) made exactly once."""
    text = (ROOT / path).read_text()
    for pattern, replacement in changes:
        text, count = re.subn(pattern, replacement, text, count=1)
        assert count == 1, f"{path} has no {pattern}"
    return text


class Examples(unittest.TestCase):
    def example(self, path):
        """(its text, the list it goes into) of the one example of that file."""
        found = [(text, into) for text, of, into in BLOCKS if of == path]
        self.assertEqual(len(found), 1, path)
        return found[0]

    def compile(self, source, files):
        """Compiles one of the files, laid over the sources."""
        with tempfile.TemporaryDirectory() as folder:
            for path, text in files.items():
                laid = pathlib.Path(folder, path)
                laid.parent.mkdir(parents=True, exist_ok=True)
                laid.write_text(text)
            done = subprocess.run(
                [os.environ.get("CXX", "c++"), "-std=c++20", "-fsyntax-only", "-DFMT_SHARED",
                 "-Wall", "-Werror", f"-I{folder}/src", f"-I{ROOT}/src", f"-I{ROOT}/include",
                 f"{folder}/{source}"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_naming_convention(self):
        path, header = "src/naming/conventions/stacked.cpp", "src/naming/convention.h"
        self.compile(path, {path: self.example(path)[0], header: edited(
            header, (r"(?=extern const Convention stages;)", "extern const Convention stacked;\n"),
            (r"&stages", "&stages, &stacked"))})

    def test_a_layout_of_dumps(self):
        path, header = "src/dumps/step_folders.cpp", "src/dumps/layout.h"
        self.compile(path, {path: self.example(path)[0], header: edited(
            header,
            (r"(?=extern const Layout module_hooks;)", "extern const Layout step_folders;\n"),
            (r"&module_hooks", "&step_folders, &module_hooks"))})

    def test_a_field_of_the_report(self):
        path, header = "src/report/wire_pair.cpp", "src/compare/comparison.h"
        row, into = self.example(path)
        row = row.split("\n", 1)[1]
        self.compile(path, {
            path: edited(path, (rf"(Field<\w+> {into}\[\] = {{\n)", r"\1" + row)),
            header: edited(header, (r"(std::optional<double> mean_abs, )", r"\1p99_abs, "))})

    def test_no_example_is_left_out(self):
        self.assertEqual(len(BLOCKS), 3)


if __name__ == "__main__":
    unittest.main()
