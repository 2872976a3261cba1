"""What pairing, layout and analyses cost: many names, and checkpoints whose layouts agree."""
import json
import os
import random
import re
import struct
import subprocess

import numpy as np

# What the parts of a layer are called: by Hugging Face, by GGUF, and by nobody.
PARTS = [
    ("input_layernorm", "attn_norm", "first_normaliser"),
    ("self_attn.q_proj", "attn_q", "mix_asking"),
    ("self_attn.k_proj", "attn_k", "mix_answering"),
    ("self_attn.v_proj", "attn_v", "mix_giving"),
    ("self_attn.o_proj", "attn_output", "mix_leaving"),
    ("post_attention_layernorm", "ffn_norm", "second_normaliser"),
    ("mlp.gate_proj", "ffn_gate", "wide_gating"),
    ("mlp.up_proj", "ffn_up", "wide_entering"),
    ("mlp.down_proj", "ffn_down", "wide_leaving"),
    ("self_attn.rotary", "attn_rot", "mix_turning"),
]


def names(count, style):
    """`count` names, ten a layer; style 0 to 2 as in PARTS, 3: like 2 with other words beside."""
    made = []
    for i in range(count):
        layer, part = i // len(PARTS), PARTS[i % len(PARTS)]
        made.append((f"model.layers.{layer}.{part[0]}.weight", f"blk.{layer}.{part[1]}.weight",
                     f"net.stack.{layer}.{part[2]}.kernel",
                     f"tower.{layer}.{part[2]}s.kernel")[style])
    return made


def words(count, seed):
    """Names of random words, of which the two sides share none."""
    chance = random.Random(seed)
    letters = "abcdefghij" if seed else "klmnopqrst"
    return [".".join("".join(chance.choices(letters, k=6)) for _ in range(4))
            for _ in range(count)]


def write(path, tensor_names, elements=4):
    """Shuffled, so that the order of the files says nothing."""
    order = list(enumerate(tensor_names))
    random.Random(len(path)).shuffle(order)
    size = 4 * elements
    header = json.dumps({name: {"dtype": "F32", "shape": [elements],
                                "data_offsets": [i * size, (i + 1) * size]} for i, name in order})
    header += " " * (-len(header) % 8)
    values = np.random.default_rng(1).standard_normal(len(order) * elements, dtype=np.float32)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode() + values.tobytes())


def checkpoint(path, layers, hidden, noise=0.0):
    """A model with the shapes of one: ten tensors a layer."""
    shapes = [[hidden], *[[hidden, hidden]] * 4, [hidden], *[[4 * hidden, hidden]] * 2,
              [hidden, 4 * hidden], [64]]
    entries, at = {}, 0
    for name, shape in zip(names(10 * layers, 0), shapes * layers):
        size = 4 * int(np.prod(shape))
        entries[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + size]}
        at += size
    header = json.dumps(entries)
    header += " " * (-len(header) % 8)
    chance, other = np.random.default_rng(1), np.random.default_rng(2)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header.encode())
        for first in range(0, at // 4, 1 << 22):
            values = chance.standard_normal(min(1 << 22, at // 4 - first), dtype=np.float32)
            if noise:
                values *= 1 + noise * other.standard_normal(values.size, dtype=np.float32)
            file.write(values.tobytes())


NAME_CASES = [
    ("the same names", lambda n: names(n, 0), lambda n: names(n, 0)),
    ("two conventions", lambda n: names(n, 0), lambda n: names(n, 1)),
    ("names alike", lambda n: names(n, 2), lambda n: names(n, 3)),
    ("no word in common", lambda n: words(n, 0), lambda n: words(n, 1)),
]


# What shows them, beside the analyses themselves.
REPORT_FLAGS = ["--generate-report", "--markdown-output", "--include-charts", "--review-friendly",
                "--sort-by-change-magnitude"]


def analysis_flags(program):
    """The flags that the help lists under analyses and that take nothing."""
    text = subprocess.run([program, "compare", "--help-all"], capture_output=True, text=True,
                          check=True).stdout
    group = text[text.index("\nanalyses"):].split("\n\n")[0]
    return re.findall(r"^ +(--[a-z-]+)(?![a-z-]| [A-Z]{2})", group, re.MULTILINE)


def run(bench, seconds, compare_seconds, best):
    """Adds the rows: `pairing: ...`, `layout: ...` and `analyses: ...`."""
    count, repeat = 50_000, bench.options.repeat
    if bench.wanted("pairing"):
        for name, make_a, make_b in NAME_CASES:
            key = name.replace(" ", "-")
            a = bench.file(f"names-{key}-a.safetensors", write, make_a(count))
            b = bench.file(f"names-{key}-b.safetensors", write, make_b(count))
            for option in ("--shape-only", "--no-diagnose"):
                command = [bench.program, a, b, option, "--brief"]
                bench.row(f"pairing: {count:,} x {count:,}, {name}, {option}",
                          best(repeat, lambda c=command: seconds(c)), "s", "the whole program")
    if bench.wanted("layout"):
        a = bench.file("checkpoint-a.safetensors", checkpoint, 12, 1024)
        b = bench.file("checkpoint-b.safetensors", checkpoint, 12, 1024, 1e-6)
        plain = best(repeat, lambda: compare_seconds(a, b, extra=["--align", "none"]))
        aligned = best(repeat, lambda: compare_seconds(a, b))
        bench.row("layout: time / time with --align none", aligned / plain, "x",
                  "layouts agree already")
    if bench.wanted("analyses"):
        a = bench.file("analysed-checkpoint-a.safetensors", checkpoint, 11, 1024)
        b = bench.file("analysed-checkpoint-b.safetensors", checkpoint, 11, 1024, 1e-3)
        command = [bench.program, a, b]
        flags = analysis_flags(bench.program) + REPORT_FLAGS
        # In turns, so that both see the same machine.
        costs = [(*bench.cost(command), *bench.cost(command + flags)) for _ in range(repeat)]
        plain_cpu, plain, asked_cpu, asked = (min(each) for each in zip(*costs))
        size = os.path.getsize(a) / 1e6
        bench.row("analyses: all of them / default command", asked / plain, "x",
                  f"{size:.0f} MB a side, {len(flags)} flags; {asked_cpu / plain_cpu:.2f} by CPU")
        bench.peak("analyses: all of them", command + flags)
