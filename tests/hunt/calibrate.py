"""How often findings are right: the table that every confidence comes from.

    python3 tests/hunt/hooks.py --out FOLDER --seed N
    python3 tests/hunt/hooks.py --score FOLDER [--weights] --tally TALLY
    python3 tests/hunt/calibrate.py TALLY ...

A tally has a line for each finding that a hunt was told: of which family of models, on what basis,
its code, and whether it named the mistake that was planted, at its place. Families are split in
two by their names: one half makes src/diagnose/hypotheses/calibration.h, the other one checks it.
The check is printed, and put into docs/diagnosis.md.
"""
import collections
import json
import pathlib
import sys
import zlib

ROOT = pathlib.Path(__file__).parent.parent.parent
TABLE = ROOT / "src/diagnose/hypotheses/calibration.h"
PAGE = ROOT / "docs/diagnosis.md"
BEGIN, END = "<!-- reliability -->\n", "<!-- end of reliability -->\n"
ENOUGH = 30  # As kEnough in confidence.cpp.
BINS = (0, 0.5, 0.7, 0.8, 0.9, 0.95, 1)
BASES = "given fitted unknown transform checkpoint conversion predictions".split()


def is_named(finding):
    """Says what is wrong, and not only that the step is."""
    return finding["code"] != "operator" or bool(
        {"cause", "function_b"} & set(finding.get("parameters", {})))


def basis_of(finding):
    """Of a finding in a dump: what its step stands on."""
    return finding.get("parameters", {}).get("standing", "transform")


def add(file, family, basis, finding, right):
    """One line, where a tally is wanted."""
    if not file:
        return
    with open(file, "a", encoding="utf-8") as tally:
        tally.write(json.dumps({"family": family, "basis": basis, "code": finding["code"],
                                "named": is_named(finding), "right": bool(right)}) + "\n")


def is_checked(family):
    """Half of the families, whatever else is in the corpus."""
    return zlib.crc32(family.encode()) % 2 == 1


def counted(lines):
    """(basis, code, named) -> [right, all]"""
    table = collections.defaultdict(lambda: [0, 0])
    for line in lines:
        row = table[line["basis"], line["code"], line["named"]]
        row[0] += line["right"]
        row[1] += 1
    return table


def confidence(table, line):
    """As confidence_of() in confidence.cpp."""
    share = collections.defaultdict(lambda: [0, 0])
    for (basis, code, named), (right, count) in table.items():
        if named != line["named"]:
            continue
        for key, fits in (("all", True), ("basis", basis == line["basis"]),
                          ("code", basis == line["basis"] and code == line["code"])):
            share[key][0] += fits * right
            share[key][1] += fits * count
    for key in ("code", "basis", "all"):
        right, count = share[key]
        if count >= ENOUGH or key == "all":
            return (right + 1) / (count + 2)
    return None


def write_table(table, families):
    rows = [f'    {{Basis::{basis}, "{code}", {str(named).lower()}, {right}, {count}}},\n'
            for (basis, code, named), (right, count) in sorted(
                table.items(), key=lambda item: (BASES.index(item[0][0]), item[0][1:]))]
    findings = sum(count for _, count in table.values())
    TABLE.write_text(f"""\
// Findings of the calibration corpus, counted: {findings}, in {len(families)} kinds of models.
// Written by tests/hunt/calibrate.py.

#pragma once

#include "diagnose/hypotheses/confidence.h"

namespace tensordiff::hypotheses {{

inline constexpr Counted kCalibration[] = {{
{"".join(rows)}}};

}}  // namespace tensordiff::hypotheses
""")


def reliability(table, lines):
    """Rows of a Markdown table: what was said of the other families, and what was right."""
    bins = collections.defaultdict(list)
    for line in lines:
        said = confidence(table, line)
        bins[next(i for i in range(len(BINS) - 1) if said <= BINS[i + 1])].append(
            (said, line["right"]))
    rows = ["| confidence | findings | mean confidence | right |\n", "|---|---|---|---|\n"]
    for i, found in sorted(bins.items()):
        said = sum(each for each, _ in found) / len(found)
        right = sum(good for _, good in found)
        rows.append(f"| {BINS[i]} to {BINS[i + 1]} | {len(found)} | {said:.2f} | "
                    f"{right} ({right / len(found):.0%}) |\n")
    return "".join(rows)


def main():
    lines = [json.loads(line) for path in sys.argv[1:]
             for line in pathlib.Path(path).read_text().splitlines()]
    used = [line for line in lines if not is_checked(line["family"])]
    held = [line for line in lines if is_checked(line["family"])]
    table = counted(used)
    write_table(table, {line["family"] for line in used})
    families = len({line["family"] for line in held})
    text = (f"Measured on {len(held)} findings in models of {families} families that the table "
            f"was not made of:\n\n" + reliability(table, held))
    print(text)
    page = PAGE.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    PAGE.write_text(page[:begin] + text + page[end:])


if __name__ == "__main__":
    main()
