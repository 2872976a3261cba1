#!/usr/bin/env python3
"""clang-tidy over what changed since a commit: lint_changed.py BASE [SECONDS].

Changed sources are checked, and for a changed header one source that includes it. Stops when the
time is up and says what it left out, so that a test run stays bounded; ./dev lint checks all.
"""

import concurrent.futures
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 300  # Some 40 files on two cores; most commits touch fewer.


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


def lint(path, deadline):
    """(path, None if the time was up, else what clang-tidy found)."""
    left = deadline - time.monotonic()
    if left <= 0:
        return path, None
    try:
        done = subprocess.run(["clang-tidy-14", "--quiet", "-p", "build/lint", path], cwd=ROOT,
                              capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        return path, None
    return path, done.stdout if done.returncode else ""


def main(base, seconds=SECONDS):
    tree = {str(path.relative_to(ROOT)): path.read_text() for path in ROOT.glob("src/**/*.cpp")}
    paths = sources_to_check(changed_paths(base), tree)
    deadline = time.monotonic() + float(seconds)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda path: lint(path, deadline), paths))
    found = [text for _, text in results if text]
    late = [path for path, text in results if text is None]
    print(*found, sep="\n", end="")
    if late:
        print("lint: no time left for", *late)
    print(f"lint: {len(paths) - len(late)} of {len(paths)} changed files checked, "
          f"{len(found)} with problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
