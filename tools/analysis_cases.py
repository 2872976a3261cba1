#!/usr/bin/env python3
"""The table of planted cases in docs/analyses.md, from the tests of the analyses.

The analyses are those of the guide and two more; the last five rows are flags that shape a report.

A comment "// planted: ...", "// unknown: ..." or "// edge: ..." directly above a test says what the
test plants. Every analysis needs one of each. What an analysis cannot know is taken from its own
section of the page.

    tools/analysis_cases.py          rewrite the table
    tools/analysis_cases.py check    fail where it is out of date or a case is missing
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "analyses.md"
BEGIN, END = "<!-- cases: tools/analysis_cases.py -->", "<!-- end of cases -->"
KINDS = ("planted", "edge", "unknown")
MARK = re.compile(r"^// (planted|edge|unknown): (.+)\nTEST\((\w+), (\w+)\)", re.MULTILINE)
# The flags that shape the report are tested on the whole program, a class for each.
FLAGS = ("--sort-by-change-magnitude", "--review-friendly", "--generate-report",
         "--markdown-output", "--include-charts")
FLAG_TESTS = "tests/report_flags_test.py"
FLAG_MARK = re.compile(r"^    # (planted|edge|unknown): (.+)\n    def test_", re.MULTILINE)


def analyses(root):
    header = (root / "src/analyze/analysis.h").read_text()
    return re.findall(r"extern const Analysis (\w+);", header)


def analysis_of(suite, names):
    """The analysis that a suite tests: LowRankChange and ParamEfficiency are short forms."""
    for name in names:
        camel = "".join(part.capitalize() for part in name.split("_"))
        if camel.startswith(suite) or suite.startswith(camel):
            return name
    return None


def cases(root, names):
    found = {name: {kind: [] for kind in KINDS} for name in names}
    for path in sorted((root / "src/analyze").glob("*_test.cpp")):
        for kind, text, suite, _ in MARK.findall(path.read_text()):
            name = analysis_of(suite, names)
            if name is None:
                raise SystemExit(f"{path.name}: no analysis is called like the suite {suite}")
            found[name][kind].append(text)
    for part in (root / FLAG_TESTS).read_text().split("\nclass ")[1:]:
        name = "-" + re.sub(r"([A-Z])", r"-\1", part.split("(")[0]).lower()
        for kind, text in FLAG_MARK.findall(part):
            found[name][kind].append(text)
    return found


def limits(page, names):
    out = {}
    for name in names:
        section = re.search(rf"^##+ {name}\n(.*?)(?=^##|\Z)", page, re.MULTILINE | re.DOTALL)
        said = section and re.search(r"\*Cannot know\*(.+?)(?:\n\n|\Z)", section[1], re.DOTALL)
        out[name] = " ".join(said[1].split()) if said else ""
    return out


def table(root):
    names = analyses(root) + list(FLAGS)
    page = PAGE.read_text()
    found, cannot = cases(root, names), limits(page, names)
    lines = ["| analysis | planted | at the edge | unknown is right | cannot know |",
             "|---|---|---|---|---|"]
    missing = []
    for name in names:
        missing += [f"{name}: no test marked '{kind}'" for kind in KINDS if not found[name][kind]]
        if not cannot[name]:
            missing.append(f"{name}: docs/analyses.md does not say what it cannot know")
        cells = ["; ".join(found[name][kind]) for kind in KINDS]
        head = name if name in FLAGS else f"`{name}`"  # A name in code is one of an analysis.
        lines.append("| " + " | ".join([head, *cells, cannot[name]]) + " |")
    return "\n".join(lines), missing


def main():
    text, missing = table(ROOT)
    page = PAGE.read_text()
    if BEGIN not in page or END not in page:
        raise SystemExit(f"{PAGE.name}: the marks of the table are missing")
    start, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    fresh = page[:start] + "\n" + text + "\n" + page[end:]
    if sys.argv[1:] == ["check"]:
        if fresh != page:
            missing.append("docs/analyses.md is out of date: run tools/analysis_cases.py")
        for line in missing:
            print(line)
        raise SystemExit(1 if missing else 0)
    PAGE.write_text(fresh)
    for line in missing:
        print(line)


if __name__ == "__main__":
    main()
