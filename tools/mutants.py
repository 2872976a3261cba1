#!/usr/bin/env python3
"""Mutation testing: do the tests notice when one thing in a source is wrong?

    tools/mutants.py [--per-file N] [--seed S] FILE=FILTER...

Of each file, N mutants are drawn: a comparison turned round, arithmetic swapped, a condition
negated, a constant moved by one, an early return left out. Each is built into build/release and
the unit tests of FILTER (as of --gtest_filter) are run. A mutant that they pass survives: it is
printed, and either a test is missing or the change makes no difference. One that does not compile
does not count. The file is put back after each; the tree must be clean before.
"""

import argparse
import pathlib
import random
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
TESTS_SECONDS_MAX = 300  # A mutant that runs on is killed, and counts as noticed.

# What is looked for in code, and what it becomes.
SWAPS = [
    (r" < ", " <= "), (r" <= ", " < "), (r" > ", " >= "), (r" >= ", " > "),
    (r" == ", " != "), (r" != ", " == "), (r" && ", " || "), (r" \|\| ", " && "),
    (r" \+ ", " - "), (r" - ", " + "), (r" \* ", " / "), (r"\+\+", "--"), (r" \+= ", " -= "),
    (r"\bif \(!", "if ("), (r"\bif \((?!!|const|auto)(?=[^;]*\))", "if (!"),
    (r"\btrue\b", "false"), (r"\bfalse\b", "true"), (r"\b1\b(?!')", "2"), (r"\b0\b(?!\.)", "1"),
    (r"^(\s+)return;", r"\1;"), (r"^(\s+)continue;", r"\1;"), (r"^(\s+)break;", r"\1;"),
    (r"\bany_of\b", "all_of"), (r"\ball_of\b", "any_of"), (r"std::min\b", "std::max"),
]

# Lines that hold no code worth changing: comments, includes, texts, types, assertions.
SKIPPED = re.compile(r"^\s*(//|#|\*|using |namespace |template|assert|static_assert|case )|^\}")


def without_texts(line):
    """The line with its strings and its comment blanked, column for column."""
    line = re.sub(r'"(?:\\.|[^"\\])*"', lambda text: '"' + "_" * (len(text[0]) - 2) + '"', line)
    return re.sub(r"//.*", lambda text: " " * len(text[0]), line)


def mutants_of(source):
    """(line number, line before, line after) of all mutants of a source, in order."""
    found = []
    for number, line in enumerate(source.split("\n")):
        if SKIPPED.match(line):
            continue
        plain = without_texts(line)
        for pattern, put in SWAPS:
            for at in re.finditer(pattern, plain):
                after = line[:at.start()] + at.expand(put) + line[at.end():]
                if after != line:
                    found.append((number, line, after))
    return found


def with_line(source, number, line):
    lines = source.split("\n")
    lines[number] = line
    return "\n".join(lines)


def drawn(source, count, seed):
    """So many mutants, spread over the file, the same for the same seed."""
    mutants = mutants_of(source)
    return sorted(random.Random(seed).sample(mutants, min(count, len(mutants))))


def build(jobs):
    command = ["cmake", "--build", str(BUILD), "-j", str(jobs), "--target", "unit_tests"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def tests_pass(tests):
    command = [str(BUILD / "unit_tests"), "--gtest_brief=1", f"--gtest_filter={tests}"]
    try:
        return subprocess.run(command, capture_output=True, check=False,
                              timeout=TESTS_SECONDS_MAX).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def outcome_of(path, source, mutant, tests, jobs):
    """"killed", "survived" or "does not build" for one mutant; the file is as before."""
    number, _, after = mutant
    path.write_text(with_line(source, number, after))
    try:
        if not build(jobs):
            return "does not build"
        return "survived" if tests_pass(tests) else "killed"
    finally:
        path.write_text(source)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--per-file", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only say what would be tried")
    parser.add_argument("files", nargs="+", metavar="FILE=FILTER")
    args = parser.parse_args()
    counts = {"killed": 0, "survived": 0, "does not build": 0}
    for each in args.files:
        name, _, tests = each.partition("=")
        path = ROOT / name
        source = path.read_text()
        for mutant in drawn(source, args.per_file, args.seed):
            number, before, after = mutant
            if args.list:
                print(f"{name}:{number + 1}: {before.strip()}  ->  {after.strip()}")
                continue
            outcome = outcome_of(path, source, mutant, tests or "*", args.jobs)
            counts[outcome] += 1
            print(f"{outcome:14} {name}:{number + 1}: {before.strip()}  ->  {after.strip()}",
                  flush=True)
    tried = counts["killed"] + counts["survived"]
    print(f"mutants: {counts['killed']} of {tried} killed, {counts['does not build']} do not build")
    return 0


if __name__ == "__main__":
    sys.exit(main())
