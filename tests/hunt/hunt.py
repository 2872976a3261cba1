"""Random models with planted mistakes: how many does the program locate, and name?

    ./dev hunt [--cases 100] [--seed 0] [--mistakes 0|1|2] [--weights] [--layers N]

Every case is a model of its own (hunt/model.py) and a port of it, with no mistake, one, or two in
different layers. Counted apart, as hidden, are mistakes that nobody could see: one that moves its
step by less than 16 roundoffs of the type, or than four times what rounding alone moves it in a
port without mistakes, and one in what is NaN already. Nothing here passes or fails; a miss is
printed with the seed that makes it again.
"""
import argparse
import collections
import dataclasses
import json
import multiprocessing
import os
import pathlib
import subprocess
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")  # The cases run beside each other.
import numpy as np

import mistakes
import model

PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")
NAMES = {"q": "self_attn.q_proj", "k": "self_attn.k_proj", "v": "self_attn.v_proj",
         "o": "self_attn.o_proj", "gate": "mlp.gate_proj", "up": "mlp.up_proj",
         "down": "mlp.down_proj", "norm1": "input_layernorm", "norm2": "post_attention_layernorm"}
OF_HEADS = ("query", "key", "value", "post_attn")


def laid_out(values, stage, shape, layout):
    """Values [tokens, features] as a dump of this layout holds them."""
    if layout == "heads" and stage.startswith(OF_HEADS) and "resid" not in stage:
        return values.reshape(1, shape.tokens, -1, shape.dim).transpose(0, 2, 1, 3)
    if layout == "sequence":
        return values[:, None]
    return values if layout == "flat" else values[None]


def stored(made, shape):
    """The weights as a checkpoint names them."""
    tensors = {}
    for (layer, name), values in made.items():
        part, is_bias = name.removesuffix("_bias"), name.endswith("_bias")
        if is_bias and not (shape.norm == "layer" if part.startswith("norm") else shape.bias):
            continue
        if not shape.gated and part in ("gate", "up"):
            if part == "up":
                continue
            part = "up"  # As it is called where there is no other.
        kind = "bias" if is_bias else "weight"
        tensors[f"model.layers.{layer}.{NAMES[part]}.{kind}"] = values
    return tensors


def planted(shape, count, random):
    """So many mistakes, by layer."""
    layers = sorted(random.choice(shape.layers, count, replace=False).tolist())
    fitting = {layer: [place for place, kind in mistakes.KINDS.items() if kind.fits(shape, layer)]
               for layer in layers}
    return {layer: fitting[layer][random.integers(len(fitting[layer]))] for layer in layers}


def told(report):
    """The codes that the report gives at each (layer, stage) that makes an error, in order."""
    codes = collections.defaultdict(list)
    for finding in report["findings"]:
        codes[finding.get("pair")].append(finding["code"])
    first = report.get("first_divergence")
    places = ([first] if first else []) + report.get("next_divergences", [])
    return {(place.get("layer"), place.get("stage")): codes[place["pair"]] for place in places}


def made(shape, wrong, random, options, folder):
    """Writes a case and what is known of it: how far a mistake moves its step, what is hidden."""
    reference = model.Model(shape).run()
    port = model.Model(shape, True, wrong).run()
    clean = model.Model(shape, True).run()
    noise = {layer: model.distance(clean.dump[layer, stage], reference.dump[layer, stage])
             for layer, (stage, _) in wrong.items()}
    hidden = {layer: own < max(16 * model.ROUNDOFF[shape.dtype], 4 * noise[layer])
              for layer, own in port.own.items()}
    for layer in list(wrong)[1:]:
        stage, name = wrong[layer]
        lost = port.own[layer] == np.inf and name != "not_a_number"
        hidden[layer] |= lost or not np.isfinite(port.dump[layer, stage]).any()
    for name, run in (("a", reference), ("b", port)):
        layout = random.choice(["flat", "batch", "sequence", "heads"])
        model.save(folder / f"{name}.safetensors",
                   {f"{layer}_{stage}": laid_out(values, stage, shape, layout)
                    for (layer, stage), values in run.dump.items()}, shape.dtype)
    if options.weights:
        model.save(folder / "weights.safetensors", stored(reference.weights, shape), shape.dtype)
    return {"seed": shape.seed, "dtype": shape.dtype,
            "wrong": [{"layer": int(layer), "stage": stage, "name": name,
                       "own": float(port.own[layer]), "hidden": bool(hidden[layer])}
                      for layer, (stage, name) in wrong.items()]}


def make(options, seed, folder):
    random = np.random.default_rng([seed, 4])
    shape = model.random_shape(seed)
    if options.layers:
        shape = dataclasses.replace(shape, layers=options.layers)
    wrong = planted(shape, min(options.mistakes, shape.layers), random)
    truth = made(shape, wrong, random, options, folder)
    (folder / "truth.json").write_text(json.dumps(truth))


def compared(folder, seed):
    """The exit status, and what the program says of each place."""
    command = [PROGRAM, folder / "a.safetensors", folder / "b.safetensors", "-o", "report"]
    if (folder / "weights.safetensors").exists():
        command += ["--weights", folder / "weights.safetensors"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"seed {seed}: exit {done.returncode}: {done.stderr.decode()}")
    return done.returncode, told(json.loads(done.stdout))


def outcome(folder):
    """What came of one case: counts, and a line for each thing that is not right."""
    counts, lines = collections.Counter(runs=1), []
    truth = json.loads((folder / "truth.json").read_text())
    seed, dtype, wrong = truth["seed"], truth["dtype"], truth["wrong"]
    status, places = compared(folder, seed)
    first = next(iter(places), None)
    counts["alarms on clean runs"] += not wrong and bool(status)
    for number, each in enumerate(wrong):
        order = "second" if number else "first"
        order = f"{order}, hidden" if each["hidden"] else order
        place = each["layer"], each["stage"]
        # With two, one that is hidden may leave the place of the first to the other.
        found = place in places if len(wrong) > 1 else first == place
        codes = mistakes.KINDS[each["stage"], each["name"]].codes
        named = found and bool(set(places[place]) & set(codes))
        counts[f"{order}: planted"] += 1
        counts[f"{order}: located"] += found
        counts[f"{order}: named"] += named
        if not named:
            lines.append(f"seed {seed}: {'not named' if found else 'MISSED'} {order} {place[0]} "
                         f"{place[1]} {each['name']} ({each['own']:.2g}, {dtype}); told {places}")
    planted_at = {(each["layer"], each["stage"]) for each in wrong}
    extra = {place for place in places if place not in planted_at}
    counts["steps told that are right"] += len(extra)
    if extra:
        lines.append(f"seed {seed}: RIGHT STEP TOLD {sorted(extra)} {dtype}; "
                     f"planted {sorted(planted_at)}")
    return counts, lines


def work(job):
    options, seed = job
    with np.errstate(all="ignore"), tempfile.TemporaryDirectory() as folder:
        kept = pathlib.Path(options.kept or folder) / str(seed)
        if not (kept / "truth.json").exists():
            kept.mkdir(parents=True, exist_ok=True)
            make(options, seed, kept)
        return outcome(kept)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; then one more each")
    parser.add_argument("--mistakes", type=int, default=1, choices=(0, 1, 2))
    parser.add_argument("--weights", action="store_true", help="give the program the weights, too")
    parser.add_argument("--layers", type=int, help="of every model; else a few, as it comes")
    parser.add_argument("--kept", help="a folder that cases are kept in, and taken from")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    options = parser.parse_args()
    total = collections.Counter()
    with multiprocessing.Pool(options.jobs) as pool:
        jobs = ((options, options.seed + case) for case in range(options.cases))
        for counts, lines in pool.imap(work, jobs):
            total += counts
            for line in lines:
                print(line, flush=True)
    for what, count in sorted(total.items()):
        print(f"{count:7} {what}")


if __name__ == "__main__":
    sys.exit(main())
