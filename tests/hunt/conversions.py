#!/usr/bin/env python3
"""Random models, converted by random rules, with none, one or two mistakes: are they told apart?

A case is right where the tensors with a planted mistake, and no others, are different, and the
conversion that is told has the rules that were applied. $TENSORDIFF says where the program is.

    conversions.py [--cases N] [--seed N] [-v]
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import calibrate

PROGRAM = os.path.abspath(os.environ.get("TENSORDIFF", "build/tensordiff"))

# What names each kind of mistake.
CODES = {"layers": {"other_tensor"}, "parts": {"parts_exchanged"}, "offset": {"offset"},
         "rope": {"rope_rows_missing", "row_order"}, "transposed": {"not_transposed"},
         "halves": {"parts_exchanged"}}
DTYPES = {"float32": "F32", "float16": "F16"}

# The parts of a layer under the names of A, and as other programs call them.
NAMES = {
    "plain": {},
    "meta": {"model.layers.": "layers.", "self_attn.q_proj": "attention.wq",
             "self_attn.k_proj": "attention.wk", "self_attn.v_proj": "attention.wv",
             "self_attn.o_proj": "attention.wo", "mlp.gate_proj": "feed_forward.w1",
             "mlp.down_proj": "feed_forward.w2", "mlp.up_proj": "feed_forward.w3",
             "input_layernorm": "attention_norm", "post_attention_layernorm": "ffn_norm",
             "model.embed_tokens": "tok_embeddings", "model.norm": "norm", "lm_head": "output"},
    "own": {"model.layers.": "net.stack_", "self_attn.": "mixer.", "_proj": "_map",
            "input_layernorm": "scale_one", "post_attention_layernorm": "scale_two",
            "model.embed_tokens": "net.words", "model.norm": "net.last_scale"},
}


def write_safetensors(path, tensors):
    header, data = {}, []
    at = 0
    for name, value in tensors.items():
        raw = np.ascontiguousarray(value).tobytes()
        header[name] = {"dtype": DTYPES[str(value.dtype)], "shape": list(value.shape),
                        "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + b"".join(data))


class Model:
    """A random decoder: sizes, and the tensors of A by (layer, part)."""

    def __init__(self, rng):
        self.layers = int(rng.integers(3, 7))
        self.head = int(rng.choice([8, 16]))
        self.kv_heads = int(rng.choice([1, 2]))
        self.heads = self.kv_heads * int(rng.choice([1, 2, 3]))
        self.hidden = self.head * self.heads if rng.random() < 0.6 else 16 * int(rng.integers(2, 5))
        self.inner = self.hidden if rng.random() < 0.2 else self.hidden * 2 + 16
        noise = lambda *shape: rng.standard_normal(shape, dtype=np.float32)
        attention = self.head * self.heads
        self.outside = {"model.embed_tokens.weight": noise(80, self.hidden),
                        "model.norm.weight": 1 + noise(self.hidden) / 10,
                        "lm_head.weight": noise(80, self.hidden)}
        self.parts = {
            "input_layernorm": lambda: 1 + noise(self.hidden) / 10,
            "post_attention_layernorm": lambda: 1 + noise(self.hidden) / 10,
            "self_attn.q_proj": lambda: noise(attention, self.hidden),
            "self_attn.k_proj": lambda: noise(self.head * self.kv_heads, self.hidden),
            "self_attn.v_proj": lambda: noise(self.head * self.kv_heads, self.hidden),
            "self_attn.o_proj": lambda: noise(self.hidden, attention),
            "mlp.gate_proj": lambda: noise(self.inner, self.hidden),
            "mlp.up_proj": lambda: noise(self.inner, self.hidden),
            "mlp.down_proj": lambda: noise(self.hidden, self.inner)}
        self.values = {(layer, part): make() for layer in range(self.layers)
                       for part, make in self.parts.items()}

    def state_dict(self):
        return dict(self.outside, **{f"model.layers.{layer}.{part}.weight": value
                                     for (layer, part), value in self.values.items()})


def turned_rows(value, head):
    """Halves of each head as neighbours."""
    rows = value.reshape(-1, 2, head // 2, value.shape[1])
    return rows.swapaxes(1, 2).reshape(value.shape)


class Conversion:
    """A random choice of rules, and how they make B; `skip` leaves rules out for some tensors."""

    def __init__(self, rng, model):
        self.model = model
        self.names = NAMES[str(rng.choice(list(NAMES)))]
        self.transposed = bool(rng.random() < 0.4)
        # Meta's names say by themselves how the rows of q and k stand.
        self.rope = self.names is NAMES["meta"] or bool(rng.random() < 0.3)
        self.offset = float(rng.choice([0, 0, -1]))
        self.half = bool(rng.random() < 0.3)
        self.fused = bool(rng.random() < 0.35) and not self.rope and self.names is NAMES["plain"]
        self.first = int(rng.choice([0, 1])) if self.names is NAMES["own"] else 0
        self.halves = bool(rng.random() < 0.2)

    def rules(self):
        chosen = [name for name in ("transposed", "rope", "fused", "half", "halves")
                  if getattr(self, name)]
        return chosen + (["offset"] if self.offset else [])

    def part(self, layer, part, skip=()):
        value = self.model.values[layer, part]
        if self.rope and part.endswith(("q_proj", "k_proj")) and "rope" not in skip:
            value = turned_rows(value, self.model.head)
        if self.halves and part == "mlp.down_proj" and "halves" not in skip:
            value = np.roll(value, len(value) // 2, 0)
        if self.offset and value.ndim == 1 and "offset" not in skip:
            value = value + np.float32(self.offset)
        if self.transposed and value.ndim == 2 and "transposed" not in skip:
            value = value.T
        return value

    def name(self, layer, part):
        name = f"model.layers.{layer + self.first}.{part}.weight"
        for old, new in self.names.items():
            name = name.replace(old, new)
        return name

    def convert(self, skip):
        """B, where skip[(layer, part)] are the rules left out or "exchanged"."""
        b = {}
        for name, value in self.model.outside.items():
            for old, new in self.names.items():
                name = name.replace(old, new)
            is_norm = value.ndim == 1
            b[name] = value + np.float32(self.offset) if is_norm and self.offset else value
        for layer in range(self.model.layers):
            made = {part: self.part(skip.get((layer, part), {}).get("layer", layer), part,
                                    skip.get((layer, part), {}).get("without", ()))
                    for part in self.model.parts}
            if self.fused:
                axis = 1 if self.transposed else 0
                order = skip.get((layer, "self_attn.qkv_proj"), {}).get("order", "qkv")
                made["self_attn.qkv_proj"] = np.concatenate(
                    [made.pop(f"self_attn.{each}_proj") for each in order], axis)
                made["mlp.gate_up_proj"] = np.concatenate(
                    [made.pop("mlp.gate_proj"), made.pop("mlp.up_proj")], axis)
            for part, value in made.items():
                b[self.name(layer, part)] = value
        return {name: value.astype(np.float16) if self.half else value for name, value in b.items()}

    def mistake(self, rng):
        """What to leave out, and the names of B that are guilty of it."""
        layer = int(rng.integers(self.model.layers))
        kinds = ["layers"]
        if self.rope:
            kinds.append("rope")
        if self.offset:
            kinds.append("offset")
        if self.transposed and self.model.head * self.model.heads == self.model.hidden:
            kinds.append("transposed")
        if self.halves:
            kinds.append("halves")
        if self.fused and self.model.heads == self.model.kv_heads:
            kinds.append("parts")
        kind = str(rng.choice(kinds))
        if kind == "layers":
            # A rule of one kind alone is told by the tensors in place: here, more than two.
            told = not self.halves or self.model.layers > 4
            part = str(rng.choice(["self_attn.o_proj", "mlp.down_proj"][:1 + told]))
            other = (layer + 1) % self.model.layers
            return {(layer, part): {"layer": other}, (other, part): {"layer": layer}}, kind
        if kind == "parts":
            return {(layer, "self_attn.qkv_proj"): {"order": "vkq"}}, kind
        part = {"rope": "self_attn.q_proj", "offset": "input_layernorm",
                "transposed": "self_attn.o_proj", "halves": "mlp.down_proj"}[kind]
        return {(layer, part): {"without": (kind,)}}, kind


def run(folder, a, b):
    write_safetensors(folder / "a.safetensors", a)
    write_safetensors(folder / "b.safetensors", b)
    done = subprocess.run([PROGRAM, "a.safetensors", "b.safetensors", "-o", "report"], cwd=folder,
                          capture_output=True, timeout=600)
    return json.loads(done.stdout)


def faults_of(report, guilty, conversion):
    """What is wrong with a report, as sentences."""
    bare = lambda name: name.split("[")[0]
    told = {bare(row["name_b"]) for row in report["pairs"]
            if row["status"] not in ("identical", "equal", "close")}
    faults = [f"hidden: {name}" for name in sorted(guilty - told)]
    faults += [f"falsely different: {name}" for name in sorted(told - guilty)]
    faults += [f"unpaired: {row['name']}" for side in ("only_a", "only_b") for row in report[side]]
    rules = {row["rule"] for row in report["conversion"]}
    for rule, word in (("transposed", "transposed"), ("rope", "RoPE order"), ("offset", "A - 1"),
                       ("halves", "halves exchanged")):
        if rule in conversion.rules() and not any(word in text for text in rules):
            faults.append(f"rule not told: {rule}")
    return faults


def tally(report, guilty, kinds, case, file):
    """A line for each finding, and whether it tells what was left out of the conversion."""
    for finding in report["findings"]:
        name = report["pairs"][finding["pair"]]["name_b"].split("[")[0]
        wanted = set().union(*(CODES[kind] for kind in kinds))
        basis = "conversion" if "its kind" in finding["explanation"] else "checkpoint"
        calibrate.add(file, f"conversion {case}", basis, finding,
                      name in guilty and finding["code"] in wanted)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--cases", type=int, default=1000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("-v", action="store_true")
    options.add_argument("--tally", help="a file for calibrate.py")
    options = options.parse_args()
    right = planted = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in range(options.cases):
            rng = np.random.default_rng([options.seed, case])
            model = Model(rng)
            conversion = Conversion(rng, model)
            skip, kinds = {}, []
            for _ in range(case % 3):
                mistake, kind = conversion.mistake(rng)
                # Two mistakes in one tensor may undo each other.
                if not set(mistake) & set(skip) and kind not in kinds:
                    skip.update(mistake)
                    kinds.append(kind)
            guilty = {conversion.name(layer, part) for layer, part in skip}
            planted += len(kinds)
            report = run(pathlib.Path(folder), model.state_dict(), conversion.convert(skip))
            tally(report, guilty, kinds, case, options.tally)
            faults = faults_of(report, guilty, conversion)
            right += not faults
            if faults or options.v:
                sizes = f"{model.layers} layers of {model.hidden}, {model.heads} heads"
                print(f"case {case}: {'wrong' if faults else 'right'}: {sizes}; "
                      f"rules {conversion.rules()}, planted {kinds}; {faults[:4]}")
    print(f"{right} of {options.cases} conversions right, {planted} mistakes planted "
          f"(seed {options.seed})")
    return 0 if right == options.cases else 1


if __name__ == "__main__":
    sys.exit(main())
