"""Times this program against another build of it on the benches of pairing and layout.

    python3 bench/versus.py OTHER_PROGRAM [--program PATH] [--repeat N] [--count NAMES] [--out FILE]

Both programs run the same command on the same files in turn, so that a busy machine slows down
both. The least CPU time and the least wall time of each are kept. A ratio above 1 means that this
program is slower than the other. Data is made under build/bench.
"""
import argparse
import json
import os
import resource
import subprocess
import time

import pairing

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(ROOT, "build", "bench")


def cost(command):
    """CPU seconds and wall seconds of one run."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                          check=False)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(command)}: status {done.returncode}: {done.stderr.strip()}")
    return (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall)


def made(name, make, *rest):
    path = os.path.join(WORK, name)
    if not os.path.exists(path):
        make(path + ".part", *rest)
        os.replace(path + ".part", path)
    return path


def cases(count):
    """(what is measured, its files and options)."""
    for name, make_a, make_b in pairing.NAME_CASES:
        key = f"versus-{count}-{name.replace(' ', '-')}"
        a = made(f"{key}-a.safetensors", pairing.write, make_a(count))
        b = made(f"{key}-b.safetensors", pairing.write, make_b(count))
        for option in ("--shape-only", "--no-diagnose"):
            yield f"pairing: {count:,} x {count:,}, {name}, {option}", [a, b, option, "--brief"]
    a = made("versus-checkpoint-a.safetensors", pairing.checkpoint, 12, 1024)
    b = made("versus-checkpoint-b.safetensors", pairing.checkpoint, 12, 1024, 1e-6)
    plain = [a, b, "-o", "report", "--no-diagnose"]
    yield "layout: layouts agree", plain
    yield "layout: layouts agree, --align none", [*plain, "--align", "none"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("other")
    parser.add_argument("--program", default=os.path.join(ROOT, "build", "tensordiff"))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--count", type=int, default=50_000)
    parser.add_argument("--out")
    options = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    rows = []
    print(f"{'':58} {'this':>8} {'other':>8} {'ratio':>6}   (CPU s; wall s)")
    for name, arguments in cases(options.count):
        runs = {program: [] for program in (options.program, options.other)}
        for _ in range(options.repeat):
            for program, seen in runs.items():
                seen.append(cost([program, *arguments]))
        best = {program: [min(column) for column in zip(*seen)] for program, seen in runs.items()}
        here, there = best[options.program], best[options.other]
        rows.append({"name": name, "cpu": [here[0], there[0]], "wall": [here[1], there[1]]})
        print(f"{name:58} {here[0]:8.2f} {there[0]:8.2f} {here[0] / there[0]:6.2f}   "
              f"{here[1]:.2f} {there[1]:.2f} {here[1] / there[1]:.2f}", flush=True)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            json.dump({"repeat": options.repeat, "rows": rows}, file, indent=1)


if __name__ == "__main__":
    main()
