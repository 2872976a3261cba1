#!/usr/bin/env python3
"""Shows each rule of tidy.py failing where it must, and silent where it must."""

import unittest

import tidy

HEADER = "// What it is.\n"


def row(name, kind="Format", namespace="formats"):
    return (f"{HEADER}constinit const {kind} {namespace}::{name} = {{\n"
            f'    .name = "{name}",\n}};\n')


def listing(*names):
    members = ", ".join(f"&{name}" for name in names)
    return (f"{HEADER}namespace formats {{\n\n"
            f"inline constexpr const Format* kAll[] = {{\n    {members},\n}};\n\n}}\n")


def function(lines):
    """A function of that many lines, with all that makes counting braces hard."""
    body = ["int f(int a,", "      int b) {", '  const char* text = "}";',
            "  /* } */ char mark = '{';", '  auto raw = R"(}', '})";',
            "  for (int i = 0; i < 1'000; ++i) {", "  }  // }"]
    return "\n".join(body + ["  ++a;"] * (lines - len(body) - 1) + ["}"]) + "\n"


LONG = tidy.FUNCTION_LINES_MAX + 1

# Rule: a tree that breaks it, and the place and words of the one problem it must name.
BROKEN = [
    (tidy.text_is_clean, {"a.md": "one\ntwo"}, "a.md:2: no newline"),
    (tidy.text_is_clean, {"a.md": "one \n"}, "a.md:1: space at the end"),
    (tidy.text_is_clean, {"a.md": "one\r\n"}, "a.md:1: space at the end"),
    (tidy.text_is_clean, {"a.md": b"\xff\n".decode(errors="replace")}, "a.md:1: not UTF-8"),
    (tidy.files_are_short, {"src/a_test.cpp": "\n" * 401}, "src/a_test.cpp:1: 401 lines"),
    (tidy.lines_are_short, {"dev": "\n" + "x" * 101 + "\n"}, "dev:2: longer"),
    (tidy.files_say_what_they_are, {"src/a.h": "#pragma once\n"}, "src/a.h:1: does not open"),
    (tidy.files_say_what_they_are, {"src/a.cpp": "int a;\n"}, "src/a.cpp:1: does not open"),
    (tidy.todo_has_issue, {"a.py": "# TODO: later\n"}, "a.py:1: TODO without an issue"),
    (tidy.no_path_of_one_machine, {"a.md": "see '/home/x'\n"}, "a.md:1: '/home' exists"),
    (tidy.no_path_of_one_machine, {"dev": "cd /work\n"}, "dev:1: '/work' exists"),
    (tidy.no_registry_host, {"a.json": '"https://registry.example/x"\n'},
     "a.json:1: 'https://registry.example'"),
    (tidy.layers_look_down, {"src/base/a.h": '#include "tensor/b.h"\n'},
     "src/base/a.h:1: base must not include tensor"),
    (tidy.layers_look_down, {"src/match/a.h": '\n#include "formats/pickle/b.h"\n'},
     "src/match/a.h:2: match must not include formats"),
    (tidy.layers_look_down, {"src/report/a.cpp": '#include "pipeline.h"\n'},
     "report must not include pipeline"),
    (tidy.layers_look_down, {"src/pipeline.cpp": '#include "cli/command.h"\n'},
     "pipeline must not include cli"),
    (tidy.layers_look_down, {"src/serve/a.cpp": '#include "cli/command.h"\n'},
     "serve must not include cli"),
    (tidy.layers_look_down, {"src/layout/a.h": '#include "compare/b.h"\n'},
     "layout must not include compare"),
    (tidy.layers_look_down, {"src/cli/a.cpp": '#include "utils/b.h"\n'},
     "src/cli/a.cpp:1: there is no folder utils to include"),
    (tidy.layers_are_known, {"src/utils/a.h": HEADER}, "src/utils/a.h:1: utils is not in LAYERS"),
    (tidy.layers_are_known, {"src/odd_test.cpp": HEADER}, "src/odd_test.cpp:1: odd is not in"),
    (tidy.layers_are_known, {"src/loose.h": HEADER}, "src/loose.h:1: loose is not in LAYERS"),
    (tidy.only_the_shell_prints, {"src/base/a.cpp": '  std::cerr << "x";\n'}, "std::cerr"),
    (tidy.only_the_shell_prints, {"src/base/a.cpp": '  printf("x");\n'}, "printf"),
    (tidy.only_the_shell_prints, {"src/report/a.cpp": '  fmt::print("x");\n'}, "fmt::print"),
    (tidy.only_the_shell_prints, {"src/pipeline.cpp": "  std::exit(2);\n"}, "std::exit"),
    (tidy.nothing_throws, {"src/base/a.cpp": "  throw Error();\n"}, "src/base/a.cpp:1: "),
    (tidy.try_stands_first_in_lists, {"src/a.cpp": "\n  return View{shape,\n    TRY(f())};\n"},
     "src/a.cpp:3: TRY after"),
    (tidy.no_macro_but_try, {"src/base/a.h": "#define MAX(a, b) a\n"}, "macro MAX"),
    (tidy.functions_are_short, {"src/a.cpp": "namespace x {\n" + function(LONG) + "}\n"},
     f"src/a.cpp:2: a function of {LONG} lines"),
    (tidy.functions_are_short, {"src/a.h": "class A : B {\n " + function(LONG) + "};\n"},
     f"src/a.h:2: a function of {LONG} lines"),
    (tidy.functions_are_short, {"src/a.cpp": "struct Options o = {};\n" + function(LONG)},
     f"src/a.cpp:2: a function of {LONG} lines"),
    (tidy.sources_have_tests, {"src/base/a.cpp": HEADER, "src/base/a.h": HEADER,
                               "src/base/b_test.cpp": '#include "base/aa.h"'},
     "src/base/a.cpp:1: has no test"),
    (tidy.sources_have_tests, {"src/formats/npy.cpp": row("npy"),
                               "src/formats/npz_test.cpp": "formats::npyx.open()\n"},
     "src/formats/npy.cpp:1: has no test"),
    (tidy.sources_have_tests, {"src/cli/main.cpp": HEADER}, "src/cli/main.cpp:1: has no test"),
    (tidy.variants_are_listed, {"src/formats/npy.cpp": row("npy"),
                                "src/formats/format.h": listing()},
     "src/formats/npy.cpp:2: formats::npy is not listed in formats::kAll"),
    (tidy.variants_are_listed, {"src/formats/npy.cpp": row("npy")}, "npy is not listed"),
    (tidy.variants_are_listed, {"src/formats/format.h": listing("npy")},
     "src/formats/format.h:1: formats::npy is listed but not defined"),
    (tidy.variants_are_documented, {"src/match/exact.cpp": row("exact", "Matcher", "matchers")},
     "src/match/exact.cpp:2: 'exact' has no row '| `exact` |' in docs/matching.md"),
    (tidy.variants_are_documented, {"docs/formats.md": "\n| `gone` | x |\n"},
     "docs/formats.md:1: there is no 'gone' in the program"),
]

# Rule: a tree that looks as if it broke it, and does not.
WHOLE = [
    (tidy.text_is_clean, {"a.md": "one\n", "empty.py": ""}),
    (tidy.files_are_short, {"src/a.cpp": "\n" * 400, "LICENSE": "\n" * 500}),
    (tidy.lines_are_short, {"a.py": "ü" * 100 + "\n", "a.md": "x" * 200 + "\n"}),
    (tidy.files_say_what_they_are, {"src/a.h": HEADER, "src/a.cpp": "int a;\n"}),
    (tidy.todo_has_issue, {"a.py": "# TODO(#12): later\n"}),
    (tidy.no_path_of_one_machine, {"a.md": "https://a.org/root ../root src/work/a.h /rooted\n"}),
    (tidy.no_registry_host, {"a.md": "the registry of https://a.org\n"}),
    (tidy.layers_look_down, {"src/cli/a.cpp": '#include "base/b.h"\n#include "pipeline.h"\n',
                             "src/api.cpp": '#include "tensordiff/tensordiff.h"\n',
                             "src/formats/pickle/vm.h": '#include "formats/pickle/op.h"\n',
                             "tests/fuzz/a.cpp": '#include "cli/x.h"\n'}),
    (tidy.layers_are_known, {"src/base/a.h": HEADER, "src/pipeline.h": HEADER,
                             "src/api_test.cpp": HEADER, "tests/scenarios/odd_test.cpp": ""}),
    (tidy.only_the_shell_prints, {"src/cli/a.cpp": "printf(x); exit(1);\n",
                                  "src/base/a.cpp": "snprintf(x); on_exit(); // exit\n"}),
    (tidy.nothing_throws, {"src/a.cpp": "// Does not throw.\n"}),
    (tidy.try_stands_first_in_lists, {"src/a.cpp": "View{TRY(f()), 1};\n{ g(1, TRY(f())); }\n"}),
    (tidy.no_macro_but_try, {"src/a.h": "#define TRY(x) x\n#define HWY_TARGET_INCLUDE 1\n"}),
    (tidy.functions_are_short, {"src/a.cpp": function(LONG - 1) * 2,
                                "src/a_test.cpp": function(LONG),
                                "src/rows.cpp": "const Row k[] = {" + "\n{1},\n" * 99 + "};\n"}),
    (tidy.sources_have_tests, {"src/a.cpp": HEADER, "src/a_test.cpp": "", "src/b.h": HEADER}),
    (tidy.sources_have_tests, {"src/a.cpp": HEADER, "src/b_test.cpp": '#include "a.h"\n'}),
    (tidy.sources_have_tests, {"src/formats/npy.cpp": row("npy"),
                               "src/formats/numpy_test.cpp": "formats::npy.open()\n"}),
    (tidy.sources_have_tests, {"src/cli/options_what.cpp":
                                   "constinit const OptionGroup option_groups::what = {kRows};\n",
                               "src/cli/options_test.cpp": "with(option_groups::what)\n"}),
    (tidy.sources_have_tests, {"src/pipeline.cpp": HEADER, "tests/smoke_test.py": ""}),
    (tidy.variants_are_listed, {"src/formats/npy.cpp": row("npy"),
                                "src/formats/format.h": listing("npy")}),
    (tidy.variants_are_documented, {"src/match/exact.cpp": row("exact", "Matcher", "matchers"),
                                    "docs/matching.md": "|name|\n| `exact` | x |\n"}),
]


class Tidy(unittest.TestCase):
    def test_names_each_broken_rule(self):
        for rule, tree, expected in BROKEN:
            with self.subTest(rule=rule.__name__, expected=expected):
                problems = rule(tree)
                self.assertEqual(len(problems), 1, problems)
                self.assertIn(expected, problems[0])

    def test_is_silent_where_rules_hold(self):
        for rule, tree in WHOLE:
            with self.subTest(rule=rule.__name__):
                self.assertEqual(rule(tree), [])

    def test_every_rule_is_seen_to_fail_and_to_hold(self):
        self.assertEqual({case[0] for case in BROKEN}, set(tidy.RULES))
        self.assertEqual({case[0] for case in WHOLE}, set(tidy.RULES))


if __name__ == "__main__":
    unittest.main()
