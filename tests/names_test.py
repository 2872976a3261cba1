#!/usr/bin/env python3
"""Every output is well-formed for any name in a file, as real parsers read it: xmllint, jq, PyYAML
and those of Python. $TENSORDIFF says where the program is."""

import csv
import html.parser
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unicodedata
import unittest
import xml.etree.ElementTree as xml

from serving import write_safetensors

PROGRAM = str(pathlib.Path(os.environ.get("TENSORDIFF", "build/tensordiff")).resolve())

# What no output may take for anything but text.
HOSTILE = [
    "plain", "", " ", "a b", "0", "1e5", "null", "no", "~", "- x", "a: b", "#x", "{", "[", "*x",
    "&x", "'", '"', "\\", "a\\|b", "|", "`", "``x`", "$x$", "@someone", "http://evil.example/",
    "www.evil.example", "<img src=x onerror=alert(1)>", "</title><script>alert(1)</script>", "]]>",
    "&amp;", "<!--", "--", "=1+1", "+1", "-1", "@SUM(1)", " =1+1", "\t=1", "\r=1", "＝1+1",
    "=cmd|' /C calc'!A0", "a,b", "a;b", '"a","b"', "\n", "a\nb", "a\r\nX: 1", "\x00", "\x07",
    "\x1b[31mred", "\x1b]0;title\x07", "\x7f", "\x80", "\x85", "\x9b31m", "\xa0", "\xad", "\u061c",
    "\u200b", "\u202egnp.exe", "\u2028", "\u2029", "\u2066x\u2069", "\ufeff", "\ufdd0", "\ufff9",
    "\ufffd", "\ufffe", "\uffff", "\U0001f600", "\U0001fffe", "\U000e0041\U000e0042", "\U0010ffff",
    "x" * 5000, "![x](y)", "[x](javascript:alert(1))", "# x", "> x", "1. x", "a" + "\u0301" * 50,
    "%s%n", "{}", "{0}", "../../etc/passwd", "层.0.权重",
]
COMPARE = ("text", "stats", "json", "yaml", "report", "csv", "markdown", "html", "junit")


def tensordiff(*arguments):
    result = subprocess.run([PROGRAM, *arguments], capture_output=True, timeout=120)
    return result.stdout.decode("utf-8"), result.stderr.decode("utf-8"), result.returncode


def by(program, text):
    return subprocess.run(program, input=text.encode(), capture_output=True, timeout=60)


class Tags(html.parser.HTMLParser):
    """The elements of a page and their attributes, without text and values."""

    def __init__(self, text):
        super().__init__()
        self.seen = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        # A pair that is no number has no data-n; the rest depends on no name.
        self.seen.append((tag, [name for name, _ in attributes if name != "data-n"]))

    def handle_comment(self, data):
        self.seen.append("comment")


def cells(row):
    """As GitHub splits the row of a table: at bars that no backslash escapes."""
    return re.findall(r"(?:\\.|[^|\\])*\|", row)


def bare(text):
    """Markdown without what a backslash escapes and without spans of code."""
    out, at = "", 0
    while at < len(text):
        ticks = re.match(r"`+", text[at:])
        if text[at] == "\\":
            at += 2
        elif ticks:
            end = re.compile(rf"(?<!`){ticks[0]}(?!`)").search(text, at + len(ticks[0]))
            at = end.end() if end else at + len(ticks[0])
        else:
            out += text[at]
            at += 1
    return out


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        folder = pathlib.Path(temporary.name).resolve()
        cls.folder = folder
        # Sides under plain names, and under names as bad as those of their tensors.
        for kind, names in (("plain", [f"t{i}" for i in range(len(HOSTILE))]), ("evil", HOSTILE)):
            (folder / kind).mkdir()
            for side, shift in (("a", 0.0), ("b", 1.0)):
                tensors = {name: ([2], [1.0 + shift, 2.0]) for name in names}
                tensors |= {f"{name}!{side}": ([1], [float("nan")]) for name in names}
                write_safetensors(folder / kind / f"{side}.safetensors", tensors)
        # A path may be anything but a slash and a zero, and need not be UTF-8.
        cls.paths = folder / "paths"
        for side in "ab":
            (cls.paths / side).mkdir(parents=True)
            write_safetensors(folder / "one", {"t": ([2], [1.0, ord(side)])})
            for i, name in enumerate(HOSTILE):
                raw = name.replace("/", "").replace("\0", "")[:60].encode()
                target = os.fsencode(cls.paths / side) + b"/%d" % i + raw + b"\xff.safetensors"
                shutil.copy(os.fsencode(folder / "one"), target)

    def sides(self, kind):
        return [self.folder / kind / f"{side}.safetensors" for side in "ab"]

    def clean(self, text, what):
        """Nothing in it moves the cursor, turns the direction or cannot be seen."""
        for c in set(text) - {"\n"}:
            point = ord(c)
            bad = (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp") or point & 0xfffe == 0xfffe
                   or 0xfdd0 <= point <= 0xfdef)
            self.assertFalse(bad, f"{what} has {point:#x}")

    def is_json(self, text, what):
        self.assertEqual(by(["jq", "-e", "."], text).stderr, b"", what)
        return json.loads(text)

    def is_yaml(self, text, what):
        # PyYAML belongs to the system's Python.
        program = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin.buffer), sys.stdout)"
        result = by(["/usr/bin/python3", "-c", program], text)
        self.assertEqual(result.stderr, b"", what)
        return json.loads(result.stdout)

    def is_xml(self, text, what):
        self.assertEqual(by(["xmllint", "--noout", "-"], text).stderr, b"", what)
        return xml.fromstring(text)

    def is_csv(self, text, what):
        rows = list(csv.reader(io.StringIO(text), strict=True))
        self.assertEqual({len(row) for row in rows}, {len(rows[0])}, what)
        for row in rows:
            for field in row:
                formula = re.match(r"\s*[=+\-@＝＋－＠]", field)
                self.assertFalse(formula and not re.fullmatch(r"-?[\d.]+(e[-+]\d+)?|-inf", field),
                                 f"{what}: {field}")
        return rows

    def is_markdown(self, text, what):
        table = None
        for line in text.split("\n"):
            if not line.startswith("|"):
                table = None
                continue
            table = table or len(cells(line))
            self.assertEqual(len(cells(line)), table, f"{what}: {line}")
        for mark in ("<img", "<script", "](", "://", "@someone", "www."):
            self.assertNotIn(mark, bare(text), what)

    def check(self, form, text, plain, what):
        self.clean(text, what)
        if form in ("json", "report"):
            return self.is_json(text, what)
        if form == "yaml":
            return self.is_yaml(text, what)
        if form == "junit":
            return self.is_xml(text, what)
        if form == "csv":
            return self.is_csv(text, what)
        if form == "markdown":
            return self.is_markdown(text, what)
        if form == "html":
            self.assertEqual(Tags(text).seen, Tags(plain).seen, what)
        return None

    def test_compare(self):
        seen = {}
        for form in COMPARE:
            options = ("-o", form, "--match", "exact", "--top", "0", "--no-diagnose")
            text, complaint, status = tensordiff(*self.sides("evil"), *options)
            plain, _, _ = tensordiff(*self.sides("plain"), *options)
            self.assertEqual((complaint, status), ("", 1), form)
            seen[form] = self.check(form, text, plain, form)
        self.assertEqual({pair["name_a"] for pair in seen["report"]["pairs"]}, set(HOSTILE))
        self.assertEqual(seen["yaml"], seen["json"])
        self.assertEqual(len(seen["junit"].findall(".//testcase")), 3 * len(HOSTILE))
        self.assertEqual(len(seen["csv"]), 1 + 3 * len(HOSTILE))

    def test_explained_and_reviewed(self):
        for form in ("text", "markdown", "html", "junit"):
            for option in ("--review-friendly", "--generate-report", "--explain"):
                text, _, _ = tensordiff(*self.sides("evil"), "-o", form, option)
                self.clean(text, form)
                if form == "junit":
                    self.is_xml(text, form)
                if form == "markdown":
                    self.is_markdown(re.sub(r"(?m)^!\[.*\n", "", text), form)

    def test_other_commands(self):
        a, b = self.sides("evil")
        for command in (("show", a), ("show", a, "--stats"), ("check", a, b)):
            for form in ("text", "json"):
                text, complaint, _ = tensordiff(*command, "-o", form)
                self.clean(text + complaint, command[0])
                self.check(form, text, text, command[0])
        for form in ("text", "json", "csv", "markdown", "html"):
            text, complaint, _ = tensordiff("trend", a, b, a, "-o", form)
            self.clean(text + complaint, "trend")
            self.check(form, text, tensordiff("trend", a, b, a, "-o", form)[0], "trend " + form)

    def test_paths(self):
        for form in ("text", "json", "csv", "markdown", "html", "junit"):
            text, complaint, _ = tensordiff("batch", self.paths / "a", self.paths / "b", "-o", form)
            self.clean(text + complaint, form)
            self.check(form, text, text, "batch " + form)
        for form in COMPARE:
            text, complaint, _ = tensordiff(self.paths / "a", self.paths / "b", "-o", form)
            self.clean(text + complaint, form)
            self.check(form, text, text, "paths " + form)

    def test_messages(self):
        for name in HOSTILE:
            name = name.replace("\0", "")
            if not name or name.startswith("-"):
                continue
            for arguments in ((name, name), ("show", self.sides("evil")[0], "nosuch" + name),
                              (*self.sides("evil"), "--ignore-keys-regex", "(" + name),
                              (*self.sides("evil"), "--out", "/nosuch/" + name),
                              (*self.sides("evil"), "--threshold", name + "=1")):
                _, complaint, status = tensordiff(*map(str, arguments))
                self.assertEqual(status, 2, arguments)
                self.clean(complaint, arguments)


if __name__ == "__main__":
    unittest.main()
