#!/usr/bin/env python3
"""clang-tidy over all sources, or over those that changed since a commit.

    lint.py [--changed BASE]

Sources are joined into units as tools/unity.py does: most of clang-tidy's time goes into headers,
so a unit of thirty files takes hardly longer than two of them. With --changed, changed sources are
checked, and for a changed header one source that includes it; that stops when the time is up and
says what it left out, so that a test run stays bounded.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import time

import unity

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "lint"
CHANGED_SECONDS = 300  # Some hundred files on two cores; most commits touch fewer.
UNIT_LINES_MAX = 2500  # Some 20 seconds each.

# Units include sources: that is their point.
NOT_IN_UNITS = "-bugprone-suspicious-include"
# Sizes in tests are small numbers that stand beside each other, `Values(2 * 4 * 8)`: a cast in each
# would hide the numbers and prevent nothing. A table of cases may be as long as there are cases.
NOT_IN_TESTS = "-bugprone-implicit-widening-of-multiplication-result,-readability-function-size"


def changed_paths(base, root=ROOT):
    """What differs from `base` in the working tree, uncommitted and new files included."""
    def listed(*command):
        return subprocess.run(["git", *command], cwd=root, check=True, capture_output=True,
                              text=True).stdout.split("\0")
    diff = listed("diff", "--name-only", "--diff-filter=d", "-z", base, "--")
    return [path for path in diff + listed("ls-files", "-oz", "--exclude-standard") if path]


def sources_to_check(changed, sources):
    """`sources`: path -> text of each source of the build. Changed ones, and one per header."""
    chosen = {path for path in changed if path in sources}
    for header in (path for path in changed if path.endswith(".h")):
        include = f'#include "{re.sub("^(src|include)/", "", header)}"'
        users = [path for path in sorted(sources) if include in sources[path]]
        own = header.removesuffix(".h") + ".cpp"
        if not chosen.intersection(users):
            chosen.update([own] if own in users else users[:1])
    return sorted(chosen)


def flags_of(command, joined):
    """What a source is compiled with, as clang-tidy takes it."""
    words = shlex.split(command)[1:]
    kept = words[:words.index("-o")]
    # In a joined unit, a variable may be named as a function elsewhere.
    return [word for word in kept if not (joined and word == "-Wshadow")]


def commands():
    """path -> command of each of our sources that the build compiles."""
    entries = json.loads((BUILD / "compile_commands.json").read_text())
    paths = {pathlib.Path(entry["file"]): entry["command"] for entry in entries}
    return {str(path.relative_to(ROOT)): command for path, command in paths.items()
            if path.is_relative_to(ROOT) and not path.is_relative_to(ROOT / "build")}


def units_of(paths, command_of):
    """The paths in groups that can be checked as one: compiled alike, and no name in the way."""
    alike = collections.defaultdict(list)
    for path in paths:
        alike[tuple(flags_of(command_of[path], True))].append(unity.Source(ROOT / path))
    return [[str(source.path.relative_to(ROOT)) for source in unit]
            for sources in alike.values() for unit in unity.units(sources, UNIT_LINES_MAX)]


def tidied(paths, command_of, deadline):
    """What clang-tidy says of some paths at once; None if there is a deadline and it has passed."""
    left = deadline and deadline - time.monotonic()
    if left is not None and left <= 0:
        return None
    checks = [NOT_IN_UNITS] + [NOT_IN_TESTS] * all(path.endswith("_test.cpp") for path in paths)
    source = BUILD / "units" / paths[0].replace("/", "_")
    source.write_text(unity.text_of([unity.Source(ROOT / path) for path in paths]))
    command = ["clang-tidy-14", "--quiet", f"--checks={','.join(checks)}", str(source), "--",
               *flags_of(command_of[paths[0]], len(paths) > 1)]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode else ""


def findings_in(text):
    """Each finding as its lines, without those that headers give again and again."""
    pieces = re.split(r"^(?=\S+:\d+:\d+: (?:error|warning): )", text, flags=re.M)
    return [piece.replace(f"{ROOT}/", "") for piece in pieces if re.match(r"\S+:\d+:", piece)]


def lint(paths, command_of, deadline):
    """(paths, findings or None if the time was up). A unit that does not compile is taken apart."""
    text = tidied(paths, command_of, deadline)
    if text and len(paths) > 1 and "[clang-diagnostic-error" in text:
        parts = [lint([path], command_of, deadline)[1] for path in paths]
        return paths, None if None in parts else [each for part in parts for each in part]
    return paths, None if text is None else findings_in(text)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--changed", metavar="BASE")
    base = parser.parse_args().changed
    command_of = commands()
    paths, deadline = sorted(command_of), None
    if base:
        texts = {path: (ROOT / path).read_text() for path in command_of}
        paths = sources_to_check(changed_paths(base), texts)
        deadline = time.monotonic() + CHANGED_SECONDS
    BUILD.joinpath("units").mkdir(exist_ok=True)
    said, late = set(), []
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        work = [pool.submit(lint, unit, command_of, deadline)
                for unit in units_of(paths, command_of)]
        for done in concurrent.futures.as_completed(work):
            unit, found = done.result()
            late += unit if found is None else []
            new = [each for each in found or [] if each not in said]
            said.update(new)
            print(*new, sep="", end="", flush=True)
    if late:
        print("lint: no time left for", *sorted(late))
    print(f"lint: {len(paths) - len(late)} of {len(paths)} files checked, {len(said)} findings")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
