#!/usr/bin/env python3
"""Makes a tiny Llama as Hugging Face keeps it, and its conversions to GGUF: F16, Q8_0 and Q4_K.

Made with Python 3.11, gguf 0.19.0, numpy 2.4.6, safetensors 0.8.0. As llama.cpp's converter does it,
the rows of q and k go from halves to neighbours, norms stay F32, and what does not fill blocks of 256
falls back to Q8_0.
"""

import pathlib

import gguf
import numpy as np
from gguf import GGMLQuantizationType as Type
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
HIDDEN, HEADS, KV_HEADS, HEAD, INNER, VOCABULARY = 256, 4, 2, 16, 64, 16

NAMES = {
    "model.embed_tokens.weight": ("token_embd.weight", (VOCABULARY, HIDDEN)),
    "model.layers.0.input_layernorm.weight": ("blk.0.attn_norm.weight", (HIDDEN,)),
    "model.layers.0.self_attn.q_proj.weight": ("blk.0.attn_q.weight", (HEADS * HEAD, HIDDEN)),
    "model.layers.0.self_attn.k_proj.weight": ("blk.0.attn_k.weight", (KV_HEADS * HEAD, HIDDEN)),
    "model.layers.0.self_attn.v_proj.weight": ("blk.0.attn_v.weight", (KV_HEADS * HEAD, HIDDEN)),
    "model.layers.0.self_attn.o_proj.weight": ("blk.0.attn_output.weight", (HIDDEN, HEADS * HEAD)),
    "model.layers.0.post_attention_layernorm.weight": ("blk.0.ffn_norm.weight", (HIDDEN,)),
    "model.layers.0.mlp.gate_proj.weight": ("blk.0.ffn_gate.weight", (INNER, HIDDEN)),
    "model.layers.0.mlp.up_proj.weight": ("blk.0.ffn_up.weight", (INNER, HIDDEN)),
    "model.layers.0.mlp.down_proj.weight": ("blk.0.ffn_down.weight", (HIDDEN, INNER)),
    "model.norm.weight": ("output_norm.weight", (HIDDEN,)),
    "lm_head.weight": ("output.weight", (VOCABULARY, HIDDEN)),
}


def weights():
    random = np.random.default_rng(11)
    return {name: (1 + 0.1 * random.normal(size=shape) if "norm" in name
                   else 0.02 * random.normal(size=shape)).astype(np.float16)
            for name, (_, shape) in NAMES.items()}


def permuted(rows):
    """Rows of each head from halves to neighbours."""
    heads = rows.reshape(-1, 2, HEAD // 2, rows.shape[1])
    return np.ascontiguousarray(heads.swapaxes(1, 2)).reshape(rows.shape)


def q4_k(values):
    """Plain rounding: eight runs of 32, each with a scale and a minimum of six bits."""
    runs = values.reshape(-1, 8, 32).astype(np.float64)
    low = np.minimum(runs.min(axis=2), 0)
    scale = (runs.max(axis=2) - low) / 15
    d = (scale.max(axis=1, keepdims=True) / 63).astype(np.float16)
    dmin = ((-low).max(axis=1, keepdims=True) / 63).astype(np.float16)
    sc = np.clip(np.rint(scale / d.astype(float)), 0, 63).astype(np.uint8)
    m = np.clip(np.rint(-low / dmin.astype(float)), 0, 63).astype(np.uint8)
    step = (d.astype(float) * sc)[:, :, None]
    offset = (dmin.astype(float) * m)[:, :, None]
    q = np.clip(np.rint((runs + offset) / np.where(step == 0, 1, step)), 0, 15).astype(np.uint8)
    packed = np.zeros((len(runs), 12), np.uint8)
    packed[:, :4] = sc[:, :4] | (sc[:, 4:] >> 4) << 6
    packed[:, 4:8] = m[:, :4] | (m[:, 4:] >> 4) << 6
    packed[:, 8:] = (sc[:, 4:] & 15) | (m[:, 4:] & 15) << 4
    nibbles = q.reshape(-1, 4, 2, 32)
    levels = (nibbles[:, :, 0] | nibbles[:, :, 1] << 4).reshape(-1, 128)
    blocks = np.concatenate([d.view(np.uint8), dmin.view(np.uint8), packed, levels], axis=1)
    return blocks.reshape(values.shape[0], -1)


def quantised(values, kind):
    if values.ndim == 1:
        return values.astype(np.float32), Type.F32
    if kind == "F16":
        return values, Type.F16
    if kind == "Q4_K" and values.shape[1] % 256 == 0:
        return q4_k(values), Type.Q4_K
    return gguf.quants.quantize(values.astype(np.float32), Type.Q8_0), Type.Q8_0


def write(kind, tensors):
    writer = gguf.GGUFWriter(HERE / f"port_{kind.lower()}.gguf", "llama")
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    for name, values in tensors.items():
        if "q_proj" in name or "k_proj" in name:
            values = permuted(values)
        data, type_ = quantised(values, kind)
        writer.add_tensor(NAMES[name][0], data, raw_dtype=type_)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def main():
    tensors = weights()
    save_file(tensors, HERE / "port_hf.safetensors", metadata={"format": "pt"})
    for kind in ("F16", "Q8_0", "Q4_K"):
        write(kind, tensors)


main()
