#!/usr/bin/env python3
"""Writes the source that defines kVersion and kCommit (src/base/build_info.h), if it changed.

    build_info.py OUTPUT VERSION
"""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# `git archive` puts the commit into this file; in a checkout it holds a pattern.
ARCHIVED = ROOT / "tools/package/commit.txt"


def commit():
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12",
               "--exclude=*"]
    if (ROOT / ".git").exists():
        try:
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            return done.stdout.strip()
        except (OSError, subprocess.CalledProcessError):
            pass
    archived = ARCHIVED.read_text().strip()
    return archived[:12] if re.fullmatch("[0-9a-f]{40}", archived) else "unknown"


def source(version, name):
    return ('#include "base/build_info.h"\n\n'
            "namespace tensordiff {\n\n"
            f'const char* const kVersion = "{version}";\n'
            f'const char* const kCommit = "{name}";\n\n'
            "}  // namespace tensordiff\n")


def main():
    output, version = pathlib.Path(sys.argv[1]), sys.argv[2]
    text = source(version, commit())
    # Written only if it changed: what is not newer is not compiled again.
    if not output.exists() or output.read_text() != text:
        output.write_text(text)


if __name__ == "__main__":
    main()
