#!/usr/bin/env python3
"""Runs the commands on the pages under docs/ and compares what they print.

In a block ```console, a line that starts with "$ " is a command, and what follows it is its output.
A page says which files its commands find: <!-- files: name=path … -->, paths from the root of the
tree. Numbers have to agree to nine digits. $TENSORDIFF says where the program is; with
$TENSORDIFF_ROOT, it is the one that was installed into the system below that folder.

    docs_test.py [--update] [PAGE...]

With --update, what the commands print is written into the pages.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "golden"))
sys.path.insert(0, str(ROOT / "tools"))
from run import agree  # noqa: E402
from terminal_picture import draw  # noqa: E402

BLOCK = re.compile(r"(```console\n)(.*?)(```\n)", re.S)
FILES = re.compile(r"<!-- files: (.*?) -->", re.S)


def lay_out(page, folder):
    """Puts the files of a page into a folder, under the names that the page uses."""
    found = FILES.search(page)
    for word in found.group(1).split() if found else []:
        name, path = word.split("=")
        source = ROOT / path
        (shutil.copytree if source.is_dir() else shutil.copy)(source, folder / name)


def run_block(text, folder):
    """The block with the output that its commands have now."""
    program = pathlib.Path(os.environ.get("TENSORDIFF", ROOT / "build/tensordiff")).resolve()
    environment = {"PATH": f"{program.parent}:{os.environ['PATH']}", "COLUMNS": "110",
                   "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    root = os.environ.get("TENSORDIFF_ROOT")
    start = ["bash", "-c"]
    if root:
        environment["PATH"] = "/usr/bin:/bin:/usr/sbin:/sbin"
        start = ["chroot", root, "sh", "-c", f'cd "/{folder.relative_to(root)}" && eval "$0"']
    out = ""
    for line in text.splitlines():
        if not line.startswith("$ "):
            continue
        done = subprocess.run([*start, line[2:]], cwd=folder, env=environment, text=True,
                              stdin=subprocess.DEVNULL, capture_output=True, timeout=120)
        if done.returncode > 1:
            raise SystemExit(f"'{line[2:]}' ended with {done.returncode}: {done.stderr}")
        out += line + "\n" + done.stdout + done.stderr
    return out


def check(path, update):
    page = path.read_text()
    with tempfile.TemporaryDirectory(dir=os.environ.get("TENSORDIFF_ROOT")) as name:
        folder = pathlib.Path(name)
        lay_out(page, folder)
        actual = BLOCK.sub(lambda b: b[1] + run_block(b[2], folder) + b[3], page)
    if update and actual != page:
        path.write_text(actual)
    if update or agree(page, actual):
        return True
    wrong = [(a, b) for a, b in zip(page.splitlines(), actual.splitlines()) if a != b]
    print(f"{path.relative_to(ROOT)}: its commands print something else now")
    for known, now in wrong[:5]:
        print(f"  - {known}\n  + {now}")
    return False


def picture_is_current():
    """Whether the picture of a terminal in README.md shows what the program prints now."""
    program = pathlib.Path(os.environ.get("TENSORDIFF", ROOT / "build/tensordiff")).resolve()
    inputs = ["demo/reference.zip", "demo/constant_scale.tgz"]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    output = subprocess.run([program, *inputs, "--color", "always"], cwd=ROOT, env=environment,
                            text=True, capture_output=True).stdout
    drawn = draw(" ".join(["tensordiff", *inputs]), output)
    if agree((ROOT / "docs/demo.svg").read_text(), drawn):
        return True
    print("docs/demo.svg shows something else than the program prints; run ./dev pictures")
    return False


def main():
    update = "--update" in sys.argv
    named = [pathlib.Path(word).resolve() for word in sys.argv[1:] if not word.startswith("--")]
    pages = [path for path in named or sorted((ROOT / "docs").rglob("*.md"))
             if BLOCK.search(path.read_text())]
    failed = [path for path in pages if not check(path, update)]
    if not named and not update and not picture_is_current():
        return 1
    print(f"{len(pages) - len(failed)} passed, {len(failed)} failed")
    return 1 if failed or not pages else 0


if __name__ == "__main__":
    sys.exit(main())
