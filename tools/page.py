#!/usr/bin/env python3
"""Holds the committed page to its sources: page.py check | stamp.

The page is built by Node (web/, npm run build), but neither the program nor this check needs it:
web/dist.sha256 records which sources the bundle in web/dist was built from, and what came out.
"""

import gzip
import hashlib
import pathlib
import sys

BUNDLE_BYTES_MAX = 120_000  # Compressed, all files together.
BUILD_FILES = ("index.html", "package.json", "package-lock.json", "tsconfig.json", "vite.config.ts")


def source_files(web):
    files = [web / name for name in BUILD_FILES]
    files += (path for path in (web / "src").rglob("*")
              if path.is_file() and not path.name.endswith(".test.ts"))
    return files


def bundle_files(web):
    return [path for path in (web / "dist").rglob("*") if path.is_file()]


def digest(web, files):
    """One number for names and contents of all files."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path.relative_to(web).as_posix()}\n".encode())
        total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


def stamp_text(web):
    return (f"sources {digest(web, source_files(web))}\n"
            f"bundle {digest(web, bundle_files(web))}\n")


def problems(web):
    stamp = web / "dist.sha256"
    recorded = stamp.read_text() if stamp.is_file() else ""
    wanted = stamp_text(web)
    found = [f"web/dist does not fit its {now.split()[0]}: run ./dev page"
             for was, now in zip(recorded.splitlines() or ["", ""], wanted.splitlines())
             if was != now]
    size = sum(len(gzip.compress(path.read_bytes(), 9)) for path in bundle_files(web))
    if size > BUNDLE_BYTES_MAX:
        found.append(f"web/dist: {size} bytes compressed, more than {BUNDLE_BYTES_MAX}")
    return found


def main():
    web = pathlib.Path(__file__).resolve().parent.parent / "web"
    if sys.argv[1:] == ["stamp"]:
        (web / "dist.sha256").write_text(stamp_text(web))
        return 0
    if sys.argv[1:] != ["check"]:
        print(__doc__, file=sys.stderr)
        return 2
    found = problems(web)
    print(*found or ["page: the bundle is that of its sources"], sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
