#!/usr/bin/env python3
"""Installs what people read beside the program: manual pages, completions, licence, changelog.

    install_texts.py PROGRAM PREFIX [--debian]

The program writes its own pages and completions. With --debian, the changelog that Debian's
policy asks for is added. Everything is the same, byte for byte, at every run.
"""

import datetime
import email.utils
import gzip
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# A name that no mail can be sent to: the project has no address of its own.
MAINTAINER = "tensordiff maintainers <maintainers@tensordiff.invalid>"
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


def debian_changelog():
    """An entry for each version of CHANGELOG.md, at noon of its date."""
    entries = []
    for version, date in re.findall(r"^## \[([0-9.]+)\] - ([0-9-]+)$",
                                    (ROOT / "CHANGELOG.md").read_text(), re.M):
        noon = datetime.datetime.fromisoformat(f"{date}T12:00:00+00:00")
        entries.append(f"tensordiff ({version}-1) stable; urgency=medium\n\n"
                       f"  * Version {version}; see changelog.gz.\n\n"
                       f" -- {MAINTAINER}  {email.utils.format_datetime(noon)}\n")
    return "\n".join(entries).encode()


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


if __name__ == "__main__":
    main()
