#!/usr/bin/env python3
"""Tests of tools/unity.py."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import unity


def joined(**texts):
    """The names of the files in each unit, for files with these texts."""
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for name, text in texts.items():
            path = pathlib.Path(folder, f"{name}.cpp")
            path.write_text(text)
            paths.append(unity.Source(path))
        return sorted(sorted(s.path.stem for s in unit) for unit in unity.units(paths))


class Units(unittest.TestCase):
    def test_files_that_share_no_name_are_joined(self):
        self.assertEqual(joined(one="namespace t { namespace { int f() { return 1; } } }",
                                two="namespace t { namespace { int g() { return f; } } }"),
                         [["one", "two"]])

    def test_the_same_name_in_two_anonymous_namespaces_parts_them(self):
        for first in ("constexpr int kMost = 3;", "constexpr int kLeast = 0, kMost = 3;",
                      "int kMost[] = {1, 2};",
                      "struct kMost { int x; };", "using kMost = int;",
                      "template <class T>\nT kMost(T x) { return x; }",
                      "enum class kMost { a };", "[[maybe_unused]] int kMost(int x) { return x; }"):
            with self.subTest(first):
                self.assertEqual(joined(one="namespace t {\nnamespace {\n" + first + "\n}\n}",
                                        two="namespace {\nbool kMost() { return true; }\n}"),
                                 [["one"], ["two"]])

    def test_a_function_of_the_same_name_that_all_can_see_parts_them(self):
        self.assertEqual(joined(one="namespace { int size(int x) { return x; } }",
                                two="namespace t { int size(long x) { return 1; } }"),
                         [["one"], ["two"]])

    def test_arguments_of_templates_are_no_names(self):
        self.assertEqual(joined(one="namespace { std::map<Word, std::pair<Side, int>> kAll = {}; }",
                                two="namespace { struct Word {}; struct Side {}; }"),
                         [["one", "two"]])

    def test_words_in_bodies_comments_and_strings_are_no_names(self):
        self.assertEqual(joined(one='namespace { int f() { int row = 1; return row; } }  // size',
                                two='namespace { int row() { return "f() {"[0]; } }'),
                         [["one", "two"]])

    def test_a_macro_parts_files_that_use_the_word(self):
        self.assertEqual(joined(one="#define LIMIT 3\nint a = LIMIT;", two="int LIMIT_of();",
                                three="struct B { int LIMIT; };"),
                         [["one", "two"], ["three"]])

    def test_headers_count(self):
        # `Shape` is a name in tensor/shape.h.
        self.assertEqual(joined(one="namespace tensordiff { namespace { struct Shape {}; } }",
                                two='#include "tensor/shape.h"\n'), [["one"], ["two"]])

    def test_what_highway_includes_again_stays_alone(self):
        self.assertEqual(joined(one='#define HWY_TARGET_INCLUDE "x.cpp"', two="int x();"),
                         [["one"], ["two"]])

    def test_units_end_at_their_limit(self):
        long = "\n" * (unity.LINES_MAX // 2 + 1)
        self.assertEqual(len(joined(one=long, two=long, three="\n")), 2)


class Program(unittest.TestCase):
    def test_every_source_is_in_one_unit_and_old_units_go(self):
        root = pathlib.Path(__file__).resolve().parent.parent
        sources = sorted(p for p in (root / "src/report").glob("*.cpp") if "_test" not in p.name)
        with tempfile.TemporaryDirectory() as folder:
            listing, units = pathlib.Path(folder, "list"), pathlib.Path(folder, "units")
            units.mkdir()
            units.joinpath("stale.cpp").write_text("")
            listing.write_text("\n".join(map(str, sources)))
            made = subprocess.run([sys.executable, root / "tools/unity.py", units, listing],
                                  check=True, capture_output=True, text=True).stdout.split()
            self.assertEqual(sorted(made), sorted(str(p) for p in units.iterdir()))
            included = [line.split('"')[1] for path in made
                        for line in pathlib.Path(path).read_text().splitlines()
                        if line.endswith('.cpp"')]
            self.assertEqual(sorted(included), [str(p) for p in sources])
            self.assertLess(len(made), len(sources))


if __name__ == "__main__":
    unittest.main()
