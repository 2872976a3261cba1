"""Forward-hook dumps of many architectures with planted mistakes: are they found where they are?

    python3 tests/hunt/hooks.py [--seed 0] [--cases 6] [--family NAME] [--sealed] [--keep FOLDER]
    python3 tests/hunt/hooks.py --out FOLDER [--trained STEPS] [...]    only writes the cases
    python3 tests/hunt/hooks.py --score FOLDER [--weights] [--tally FILE]  scores, without torch
    python3 tests/hunt/hooks.py --score FOLDER --part 3                    every third case

Needs torch, transformers and timm, which the project itself does not: run it in an environment that
has them. architectures.py, more_architectures.py and late_architectures.py have the models. A is a
plain run in float32, captured by a forward hook on every module: one entry for each module, where
it was called first, with what it gave last. B is another run of the same model with one mistake, in
float64 (another order of rounding), in bfloat16 or with products in TF32; or a clean one in each of
these. Where a mistake shows first is not told by whoever wrote it, but measured: it is the first
module, in order of finishing, whose output changes when the same run is made with and without it,
of what the dump holds. `--trained STEPS` trains each model first, on a GPU where there is one
(training.py).
`--tally FILE` adds a line for each finding that was told, and whether it is right, for
calibrate.py.
"""
import argparse
import collections
import json
import multiprocessing
import os
import pathlib
import random
import subprocess
import tempfile

import calibrate

PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")


# What names each kind of mistake: a code, or a cause where the code is shared by many.
RIGHT = {
    "bias": {"offset", "bias_missing"},
    "transposed": {"transposed_weight"},
    "kernel": {"kernel_transposed"},
    "norm_weight": {"norm_weight"},
    "norm_eps": {"norm_epsilon"},
    "scale": {"scale", "norm_weight"},  # A norm that is scaled has another weight.
    "cast": {"cast", "quantization"},
    "rolled": {"token_shift", "row_permutation", "row_order", "block_permutation"},
    "empty": {"region", "reduction"},
    "dropout": {"dropout"},
    "batch_stats": {"batch_statistics", "norm_weight"},
    "coarse_product": {"cast", "precision_noise", "quantization"},
    "rows": {"block_permutation", "rows_moved", "token_shift", "row_permutation"},
    "columns": {"columns_lost"},
    "function": {"activation"},
    "attention_scale": {"attention_scale"},
    "rope_base": {"rope_frequency"},
}


def report(folder, weights):
    given = ["--weights", folder.parent / "weights.pt"] if weights else []
    made = subprocess.run([PROGRAM, folder / "a.pt", folder / "b.pt", "-o", "report", *given],
                          capture_output=True, timeout=300, check=False)
    return json.loads(made.stdout)


def words_of(finding):
    """Its code, and its cause where it has one."""
    return {finding["code"], finding["parameters"].get("cause")} - {None, "operator"}


def findings_at(said):
    first = said["first_divergence"]
    return [f for f in said["findings"] if first and f["pair"] == first["pair"]]


def tally(folder, truth, said, where, file):
    """A line for each finding that is told of a step, and no convention."""
    first = [said["first_divergence"]] if said["first_divergence"] else []
    places = {place["pair"]: place["name_a"] for place in first + said["next_divergences"]}
    for finding in said["findings"]:
        if finding["convention"] or finding["pair"] not in places:
            continue
        at_fault = places[finding["pair"]] in where
        named = calibrate.is_named(finding)
        right = at_fault and (not named or bool(words_of(finding) & RIGHT[truth["kind"]]))
        calibrate.add(file, folder.parent.name, calibrate.basis_of(finding), finding, right)


def score(folder, name, lines, weights=False, file=None):
    """Counts of one case; what is wrong with it is put into the lines."""
    truth = json.loads((folder / "truth.json").read_text())
    said = report(folder, weights)
    count = collections.Counter()
    first = said["first_divergence"]
    at = first["name_a"] if first else None
    codes = [f["code"] for f in findings_at(said)]
    if not truth["where"]:
        count["clean"] += 1
        count["quiet"] += first is None
        tally(folder, truth, said, set(), file)
        if first:
            lines.append(f"{name}: alarm on clean {truth['what']} at {at} {codes}: "
                         f"{first['explanation']}")
        return count
    where = set(truth["where"])
    # All parts of a tuple come of the module that is wrong: the sines with the cosines.
    stem = lambda name: name.rsplit(".", 1)[0] if name.rsplit(".", 1)[-1].isdigit() else name
    where |= {p["name_a"] for p in said["pairs"] for w in truth["where"]
              if stem(p["name_a"]) == stem(w) != w}
    tally(folder, truth, said, where, file)
    wrongly = [d["name_a"] for d in said["next_divergences"] if d["name_a"] not in where]
    count["bugs"] += 1
    count["located"] += at in where
    count["wrongly"] += len(wrongly)
    count["runs wrongly"] += bool(wrongly)
    words = set().union(*map(words_of, findings_at(said)))
    named = at in where and bool(words & RIGHT[truth["kind"]])
    count["named"] += named
    count["misnamed"] += at in where and bool(words) and not named
    if at not in where or wrongly or not named:
        lines.append(
            f"{name}: {truth['what']}: at {at} {codes} {sorted(words)}, want {sorted(where)[:3]}"
            + (f"; wrongly {wrongly[:4]}" if wrongly else ""))
    return count


def score_one(job):
    folder, weights, file = job
    lines = []
    count = score(folder, f"{folder.parent.name}/{folder.name}", lines, weights, file)
    return folder.parent.name, count, lines


def total_of(folders, weights=False, file=None, jobs=1):
    totals = collections.defaultdict(collections.Counter)
    with multiprocessing.Pool(jobs) as pool:
        for family, count, lines in pool.imap(score_one, ((f, weights, file) for f in folders)):
            totals[family].update(count)
            for line in lines:
                print(line, flush=True)
    everything = collections.Counter()
    for family, count in totals.items():
        print(f"{family:13}", dict(count), flush=True)
        everything.update(count)
    return everything


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=6)
    parser.add_argument("--family", action="append")
    parser.add_argument("--sealed", action="store_true", help="families for the last look only")
    parser.add_argument("--keep", help="a folder for the dumps")
    parser.add_argument("--out", help="a folder for the dumps, which are not scored")
    parser.add_argument("--trained", type=int, default=0, metavar="STEPS",
                        help="train each model for so many steps first")
    parser.add_argument("--score", help="a folder that was kept")
    parser.add_argument("--part", type=int, default=1, help="one of so many of these cases")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--tally", help="a file for calibrate.py")
    parser.add_argument("--weights", action="store_true", help="give the program the weights")
    options = parser.parse_args()
    if options.score:
        folders = sorted(p.parent for p in pathlib.Path(options.score).glob("*/*/truth.json"))
        print("all          ", dict(total_of(folders[::options.part], options.weights,
                                             options.tally, options.jobs)))
        return
    import architectures
    import late_architectures
    import more_architectures
    import planting
    import sealed
    families = {**sealed.SEALED, **late_architectures.SEALED} if options.sealed else {
        **architectures.FAMILIES, **more_architectures.FAMILIES, **late_architectures.FAMILIES}
    everything = collections.Counter()
    for family in options.family or families:
        with tempfile.TemporaryDirectory() as made:
            folder = pathlib.Path(options.out or options.keep or made) / family
            try:
                folders = planting.make(families[family], options.seed, options.cases, folder,
                                        options.trained)
            except (TypeError, ValueError, RuntimeError, AttributeError, ImportError,
                    KeyError) as problem:
                print(f"{family}: left out: {problem}", flush=True)
                continue
            if options.out:
                print(f"{family}: {len(folders)} cases", flush=True)
                continue
            everything.update(total_of(folders, options.weights, options.tally, options.jobs))
    if not options.out:
        print("all          ", dict(everything))


if __name__ == "__main__":
    main()
