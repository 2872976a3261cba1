"""What diagnosis adds on dumps of a large model: 80 layers of 13 stages at [1, 2048, 8192], bf16.

A model of that size needs a GPU and PyTorch, and two dumps of 21 GB (29 GB with --share 1) a place
to lie, so this is a command of its own:

    python3 bench/full_size.py [--folder /dev/shm] [--cores 2] [--case NAME ...]

The second run is a port: fused attention instead of the plain one, and every projection summed in
two halves as on two ranks. Each case plants mistakes in it; all later steps carry them on.
"""
import argparse
import json
import os
import pathlib
import struct
import subprocess
import time

import torch
import torch.nn.functional as functional

import transformer

PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")
HEAD = 128
EPSILON = 1e-5
# The mistakes of each case: by layer, a step and what is wrong with it.
CASES = {
    "noise": {},
    "scale": {1: "attention_scale"},
    "position": {1: "rope_position"},
    "epsilon": {1: "norm_epsilon"},
    "mlp": {1: "mlp_scale"},
    "heads": {1: "swapped_heads"},
    "tokens": {1: "token_shift"},
    "late": {60: "rope_position"},
    "two": {1: "attention_scale", 40: "mlp_scale"},
    "three": {1: "norm_epsilon", 2: "swapped_heads", 50: "token_shift"},
}


class Model:
    """A decoder of bf16 whose weights come from the number of the layer. `port` computes in another
    order; `wrong` has mistakes by layer."""

    def __init__(self, shape, port=False, wrong=()):
        self.shape, self.port, self.wrong = shape, port, dict(wrong)
        self.random = torch.Generator("cuda")

    def weight(self, outputs, inputs, gain=1.0):
        weight = torch.randn(outputs, inputs, generator=self.random, device="cuda",
                             dtype=torch.bfloat16)
        return weight.mul_(gain * inputs ** -0.5)

    def linear(self, x, outputs, gain=1.0):
        weight = self.weight(outputs, x.shape[1], gain)
        if not self.port:
            return x @ weight.T
        half = x.shape[1] // 2
        return x[:, :half] @ weight[:, :half].T + x[:, half:] @ weight[:, half:].T

    def norm(self, x, epsilon):
        weight = 1 + 0.3 * torch.randn(x.shape[1], generator=self.random, device="cuda")
        x = x.float()
        return (x * torch.rsqrt(x.square().mean(1, keepdim=True) + epsilon) * weight).bfloat16()

    def turned(self, x, first):
        heads = x.view(len(x), -1, HEAD).float()
        frequency = 5e5 ** (-torch.arange(HEAD // 2, device="cuda") / (HEAD // 2))
        angle = (torch.arange(len(x), device="cuda") + first)[:, None] * frequency
        cosine, sine = angle.cos()[:, None], angle.sin()[:, None]
        low, high = heads.chunk(2, -1)
        turned = torch.cat([low * cosine - high * sine, high * cosine + low * sine], -1)
        return turned.reshape(x.shape).bfloat16()

    def attention(self, query, key, value, scale):
        query, key, value = (x.view(len(x), -1, HEAD).transpose(0, 1) for x in (query, key, value))
        share = len(query) // len(key)
        key, value = key.repeat_interleave(share, 0), value.repeat_interleave(share, 0)
        if self.port:
            out = functional.scaled_dot_product_attention(
                query[None], key[None], value[None], is_causal=True, scale=scale)[0]
        else:
            scores = (query @ key.transpose(1, 2)).float() * scale
            later = torch.ones(scores.shape[1:], dtype=torch.bool, device="cuda").triu(1)
            out = scores.masked_fill_(later, -torch.inf).softmax(-1).bfloat16() @ value
        return out.transpose(0, 1).flatten(1)

    def layer(self, index, stream, put):
        self.random.manual_seed(index)
        wrong = self.wrong.get(index)
        width = stream.shape[1]
        gain = self.shape.gain
        normed = put(self.norm(stream, 0.05 if wrong == "norm_epsilon" else EPSILON))
        query = self.linear(normed, width)
        if wrong == "swapped_heads":
            query = torch.cat([query[:, HEAD:2 * HEAD], query[:, :HEAD], query[:, 2 * HEAD:]], 1)
        first = 3 if wrong == "rope_position" else 0
        put(query)
        query = put(self.turned(query, first))
        key = put(self.linear(normed, width // self.shape.share))
        key = put(self.turned(key, first))
        value = put(put(self.linear(normed, width // self.shape.share)))
        scale = HEAD ** -0.5 * (2 if wrong == "attention_scale" else 1)
        heads = self.attention(query, key, value, scale)
        heads = put(heads.roll(1, 0) if wrong == "token_shift" else heads)
        put(torch.tensor(HEAD ** -0.5, dtype=torch.float64))
        put(torch.tensor(0))
        stream = stream + put(self.linear(heads, width, gain))
        normed = put(self.norm(stream, EPSILON))
        gate, up = self.linear(normed, self.shape.inner), self.linear(normed, self.shape.inner)
        branch = self.linear(functional.silu(gate) * up, width, gain)
        return stream + put(branch * 2 if wrong == "mlp_scale" else branch)


def dump(path, model):
    """Runs the model and writes every stage where it belongs in a safetensors file."""
    shape = model.shape
    text = transformer.header_of(shape.layers, shape.tokens, shape.width, shape.share).encode()
    size = max(entry["data_offsets"][1] for entry in json.loads(text).values())
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + size)
    bytes_of = torch.from_file(str(path), shared=True, size=8 + len(text) + size, dtype=torch.uint8)
    at = 8 + len(text)

    def put(values):
        nonlocal at
        raw = values.contiguous().view(-1).view(torch.uint8)
        bytes_of[at:at + len(raw)].copy_(raw)
        at += len(raw)
        return values

    seeded = torch.Generator("cuda").manual_seed(5)
    stream = torch.randn(shape.tokens, shape.width, generator=seeded, device="cuda",
                         dtype=torch.bfloat16)
    for index in range(shape.layers):
        stream = model.layer(index, stream, put)
    assert at == len(bytes_of)


def measured(a, b, cores, *options):
    """Seconds of the program on so many cores, the better of two, and its report."""
    best = None
    for _ in range(2):
        start = time.monotonic()
        done = subprocess.run([PROGRAM, a, b, "-o", "report", *options], stdout=subprocess.PIPE,
                              preexec_fn=lambda: os.sched_setaffinity(0, range(cores)))
        took = time.monotonic() - start
        best = took if best is None else min(best, took)
    return best, json.loads(done.stdout)


def told(report):
    places = [report["first_divergence"], *report.get("next_divergences", [])]
    codes = {}
    for finding in report["findings"]:
        codes.setdefault(finding.get("pair"), finding["code"])
    return ", ".join(f"{place['layer']} {place['stage']} ({codes.get(place['pair'])})"
                     for place in places if place) or "nothing"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--folder", type=pathlib.Path, default="/dev/shm")
    options.add_argument("--case", nargs="*", choices=CASES, default=list(CASES))
    options.add_argument("--cores", type=int, default=2)
    options.add_argument("--layers", type=int, default=80)
    options.add_argument("--tokens", type=int, default=2048)
    options.add_argument("--width", type=int, default=8192)
    options.add_argument("--inner", type=int, default=28672, help="features inside an MLP")
    options.add_argument("--share", type=int, default=4, help="query heads for each key head")
    options.add_argument("--gain", type=float, default=1.0,
                         help="of what a branch adds; the smaller, the sooner a mistake fades")
    shape = options.parse_args()
    a, b = shape.folder / "full-a.safetensors", shape.folder / "full-b.safetensors"
    try:
        dump(a, Model(shape))
        for name in shape.case:
            wrong = {layer: what for layer, what in CASES[name].items() if layer < shape.layers}
            dump(b, Model(shape, True, wrong))
            plain, _ = measured(a, b, shape.cores, "--no-diagnose")
            full, report = measured(a, b, shape.cores)
            print(f"{name}: {plain:.2f} s, diagnosis adds {full - plain:.2f} s "
                  f"({(full - plain) / plain:.0%}); planted {wrong or 'nothing'}; "
                  f"told {told(report)}", flush=True)
    finally:
        a.unlink(missing_ok=True)
        b.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
