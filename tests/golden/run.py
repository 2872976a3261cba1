#!/usr/bin/env python3
"""Runs the program on each case of this folder and compares everything it prints.

A case is a folder with `cmd`, the arguments of tensordiff, and `expected`: its stdout, then its
stderr if there is any, then its exit status. Numbers have to agree to nine digits. Cases run in
tests/data, 100 columns wide.

    run.py PROGRAM [--update] [CASE...]
"""
import difflib
import math
import os
import pathlib
import re
import shlex
import subprocess
import sys

GOLDEN = pathlib.Path(__file__).resolve().parent
DATA = GOLDEN.parent / "data"


def output_of(program, case):
    environment = {"PATH": os.environ["PATH"], "COLUMNS": "100", "LC_ALL": "C.UTF-8"}
    for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"):
        if name in os.environ:
            environment[name] = os.environ[name]
    arguments = shlex.split((case / "cmd").read_text())
    result = subprocess.run([program, *arguments], cwd=DATA, env=environment, timeout=120,
                            stdin=subprocess.DEVNULL, capture_output=True)
    text = result.stdout.decode()
    if result.stderr:
        text += "--- stderr\n" + result.stderr.decode()
    return text + f"--- exit {result.returncode}\n"


# Sums may differ in their last digits from one instruction set to the next; nothing else may.
FRACTION = re.compile(r"(-?\d+(?:\.\d+)?(?:e[-+]\d+)?)")


def agree(known, actual):
    if known == actual:
        return True
    ours, theirs = FRACTION.split(actual), FRACTION.split(known)
    return len(ours) == len(theirs) and all(
        x == y or (i % 2 == 1 and math.isclose(float(x), float(y), rel_tol=1e-9))
        for i, (x, y) in enumerate(zip(ours, theirs)))


def main():
    update = "--update" in sys.argv
    program, *wanted = [word for word in sys.argv[1:] if word != "--update"]
    program = str(pathlib.Path(program).resolve())
    cases = sorted(path.parent for path in GOLDEN.glob("*/cmd"))
    cases = [case for case in cases if not wanted or case.name in wanted]
    failed = 0
    for case in cases:
        expected = case / "expected"
        actual = output_of(program, case)
        known = expected.read_text() if expected.exists() else ""
        if agree(known, actual):
            continue
        if update:
            expected.write_text(actual)
            print(f"rewrote {case.name}")
            continue
        failed += 1
        print(f"{case.name}: output differs from {expected.relative_to(GOLDEN.parent.parent)}")
        sys.stdout.writelines(difflib.unified_diff(
            known.splitlines(True), actual.splitlines(True), "expected", "actual"))
    print(f"{len(cases) - failed} of {len(cases)} golden cases as expected")
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
