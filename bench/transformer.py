"""A transformer in numpy that dumps what its layers compute, in bf16: the data of diagnosis rows.

It has all that diagnosis learns from (norms, RoPE, grouped causal attention, a residual stream), so
that a mistake is carried on as in a real run. Only its projections are cheap: each mixes groups of
64 features that a permutation puts together.
"""
import json
import struct

import numpy as np

from data import to_bf16

GROUP = 64
HEAD = 64
SHARE = 4  # Query heads for each head of keys and values.
NOISE = 2.0 ** -9  # Of another kernel: half a unit in the last place of bf16.
STAGES = ("post_ln_pre_attn", "query", "query_final", "key", "key_final", "value", "value_final",
          "post_attn", "scaling", "sliding", "post_attn_pre_resid", "pre_mlp", "post_mlp")


def rounded(values):
    return (to_bf16(np.ascontiguousarray(values)).astype(np.uint32) << 16).view(np.float32)


def mixed(x, outputs, seed):
    """x [tokens, features] times a weight of its own for each seed."""
    random = np.random.default_rng(seed)
    features = x.shape[1]
    order = random.permutation(features)
    out = np.empty((x.shape[0], outputs), np.float32)
    for first in range(0, outputs, GROUP):
        weight = random.standard_normal((GROUP, GROUP), np.float32) / np.sqrt(np.float32(GROUP))
        chosen = order[np.arange(first, first + GROUP) % features]
        out[:, first:first + GROUP] = x[:, chosen] @ weight
    return out


def normalised(x, seed):
    weight = 1 + 0.3 * np.random.default_rng(seed).standard_normal(x.shape[1], np.float32)
    return x / np.sqrt((x * x).mean(1, keepdims=True) + np.float32(1e-5)) * weight


def turned(x, first_position):
    """RoPE on heads of [tokens, heads * HEAD]; feature i turns with i + HEAD / 2."""
    heads = x.reshape(len(x), -1, 2, HEAD // 2)
    frequency = 1e4 ** (-np.arange(HEAD // 2) / (HEAD // 2))
    angle = ((np.arange(len(x)) + first_position)[:, None] * frequency).astype(np.float32)
    cosine, sine = np.cos(angle)[:, None], np.sin(angle)[:, None]
    low, high = heads[:, :, 0], heads[:, :, 1]
    return np.stack([low * cosine - high * sine, high * cosine + low * sine], 2).reshape(x.shape)


def attended(query, key, value, scale):
    tokens = len(query)
    out = np.empty_like(query)
    later = np.triu(np.full((tokens, tokens), -np.inf, np.float32), 1)
    for head in range(query.shape[1] // HEAD):
        own = slice(head * HEAD, (head + 1) * HEAD)
        read = slice(head // SHARE * HEAD, (head // SHARE + 1) * HEAD)
        scores = query[:, own] @ key[:, read].T * np.float32(scale) + later
        scores -= scores.max(1, keepdims=True)
        np.exp(scores, out=scores)
        out[:, own] = scores / scores.sum(1, keepdims=True) @ value[:, read]
    return out


class Layers:
    """Computes layer after layer and writes each stage as it is made. `noise` moves every value as
    another kernel does; `mistakes` has the name of a mistake by layer."""

    def __init__(self, file, noise, mistakes):
        self.file, self.noise, self.mistakes = file, noise, mistakes
        self.random = np.random.default_rng(7)

    def put(self, values):
        if self.noise:
            values = values * (1 + self.noise * self.random.standard_normal(values.shape,
                                                                            np.float32))
        values = rounded(values)
        self.file.write(to_bf16(values).tobytes())
        return values

    def layer(self, index, stream):
        wrong = self.mistakes.get(index, "")
        tokens, width = stream.shape
        normed = self.put(normalised(stream, [index, 0]))
        query = self.put(mixed(normed, width, [index, 1]))
        turn = 3 if wrong == "rope_position" else 0
        query = self.put(turned(query, turn))
        key = self.put(mixed(normed, width // SHARE, [index, 2]))
        key = self.put(turned(key, turn))
        value = self.put(mixed(normed, width // SHARE, [index, 3]))
        value = self.put(value)
        scale = 1.0 if wrong == "attention_scale" else HEAD ** -0.5
        heads = self.put(attended(query, key, value, scale))
        self.file.write(struct.pack("<dq", HEAD ** -0.5, 0))
        branch = self.put(mixed(heads, width, [index, 4]))
        stream = stream + branch
        normed = self.put(normalised(stream, [index, 5]))
        gate, up = mixed(normed, width, [index, 6]), mixed(normed, width, [index, 7])
        branch = mixed(gate / (1 + np.exp(-gate)) * up, width, [index, 8])
        if wrong == "mlp_scale":
            branch *= 2
        return stream + self.put(branch)


def header_of(layers, tokens, width, share=SHARE):
    shapes = dict.fromkeys(STAGES, [1, tokens, width])
    for stage in ("key", "key_final", "value", "value_final"):
        shapes[stage] = [1, tokens, width // share]
    header, offset = {}, 0
    for layer in range(layers):
        for stage in STAGES:
            scalar = {"scaling": "F64", "sliding": "I64"}.get(stage)
            size = 8 if scalar else int(np.prod(shapes[stage])) * 2
            header[f"{layer}_{stage}"] = {"dtype": scalar or "BF16",
                                          "shape": [] if scalar else shapes[stage],
                                          "data_offsets": [offset, offset + size]}
            offset += size
    text = json.dumps(header)
    return text + " " * (-len(text) % 8)


def dump(path, layers, tokens, width, noise=0.0, mistakes=()):
    text = header_of(layers, tokens, width)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text.encode())
        maker = Layers(file, np.float32(noise), dict(mistakes))
        stream = np.random.default_rng(5).standard_normal((tokens, width), np.float32)
        for index in range(layers):
            stream = maker.layer(index, stream)
