"""Times the program against what it should be measured by, side by side in one run.

    ./dev bench [--size MIB] [--repeat N] [--compare FILE] [--only TEXT,...] [--out FILE]

Every row is a ratio of two times taken in this run, best of several: the whole program (start to
exit, `-o report --no-diagnose`) against reading both mapped files with as many threads and nothing
else, against cmp, and against a numpy script with the same metrics. Data is made under build/bench.
"""
import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import threading
import time

import data
import default
import dtypes
import pairing
import serve
import transformer

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORK = os.path.join(ROOT, "build", "bench")
PROGRAM = os.path.join(ROOT, "build", "tensordiff")
TOOLS = os.path.join(ROOT, "build", "release")
MIB = 1 << 20


def best(repeat, action):
    return min(action() for _ in range(repeat))


def seconds(command):
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - start


def compare_seconds(a, b, threads=0, extra=()):
    options = ["--threads", str(threads)] if threads else []
    return seconds([PROGRAM, a, b, "-o", "report", "--no-diagnose", *options, *extra])


def raw_seconds(a, b, threads):
    out = subprocess.run([os.path.join(TOOLS, "raw_read"), str(threads), a, b],
                         capture_output=True, text=True, check=True)
    return float(out.stdout.split()[0])


def peak_anonymous(command):
    """The largest RssAnon that /proc shows while the command runs, in MiB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    peak = [0]

    def watch():
        while process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                    kib = [int(line.split()[1]) for line in status if line.startswith("RssAnon")]
                    peak[0] = max(peak[0], *kib)
            except (OSError, ValueError, TypeError):
                pass
            time.sleep(0.001)

    watcher = threading.Thread(target=watch)
    watcher.start()
    process.wait()
    watcher.join()
    return peak[0] / 1024


class Bench:
    program = PROGRAM
    tools = TOOLS

    def __init__(self, options):
        self.options = options
        self.rows = []
        self.cores = len(os.sched_getaffinity(0))

    def wanted(self, name):
        return any(text in name for text in self.options.only.split(","))

    def row(self, name, value, unit, note=""):
        self.rows.append({"name": name, "value": round(value, 4), "unit": unit, "note": note})
        print(f"  {name:<46} {value:>10.3f} {unit:<10} {note}", flush=True)

    def path(self, name):
        return os.path.join(WORK, name)

    def file(self, name, make, *arguments, **options):
        return data.once(self.path(name), make, *arguments, **options)

    def fresh(self, name, make, *arguments, **options):
        if os.path.exists(self.path(name)):
            os.remove(self.path(name))
        return self.file(name, make, *arguments, **options)

    def dtypes(self):
        dtypes.run(self)

    def cost(self, command):
        return default.cost(command)

    def raw_seconds(self, a, b, threads):
        return raw_seconds(a, b, threads)

    def peers(self):
        if not self.wanted("peers"):
            return
        size = self.options.size * MIB
        a = self.file(f"F32-{self.options.size}-a.safetensors", data.safetensors, "F32", size // 4)
        same = self.file(f"F32-{self.options.size}-same.safetensors", data.safetensors,
                         "F32", size // 4)
        b = self.file(f"F32-{size // 4}-1e-06-b.safetensors", data.safetensors,
                      "F32", size // 4, 1e-6)
        data.warm(a, same, b)
        cmp_time = best(self.options.repeat, lambda: seconds(["cmp", a, same]))
        raw = best(self.options.repeat, lambda: raw_seconds(a, same, self.cores))
        ours = best(self.options.repeat, lambda: compare_seconds(a, b))
        equal = best(self.options.repeat, lambda: compare_seconds(a, same))
        self.row("peers: cmp / raw read", cmp_time / raw, "x faster", "what reading alone allows")
        self.row("peers: cmp of identical files / f32", cmp_time / ours, "x faster")
        self.row("peers: cmp / ours, identical files", cmp_time / equal, "x faster",
                 "statistics included")
        side = int((size // 4) ** 0.5)
        row_a = self.file(f"square-{side}-a.npy", data.npy, side)
        row_b = self.file(f"square-{side}-b.npy", data.npy, side, 1e-6)
        data.warm(row_a, row_b)
        script = os.path.join(ROOT, "bench", "numpy_metrics.py")
        numpy_time = seconds([sys.executable, script, row_a, row_b])
        plain = best(self.options.repeat, lambda: compare_seconds(row_a, row_b))
        self.row("peers: numpy script / f32", numpy_time / plain, "x faster")
        column_b = self.file(f"square-{side}-b-fortran.npy", data.npy, side, 1e-6, True)
        data.warm(column_b)
        crossed = best(self.options.repeat, lambda: compare_seconds(row_a, column_b))
        self.row("peers: transposed f32: speed / row-major", plain / crossed, "x")

    def many(self):
        if not self.wanted("many"):
            return
        a = self.file("many-a.safetensors", data.many_tensors, 100_000, 16)
        b = self.file("many-b.safetensors", data.many_tensors, 100_000, 16, 1e-6)
        data.warm(a, b)
        for threads in sorted({1, self.cores}):
            ours = best(self.options.repeat, lambda: compare_seconds(a, b, threads))
            self.row(f"many: 100,000 pairs of 16, {threads} thread(s)", ours, "s")

    def growth(self):
        if not self.wanted("growth"):
            return
        rates = {}
        for size in [64, 256, 1024, 4096]:
            if size > 4 * self.options.size:
                continue
            count = size * MIB // 4
            # All written anew: how a file came into the page cache decides how fast it is read.
            a = self.fresh(f"F32-{size}-a.safetensors", data.safetensors, "F32", count)
            b = self.fresh(f"F32-{count}-1e-06-b.safetensors", data.safetensors, "F32", count, 1e-6)
            data.warm(a, b)
            ours = best(self.options.repeat, lambda: compare_seconds(a, b))
            rates[size] = ours / size
            self.row(f"growth: {size} MiB each: ns per byte pair", ours / (size * MIB) * 1e9, "ns",
                     f"{rates[size] / rates.get(256, rates[size]):.2f} of 256 MiB's")
            self.memory(f"growth: {size} MiB each", a, b)
        size = 8 * self.options.size
        a = self.file(f"sparse-{size}-a.safetensors", data.sparse, size * MIB // 4, 1.0)
        b = self.file(f"sparse-{size}-b.safetensors", data.sparse, size * MIB // 4, 2.0)
        self.memory(f"growth: {size} MiB each", a, b)

    def memory(self, name, a, b):
        self.peak(name, [PROGRAM, a, b, "-o", "report", "--no-diagnose"])

    def peak(self, name, command):
        self.row(f"{name}: peak anonymous memory", peak_anonymous(command), "MiB")

    def default(self):
        default.run(self)

    def pairing(self):
        pairing.run(self, seconds, compare_seconds, best)

    def serve(self):
        serve.run(self)

    def latency(self):
        if not self.wanted("latency"):
            return
        path = self.file(f"F32-{self.options.size}-a.safetensors", data.safetensors,
                         "F32", self.options.size * MIB // 4)
        data.warm(path)
        out = subprocess.run([os.path.join(TOOLS, "slice_latency"), path],
                             capture_output=True, text=True, check=True)
        for line in out.stdout.splitlines():
            layout, count, median, high = line.split()
            self.row(f"latency: slice of {count}, {layout}", float(median), "us",
                     f"99 %: {high} us")


    def diagnosis(self):
        """What telling noise from mistakes, and explaining these, adds to the comparison."""
        if not self.wanted("diagnosis"):
            return
        first, second = (1, "attention_scale"), (2, "rope_position")
        for layers, tokens, width in [(3, 64, 1024), (80, 256, 1024),
                                      (3840, 16, 256), (20, 2048, 8192)]:
            shape = f"{layers} layers of [1, {tokens}, {width}]"
            name = f"model-{layers}-{tokens}-{width}"
            a = self.file(f"{name}-a.safetensors", transformer.dump, layers, tokens, width)
            for case, mistakes in [("all noise", ()), ("a mistake in layer 1", (first,)),
                                   ("mistakes in layers 1 and 2", (first, second))]:
                b = self.file(f"{name}-{len(mistakes)}-b.safetensors", transformer.dump, layers,
                              tokens, width, transformer.NOISE, mistakes)
                data.warm(a, b)
                command = [PROGRAM, a, b, "-o", "report"]
                plain = default.least(self.options.repeat, [*command, "--no-diagnose"])
                full = default.least(self.options.repeat, command)
                self.row(f"diagnosis: {shape}, {case}", full[1] / plain[1], "x",
                         f"{full[1]:.2f} s; {full[0] / plain[0]:.2f} by CPU")


def machine():
    model = ""
    with open("/proc/cpuinfo", encoding="utf-8") as cpus:
        model = next((line.split(":")[1].strip() for line in cpus
                      if line.startswith("model name")), "")
    return {"cpu": model, "cores": len(os.sched_getaffinity(0)), "kernel": platform.release(),
            "load": round(os.getloadavg()[0], 1)}


def show_changes(rows, path):
    with open(path, encoding="utf-8") as file:
        before = {row["name"]: row["value"] for row in json.load(file)["rows"]}
    print(f"\nagainst {path}:")
    for row in rows:
        old = before.get(row["name"])
        if old:
            mark = "" if 0.9 <= row["value"] / old <= 1.1 else "  <-- moved"
            print(f"  {row['name']:<46} {old:>10.3f} -> {row['value']:>10.3f}{mark}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1024, help="MiB of each large file (1024)")
    parser.add_argument("--repeat", type=int, default=5,
                        help="runs of each, of which the best counts (5)")
    parser.add_argument("--compare", metavar="FILE",
                        help="show what moved against an earlier result")
    parser.add_argument("--only", default="",
                        help="only rows whose name has this text, or one of these: a,b")
    parser.add_argument("--out", help="where the result goes (bench/results/last.json, or nowhere"
                        " with --only)")
    options = parser.parse_args()
    os.makedirs(WORK, exist_ok=True)
    bench = Bench(options)
    here = machine()
    print(f"{here['cpu']}, {here['cores']} cores; "
          f"files of {options.size} MiB, best of {options.repeat}\n")
    for part in (bench.default, bench.dtypes, bench.peers, bench.many, bench.pairing, bench.growth,
                 bench.latency, bench.diagnosis, bench.serve):
        part()
    if options.compare:
        show_changes(bench.rows, options.compare)
    out = options.out or os.path.join(ROOT, "bench", "results", "last.json")
    if options.out or not options.only:
        result = {"date": datetime.date.today().isoformat(), "machine": here,
                  "size_mib": options.size, "rows": bench.rows}
        with open(out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)
            file.write("\n")


main()
