"""All measures of diagnosis in one table, and what changed since a table that was kept.

    ./dev hunt --scoreboard [--keep FILE] [--against FILE] [--sets WORDS] [--captures FOLDER]

Fixtures are scored where ../shared is there, models captured by forward hooks where a folder of
them is given: hooks.py --out makes it. The hunts have seeds of their own, which --seed moves, so
that a last look is on models that nobody has seen. Of each set the table has what was planted,
located, named, and told wrongly: runs in which a right step was told, and clean runs with an alarm.
"""
import argparse
import ast
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

HUNT = "tests/hunt/hunt.py"
HOOKS = "tests/hunt/hooks.py"
SHARED = pathlib.Path("../shared/tools")
COLUMNS = ("planted", "located", "named", "second", "named second", "told wrongly", "clean",
           "alarms")


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found[1]) if found else 0


def of_fixtures(text):
    """What a score script prints last: "located 14/14, named 14/14, clean without alarm 4/4"."""
    last = text.strip().splitlines()[-1]
    clean = re.search(r"clean (?:without alarm|quiet) (\d+)/(\d+)", last)
    return {"planted": number(r"located \d+/(\d+)", last),
            "located": number(r"located (\d+)", last), "named": number(r"named (\d+)", last),
            "told wrongly": number(r"told wrongly (\d+)", last),
            "clean": int(clean[2]), "alarms": int(clean[2]) - int(clean[1])}


def of_hunt(text):
    """What hunt.py prints: a number and what it counts, in each line."""
    count = collections.Counter({m[2]: int(m[1]) for m in re.finditer(
        r"^ *(\d+) ([a-z].*)$", text, re.MULTILINE)})
    wrongly = len(re.findall(r"RIGHT STEP TOLD", text))
    clean = 0 if count["first: planted"] else count["runs"]
    return {"planted": count["first: planted"], "located": count["first: located"],
            "named": count["first: named"], "second": count["second: located"],
            "named second": count["second: named"], "told wrongly": wrongly, "clean": clean,
            "alarms": count["alarms on clean runs"]}


def of_hooks(text):
    count = collections.Counter(ast.literal_eval(re.search(r"^all +(\{.*\})", text, re.M)[1]))
    return {"planted": count["bugs"], "located": count["located"], "named": count["named"],
            "told wrongly": count["runs wrongly"], "clean": count["clean"],
            "alarms": count["clean"] - count["quiet"]}


def fixtures(name, *options):
    return [SHARED / f"score_{name}", *options], of_fixtures


def hunt(options, count, *more):
    kept = pathlib.Path(options.kept) / "-".join(word.strip("-") for word in more)
    command = [sys.executable, HUNT, "--jobs", "1", "--seed", str(options.seed), "--kept", kept,
               "--cases", str(max(1, count // options.part)), *more]
    return command, of_hunt


def captures(options, *more):
    command = [sys.executable, HOOKS, "--score", options.captures, "--jobs", "1",
               "--part", str(options.part), *more]
    return command, of_hooks


def sets_of(options):
    """Those that take longest first."""
    sets = {}
    if options.captures:
        sets["captures"] = captures(options)
        sets["captures, weights"] = captures(options, "--weights")
    sets["two of 12 layers"] = hunt(options, 12, "--mistakes", "2", "--layers", "12")
    sets["two, weights"] = hunt(options, 80, "--mistakes", "2", "--weights")
    sets["two"] = hunt(options, 120, "--mistakes", "2")
    sets["one, weights"] = hunt(options, 60, "--mistakes", "1", "--weights")
    sets["one"] = hunt(options, 80, "--mistakes", "1")
    sets["clean"] = hunt(options, 80, "--mistakes", "0")
    if SHARED.is_dir():
        sets["hooks"] = fixtures("hooks")
        sets["hooks, weights"] = fixtures("hooks", "--weights")
        for name in ("dumps", "parity", "named"):
            sets[name] = fixtures(name)
    words = options.sets.split(";") if options.sets else []
    return {name: each for name, each in sets.items() if not words or name in words}


def measured(command, read):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                          check=False, env={**os.environ, "OMP_NUM_THREADS": "1"})
    try:
        numbers = read(done.stdout)
    except (IndexError, TypeError, AttributeError):
        sys.exit(f"{command}: {done.stdout}{done.stderr}")
    # What is not as it should be has a line of its own, which begins with the case.
    lines = [line for line in done.stdout.splitlines() if ": " in line and "{'" != line[:2]
             and not line.startswith("all ")]
    return {"numbers": numbers, "lines": lines}


def shown(name, numbers, before):
    cells = []
    for column in COLUMNS:
        value = numbers.get(column)
        was = (before or {}).get(column)
        text = "" if value is None else str(value)
        if was is not None and value is not None and was != value:
            text += f" ({value - was:+})"
        cells.append(text)
    print(f"{name:20}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def changed(name, now, before):
    """The lines that are new, and those that are gone."""
    for line in now:
        if line not in before:
            print(f"+ {name}: {line}")
    for line in before:
        if line not in now:
            print(f"- {name}: {line}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--captures", help="a folder that hooks.py --out made")
    parser.add_argument("--seed", type=int, default=5_000_000, help="of the hunts")
    parser.add_argument("--kept", default="build/hunts", help="a folder for their cases")
    parser.add_argument("--part", type=int, default=1, help="one of so many cases")
    parser.add_argument("--sets", help="only these, with ; between them")
    parser.add_argument("--keep", help="a file to keep the table in")
    parser.add_argument("--against", help="a table that was kept")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    before = json.loads(pathlib.Path(options.against).read_text()) if options.against else {}
    sets = sets_of(options)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        jobs = {name: pool.submit(measured, *each) for name, each in sets.items()}
        table = {name: job.result() for name, job in jobs.items()}
    print(f"{'':20}" + "".join(f"{column:>14}" for column in COLUMNS))
    for name, found in table.items():
        shown(name, found["numbers"], before.get(name, {}).get("numbers"))
    for name, found in table.items():
        if name in before:
            changed(name, found["lines"], before[name]["lines"])
    if options.keep:
        pathlib.Path(options.keep).write_text(json.dumps(table, indent=1))


if __name__ == "__main__":
    main()
