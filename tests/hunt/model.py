"""A random decoder that dumps what it computes, once as a reference and once as a port of it.

The reference computes in the type of its dump and rounds after every operation. The port computes
in float64 and rounds only what it dumps: so the two differ as two right implementations do. A port
can make mistakes; each is a name at a layer, and is made in one step.
"""
import dataclasses
import json
import struct

import numpy as np

import mistakes

STAGES = ("post_ln_pre_attn", "query", "query_final", "key", "key_final", "value", "value_final",
          "post_attn", "post_attn_pre_resid", "pre_mlp", "post_mlp")
ROUNDOFF = {"F32": 2.0 ** -24, "BF16": 2.0 ** -9, "F16": 2.0 ** -12}


@dataclasses.dataclass
class Shape:
    seed: int
    layers: int
    tokens: int
    heads: int
    kv_heads: int
    dim: int
    hidden: int
    inner: int
    norm: str  # rms, plus_one (of 1 + weight) or layer
    rope: str  # halves, pairs or none
    turned: int  # The features of each head that RoPE turns.
    base: float
    bias: bool
    gated: bool
    activation: str
    window: int  # 0: every token sees all before it.
    dtype: str


def random_shape(seed):
    random = np.random.default_rng([seed, 1])
    pick = lambda *choices: choices[random.integers(len(choices))]
    dim, kv_heads, share = pick(8, 16, 32, 64), pick(1, 2, 3, 4), pick(1, 2, 3, 4)
    heads = max(2, kv_heads * share)
    kv_heads = kv_heads if heads % kv_heads == 0 else heads
    tokens = int(random.integers(6, 100))
    hidden = heads * dim if random.random() < 0.7 else 16 * int(random.integers(3, 14))
    return Shape(seed, int(random.integers(2, 6)), tokens, heads, kv_heads, dim, hidden,
                 8 * int(random.integers(6, 64)), pick("rms", "rms", "plus_one", "layer"),
                 pick("halves", "halves", "pairs", "none"), pick(dim, dim, dim, dim // 2),
                 pick(1e4, 1e4, 5e5), bool(random.integers(2)), random.random() < 0.7,
                 pick("silu", "silu", "gelu_tanh", "relu"),
                 pick(0, 0, 0, max(2, tokens // 3)), pick("F32", "BF16", "F16"))


def rounded(values, dtype):
    """The values of this type that are nearest."""
    values = np.asarray(values)
    if dtype == "F16":
        return np.clip(values, -65504, 65504).astype(np.float16).astype(values.dtype)
    if dtype == "F32":
        return values.astype(np.float32).astype(values.dtype)
    bits = values.astype(np.float32).view(np.uint32).astype(np.uint64)
    bits = ((bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000).astype(np.uint32)
    kept = bits.view(np.float32)
    return np.where(np.isfinite(values), kept, values).astype(values.dtype)


def activated(x, name):
    if name == "silu":
        return x / (1 + np.exp(-x))
    if name == "gelu_tanh":
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return np.maximum(x, 0)


def distance(values, right):
    """How far values are off where both are numbers; infinite where only one of them is."""
    both = np.isfinite(values) & np.isfinite(right)
    if (np.isfinite(values) != np.isfinite(right)).any():
        return np.inf
    size = np.linalg.norm(right[both])
    return float(np.linalg.norm(values[both] - right[both]) / size) if size > 0 else 0.0


class Model:
    def __init__(self, shape, port=False, wrong=()):
        self.shape, self.port, self.wrong = shape, port, dict(wrong)
        self.float = np.float64 if port else np.float32
        self.weights = self.make_weights()
        self.dump = {}
        self.own = {}  # By layer, how far the mistake there moves the step that it is in.

    def make_weights(self):
        random = np.random.default_rng([self.shape.seed, 2])
        shape, weights = self.shape, {}
        sizes = {"q": (shape.heads * shape.dim, shape.hidden),
                 "k": (shape.kv_heads * shape.dim, shape.hidden),
                 "v": (shape.kv_heads * shape.dim, shape.hidden),
                 "o": (shape.hidden, shape.heads * shape.dim),
                 "gate": (shape.inner, shape.hidden), "up": (shape.inner, shape.hidden),
                 "down": (shape.hidden, shape.inner)}
        gain = random.uniform(0.5, 2)
        for layer in range(shape.layers):
            for name, (rows, columns) in sizes.items():
                weight = random.standard_normal((rows, columns)) * gain / np.sqrt(columns)
                weights[layer, name] = rounded(weight, shape.dtype).astype(self.float)
                bias = 0.3 * random.standard_normal(rows) * shape.bias
                weights[layer, name + "_bias"] = rounded(bias, shape.dtype).astype(self.float)
            for name in ("norm1", "norm2"):
                weight = (shape.norm != "plus_one") + 0.3 * random.standard_normal(shape.hidden)
                weights[layer, name] = rounded(weight, shape.dtype).astype(self.float)
                bias = 0.2 * random.standard_normal(shape.hidden) * (shape.norm == "layer")
                weights[layer, name + "_bias"] = rounded(bias, shape.dtype).astype(self.float)
        return weights

    def op(self, values):
        """What one operation gives: the reference rounds it."""
        return values if self.port else rounded(values, self.shape.dtype)

    def step(self, layer, stage, compute):
        """One step and its dump. `compute` takes the name of the mistake to make, if any."""
        values = compute("")
        place, name = self.wrong.get(layer, ("", ""))
        if place == stage:
            change = mistakes.KINDS[stage, name].change
            right, values = values, change(values, self) if change else compute(name)
            self.own[layer] = distance(values, right)
        values = rounded(values, self.shape.dtype)
        self.dump[layer, stage] = values
        return values

    def linear(self, x, layer, name, wrong=""):
        bias = self.weights[layer, name + "_bias"]
        if wrong == "other_layer":
            layer = layer - 1 if layer else layer + 1
        weight = mistakes.changed_weight(self.weights[layer, name], wrong, self.shape)
        bias = bias * {"missing_bias": 0, "doubled_bias": 2}.get(wrong, 1)
        return self.op(self.op(x @ weight.T) + bias)

    def norm(self, x, layer, name, wrong):
        weight, bias = self.weights[layer, name], self.weights[layer, name + "_bias"]
        x = x - x.mean(1, keepdims=True) if self.shape.norm == "layer" else x
        epsilon = 1e-5 + (0.03 * np.mean(x * x) if wrong == "epsilon" else 0)
        x = self.op(x / np.sqrt((x * x).mean(1, keepdims=True) + self.float(epsilon)))
        ones = (self.shape.norm == "plus_one") != (wrong == "plus_one")
        weight = np.ones_like(weight) if wrong == "no_weight" else weight + ones
        return self.op(x * weight.astype(self.float) + bias)

    def rope(self, x, wrong):
        shape = self.shape
        if shape.rope == "none":
            return x
        half = shape.turned // 2
        base = shape.base * (20 if wrong == "rope_base" else 1)
        position = np.arange(len(x)) + 2 * (wrong == "rope_position")
        angle = position[:, None] * base ** (-np.arange(half) / half)
        cosine, sine = (f(angle)[:, None].astype(self.float) for f in (np.cos, np.sin))
        heads = x.reshape(len(x), -1, shape.dim).copy()
        pairs = (shape.rope == "pairs") != (wrong == "rope_pairing")
        low = slice(0, shape.turned, 2) if pairs else slice(0, half)
        high = slice(1, shape.turned, 2) if pairs else slice(half, shape.turned)
        one, two = heads[..., low].copy(), heads[..., high].copy()
        heads[..., low] = one * cosine - two * sine
        heads[..., high] = two * cosine + one * sine
        return self.op(heads.reshape(x.shape))

    def attention(self, query, key, value, wrong):
        shape = self.shape
        query, key, value = (x.reshape(len(x), -1, shape.dim).transpose(1, 0, 2)
                             for x in (query, key, value))
        share = shape.heads // shape.kv_heads
        read = np.arange(shape.heads) // share
        if wrong == "tiled_heads":
            read = np.arange(shape.heads) % shape.kv_heads
        scale = shape.dim ** -0.5 * {"attention_scale": shape.dim ** 0.5,
                                     "attention_halved": 0.5}.get(wrong, 1)
        scores = self.op(query @ key[read].transpose(0, 2, 1) * self.float(scale))
        ago = np.arange(shape.tokens)[:, None] - np.arange(shape.tokens)
        window = shape.window or shape.tokens
        if wrong == "window":
            window = 3 if window > 3 else shape.tokens
        seen = (ago >= -(wrong == "mask_late")) & (ago < window)
        if wrong == "no_mask":
            seen = ago < window
        scores = np.where(seen, scores, -np.inf)
        value = np.where(np.isnan(key).any(2, keepdims=True), np.nan, value)
        scores = np.exp(scores - scores.max(2, keepdims=True))
        shares = self.op(scores / scores.sum(2, keepdims=True))
        # What a token does not see does not reach it, as in a fused kernel, where it is no number.
        lost = (shares > 0).astype(self.float) @ np.isnan(value[read]).astype(self.float)
        heads = np.where(lost > 0, np.nan, shares @ np.nan_to_num(value[read]))
        return self.op(heads.transpose(1, 0, 2).reshape(shape.tokens, -1))

    def mlp(self, x, layer, wrong):
        activation = self.shape.activation
        if wrong == "activation":
            activation = "gelu_tanh" if activation == "silu" else "silu"
        gate, up = self.linear(x, layer, "gate"), self.linear(x, layer, "up")
        if wrong == "gate_up":
            gate, up = up, gate
        inner = self.op(activated(gate, activation))
        inner = self.op(inner * up) if self.shape.gated else inner
        return self.linear(inner, layer, "down", wrong)

    def layer(self, index, stream):
        step, linear = self.step, self.linear
        normed = step(index, "post_ln_pre_attn", lambda w: self.norm(stream, index, "norm1", w))
        query = step(index, "query", lambda w: linear(normed, index, "q", w))
        turned = step(index, "query_final", lambda w: self.rope(query, w))
        key = step(index, "key", lambda w: linear(normed, index, "k", w))
        key = step(index, "key_final", lambda w: self.rope(key, w))
        value = step(index, "value", lambda w: linear(normed, index, "v", w))
        value = step(index, "value_final", lambda w: value)
        heads = step(index, "post_attn", lambda w: self.attention(turned, key, value, w))
        branch = step(index, "post_attn_pre_resid", lambda w: linear(heads, index, "o", w))
        total = self.op(stream + branch)
        normed = step(index, "pre_mlp", lambda w: self.norm(
            branch if w == "no_residual" else total, index, "norm2", w))
        return self.op(total + step(index, "post_mlp", lambda w: self.mlp(normed, index, w)))

    def run(self):
        random = np.random.default_rng([self.shape.seed, 3])
        stream = random.standard_normal((self.shape.tokens, self.shape.hidden))
        stream *= random.uniform(0.3, 3, (self.shape.tokens, 1))
        stream = rounded(stream, self.shape.dtype).astype(self.float)
        for index in range(self.shape.layers):
            stream = self.layer(index, stream)
        return self


def save(path, tensors, dtype):
    """A safetensors file of these values."""
    header, parts, at = {}, [], 0
    for name, values in tensors.items():
        values = np.ascontiguousarray(values)
        if dtype == "BF16":
            raw = (values.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16).tobytes()
        else:
            raw = values.astype(np.float16 if dtype == "F16" else np.float32).tobytes()
        header[name] = {"dtype": dtype, "shape": list(values.shape),
                        "data_offsets": [at, at + len(raw)]}
        parts.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + b"".join(parts))
