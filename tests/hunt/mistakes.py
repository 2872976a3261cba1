"""The mistakes that a port can make: where each is made, and the codes that name it."""
import typing

import numpy as np


class Kind(typing.NamedTuple):
    codes: tuple  # Any of these names it.
    change: typing.Callable = None  # Of the values that the step gives; None: the step itself.
    fits: typing.Callable = None  # Whether it can be made in a layer of a model of this shape.


def heads_of(values, model):
    return values.reshape(len(values), -1, model.shape.dim)


def swapped_heads(values, model):
    heads = heads_of(values, model).copy()
    heads[:, [0, -1]] = heads[:, [-1, 0]]
    return heads.reshape(values.shape)


def interleaved(values, model):
    heads = heads_of(values, model)
    return heads.reshape(*heads.shape[:2], 2, -1).swapaxes(2, 3).reshape(values.shape)


def first_half_twice(values, model):
    half = values[:, :values.shape[1] // 2]
    return np.concatenate([half, half], 1)


def zero_tail(values, model):
    values = values.copy()
    values[-2:] = 0
    return values


def not_a_number(values, model):
    values = values.copy()
    values[len(values) // 2] = np.nan
    return values


def two_tokens(values, model):
    values = values.copy()
    values[[1, -2]] = values[[-2, 1]]
    return values


def heads_first(values, model):
    return heads_of(values, model).transpose(1, 0, 2).reshape(values.shape)


def eight_bits(values, model):
    """Rounded to 3 bits of fraction, as e4m3 does."""
    step = np.exp2(np.maximum(np.floor(np.log2(np.maximum(np.abs(values), 1e-30))), -6) - 3)
    return np.round(values / step) * step


def layer_before(values, model):
    last = max(layer for layer, stage in model.dump if stage == "post_mlp")
    return model.dump[last, "post_mlp"]


def changed_weight(weight, wrong, shape):
    if wrong == "transposed":
        return weight.T
    if wrong == "half_sum":  # Only one of two ranks.
        kept = weight.copy()
        kept[:, weight.shape[1] // 2:] = 0
        return kept
    if wrong == "four_bits":
        blocks = weight.reshape(len(weight), -1, 8)
        scale = np.abs(blocks).max(2, keepdims=True) / 7
        return (np.round(blocks / np.maximum(scale, 1e-12)) * scale).reshape(weight.shape)
    return weight


def has_bias(shape, layer):
    return shape.bias


def has_rope(shape, layer):
    return shape.rope != "none"


def square(shape, layer):
    return shape.heads * shape.dim == shape.hidden


KINDS = {}  # By stage and name.


def kind(name, *stages, codes, change=None, fits=lambda shape, layer: True):
    for stage in stages:
        KINDS[stage, name] = Kind(codes, change, fits)


kind("epsilon", "post_ln_pre_attn", "pre_mlp", codes=("norm_epsilon",))
kind("no_weight", "post_ln_pre_attn", "pre_mlp", codes=("norm_weight",))
kind("plus_one", "post_ln_pre_attn", "pre_mlp", codes=("norm_weight",))
kind("missing_bias", "query", "key", "value", "post_attn_pre_resid", "post_mlp",
     codes=("offset",), fits=has_bias)
kind("doubled_bias", "query", "value", "post_attn_pre_resid", codes=("offset", "reduction"),
     fits=has_bias)
kind("times_1.5", "query", "value", "post_attn", "post_mlp", codes=("scale",),
     change=lambda values, model: values * 1.5)
kind("negated", "key", "post_attn_pre_resid", codes=("scale",),
     change=lambda values, model: -values)
kind("swapped_heads", "query", "post_attn", codes=("block_permutation",), change=swapped_heads)
kind("swapped_heads", "value", codes=("block_permutation",), change=swapped_heads,
     fits=lambda shape, layer: shape.kv_heads > 1)
kind("interleaved", "query", "key", codes=("interleave", "rope_pairing"), change=interleaved)
kind("first_half_twice", "query", "post_attn_pre_resid", codes=("reduction",),
     change=first_half_twice)
kind("transposed", "query", "post_attn_pre_resid", codes=("operator",), fits=square)
kind("other_layer", "query", "value", "post_mlp", codes=("operator", "other_tensor"))
kind("four_bits", "key", "post_attn_pre_resid", codes=("operator", "quantization"))
kind("rope_pairing", "query_final", "key_final", codes=("rope_pairing",),
     fits=lambda shape, layer: has_rope(shape, layer) and shape.turned > 2)
kind("rope_base", "query_final", "key_final", codes=("rope_frequency",), fits=has_rope)
kind("rope_position", "query_final", "key_final", codes=("rope_position",), fits=has_rope)
kind("attention_scale", "post_attn", codes=("attention_scale",))
kind("attention_halved", "post_attn", codes=("attention_scale",))
kind("no_mask", "post_attn", codes=("attention_mask",))
kind("mask_late", "post_attn", codes=("attention_mask",))
kind("window", "post_attn", codes=("attention_mask",))
kind("tiled_heads", "post_attn", codes=("head_mapping",),
     fits=lambda shape, layer: 1 < shape.kv_heads < shape.heads)
kind("shifted", "post_attn", "post_attn_pre_resid", codes=("token_shift", "row_permutation"),
     change=lambda values, model: np.roll(values, 1, 0))
kind("zero_tail", "post_attn", "post_mlp", codes=("region",), change=zero_tail)
kind("not_a_number", "post_attn", "post_mlp", codes=("nonfinite", "region"), change=not_a_number)
kind("two_tokens", "post_attn", "post_mlp", codes=("row_permutation", "region"), change=two_tokens)
kind("heads_first", "post_attn", codes=("axis_permutation",), change=heads_first)
kind("eight_bits", "value", "post_attn", codes=("cast", "quantization"),
     change=eight_bits)
kind("half_sum", "post_attn_pre_resid", "post_mlp", codes=("reduction", "operator"))
kind("no_residual", "pre_mlp", codes=("residual_missing", "norm_weight", "operator"))
kind("gate_up", "post_mlp", codes=("operator",), fits=lambda shape, layer: shape.gated)
kind("activation", "post_mlp", codes=("operator",))
kind("layer_before", "post_mlp", codes=("other_tensor",), change=layer_before,
     fits=lambda shape, layer: layer > 0)
