#!/usr/bin/env python3
"""Writes files into a C++ source, compressed: embed.py OUT PAGE_FOLDER DEMO_FOLDER.

A folder that is not there has no files. The same files give the same source.
"""

import gzip
import hashlib
import pathlib
import sys

HEAD = """// Made by tools/embed.py; not to be edited.

#include "serve/assets.h"

namespace tensordiff::serve {
namespace {

using namespace std::string_view_literals;
"""


def literal(data):
    """Octal escapes have at most three digits, so that no digit after one is taken for its own."""
    lines = (data[i:i + 24] for i in range(0, len(data), 24))
    return "\n".join('    "' + "".join(f"\\{byte:03o}" for byte in line) + '"' for line in lines)


def array(name, folder):
    files = sorted(path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else []
    rows = []
    for path in files:
        data = path.read_bytes()
        packed = gzip.compress(data, 9, mtime=0)
        digest = hashlib.sha256(data).hexdigest()[:16]
        where = "/" + path.relative_to(folder).as_posix()
        rows.append(f'    {{"{where}",\n{literal(packed)}sv,\n    {len(data)}, "{digest}"}},\n')
    if not rows:
        return f"constexpr std::span<const Asset> {name};\n"
    return f"constexpr Asset {name}[] = {{\n{''.join(rows)}}};\n"


def main():
    out, page, demo = map(pathlib.Path, sys.argv[1:])
    text = HEAD + array("kPage", page) + array("kDemo", demo) + """
}  // namespace

std::span<const Asset> page_files() { return kPage; }
std::span<const Asset> demo_files() { return kDemo; }

}  // namespace tensordiff::serve
"""
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text)


if __name__ == "__main__":
    main()
