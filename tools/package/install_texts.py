#!/usr/bin/env python3
"""Installs what people read beside the program: manual pages, completions, licence, changelog.

    install_texts.py PROGRAM PREFIX [--debian]

The program writes its own pages and completions. With --debian, the files that Debian's policy
asks for are added. Everything is the same, byte for byte, at every run: SOURCE_DATE_EPOCH is its
only clock.
"""

import email.utils
import gzip
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MAINTAINER = "tensordiff maintainers <maintainers@tensordiff.org>"
COMPLETIONS = {
    "bash": "share/bash-completion/completions/tensordiff",
    "zsh": "share/zsh/vendor-completions/_tensordiff",
    "fish": "share/fish/vendor_completions.d/tensordiff.fish",
}


def output_of(program, *arguments):
    environment = {**os.environ, "LC_ALL": "C.UTF-8"}
    return subprocess.run([program, *arguments], check=True, capture_output=True,
                          env=environment).stdout


def commands_of(program):
    """The names under "commands:" in the help of the program."""
    text = output_of(program, "help").decode()
    section = text.split("\ncommands:\n")[1].split("\n\n")[0]
    return [line.split()[0] for line in section.splitlines()]


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o644)


def zipped(content):
    return gzip.compress(content, mtime=0)


def version():
    return re.search(r"project\(tensordiff VERSION ([0-9.]+)",
                     (ROOT / "CMakeLists.txt").read_text())[1]


def debian_changelog():
    when = email.utils.formatdate(int(os.environ.get("SOURCE_DATE_EPOCH", "0")))
    return (f"tensordiff ({version()}-1) stable; urgency=medium\n\n"
            f"  * Version {version()}; see changelog.gz.\n\n"
            f" -- {MAINTAINER}  {when}\n").encode()


def main():
    program, prefix = sys.argv[1], pathlib.Path(sys.argv[2])
    man = prefix / "share/man/man1"
    write(man / "tensordiff.1.gz", zipped(output_of(program, "help", "--man")))
    for command in commands_of(program):
        write(man / f"tensordiff-{command}.1.gz",
              zipped(output_of(program, "help", "--man", command)))
    for shell, path in COMPLETIONS.items():
        write(prefix / path, output_of(program, "completions", shell))
    doc = prefix / "share/doc/tensordiff"
    write(doc / "changelog.gz", zipped((ROOT / "CHANGELOG.md").read_bytes()))
    write(doc / "copyright", (ROOT / "tools/package/debian/copyright").read_bytes())
    if "--debian" in sys.argv:
        write(doc / "changelog.Debian.gz", zipped(debian_changelog()))
        write(prefix / "share/lintian/overrides/tensordiff",
              (ROOT / "tools/package/debian/lintian-overrides").read_bytes())


if __name__ == "__main__":
    main()
