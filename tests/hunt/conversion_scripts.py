"""Converters of Llama and its like, each in the way of a real one."""

import numpy as np

BLK = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}


def gguf_ends(k, offset=0):
    k.put("token_embd.weight", k.get("model.embed_tokens.weight"))
    norm = k.get("model.norm.weight")
    k.put("output_norm.weight", k.add(norm, offset) if offset else norm)
    if k.has("lm_head.weight"):
        k.put("output.weight", k.get("lm_head.weight"))


def llama_gguf(k, s, turned=True):
    gguf_ends(k)
    for name in [n for n in k.a if n.startswith("model.layers.")]:
        _, _, i, *middle, leaf = name.split(".")
        middle = ".".join(middle)
        if "experts" in middle:
            continue
        made = k.get(name)
        if turned and middle.endswith(("q_proj", "k_proj")):
            made = k.to_pairs(made, s.head)
        new = {"block_sparse_moe.gate": "ffn_gate_inp"}.get(middle) or BLK[middle]
        k.put(f"blk.{i}.{new}.{leaf}", made)
    for i in range(s.layers):
        at = f"model.layers.{i}.block_sparse_moe.experts."
        if k.has(at + "0.w1.weight"):
            for w, new in (
                ("w1", "ffn_gate_exps"),
                ("w2", "ffn_down_exps"),
                ("w3", "ffn_up_exps"),
            ):
                k.put(
                    f"blk.{i}.{new}.weight",
                    k.stack([k.get(f"{at}{e}.{w}.weight") for e in range(4)]),
                )


def qwen2_gguf(k, s):
    llama_gguf(k, s, turned=False)


def gemma2_gguf(k, s):
    gguf_ends(k, 1)
    names = dict(
        BLK,
        post_attention_layernorm="post_attention_norm",
        pre_feedforward_layernorm="ffn_norm",
        post_feedforward_layernorm="post_ffw_norm",
    )
    for name in [n for n in k.a if n.startswith("model.layers.")]:
        _, _, i, *middle, leaf = name.split(".")
        made = k.get(name)
        k.put(
            f"blk.{i}.{names['.'.join(middle)]}.{leaf}",
            k.add(made, 1) if made.value.ndim == 1 else made,
        )


def phi3_gguf(k, s):
    gguf_ends(k)
    names = dict(BLK, **{"self_attn.qkv_proj": "attn_qkv", "mlp.gate_up_proj": "ffn_up"})
    for name in [n for n in k.a if n.startswith("model.layers.")]:
        _, _, i, *middle, leaf = name.split(".")
        k.put(f"blk.{i}.{names['.'.join(middle)]}.{leaf}", k.get(name))


def phi3_llama(k, s):
    """Fused projections cut, as for programs that only know Llama."""
    h, kv = s.heads * s.head, s.kv * s.head
    for name in list(k.a):
        made = k.get(name)
        if "qkv_proj" in name:
            for part, piece in zip("qkv", k.cut(made, [h, kv, kv])):
                k.put(name.replace("qkv", part), piece)
        elif "gate_up" in name:
            for part, piece in zip(("gate", "up"), k.cut(made, [s.inner, s.inner])):
                k.put(name.replace("gate_up", part), piece)
        else:
            k.put(name, made)


def llama_meta(k, s):
    names = {
        "self_attn.q_proj": "attention.wq",
        "self_attn.k_proj": "attention.wk",
        "self_attn.v_proj": "attention.wv",
        "self_attn.o_proj": "attention.wo",
        "mlp.gate_proj": "feed_forward.w1",
        "mlp.down_proj": "feed_forward.w2",
        "mlp.up_proj": "feed_forward.w3",
        "input_layernorm": "attention_norm",
        "post_attention_layernorm": "ffn_norm",
    }
    for old, new in (
        ("model.embed_tokens", "tok_embeddings"),
        ("model.norm", "norm"),
        ("lm_head", "output"),
    ):
        k.put(new + ".weight", k.get(old + ".weight"))
    for i in range(s.layers):
        for old, new in names.items():
            made = k.get(f"model.layers.{i}.{old}.weight")
            k.put(
                f"layers.{i}.{new}.weight",
                k.to_pairs(made, s.head) if new in ("attention.wq", "attention.wk") else made,
            )


def llama_megatron(k, s):
    """Megatron-core: groups of queries with their key and value, gate and up in one."""
    k.put("embedding.word_embeddings.weight", k.get("model.embed_tokens.weight"))
    k.put("decoder.final_layernorm.weight", k.get("model.norm.weight"))
    k.put("output_layer.weight", k.get("lm_head.weight"))
    for i in range(s.layers):
        old, new = f"model.layers.{i}.", f"decoder.layers.{i}."
        for leaf in ("weight", "bias"):
            if k.has(f"{old}self_attn.q_proj.{leaf}"):
                k.put(
                    f"{new}self_attention.linear_qkv.{leaf}",
                    k.by_head([k.get(f"{old}self_attn.{p}_proj.{leaf}") for p in "qkv"], s.kv),
                )
        k.put(new + "self_attention.linear_proj.weight", k.get(old + "self_attn.o_proj.weight"))
        k.put(
            new + "self_attention.linear_qkv.layer_norm_weight",
            k.get(old + "input_layernorm.weight"),
        )
        k.put(
            new + "mlp.linear_fc1.layer_norm_weight",
            k.get(old + "post_attention_layernorm.weight"),
        )
        k.put(
            new + "mlp.linear_fc1.weight",
            k.join([k.get(f"{old}mlp.{p}_proj.weight") for p in ("gate", "up")]),
        )
        k.put(new + "mlp.linear_fc2.weight", k.get(old + "mlp.down_proj.weight"))


def llama_trtllm(k, s):
    """TensorRT-LLM: q, k and v one after the other; fc is the gate, gate is up."""
    k.put("transformer.vocab_embedding.weight", k.get("model.embed_tokens.weight"))
    k.put("transformer.ln_f.weight", k.get("model.norm.weight"))
    k.put("lm_head.weight", k.get("lm_head.weight"))
    for i in range(s.layers):
        old, new = f"model.layers.{i}.", f"transformer.layers.{i}."
        k.put(
            new + "attention.qkv.weight",
            k.join([k.get(f"{old}self_attn.{p}_proj.weight") for p in "qkv"]),
        )
        for theirs, ours in (
            ("attention.dense", "self_attn.o_proj"),
            ("mlp.fc", "mlp.gate_proj"),
            ("mlp.gate", "mlp.up_proj"),
            ("mlp.proj", "mlp.down_proj"),
            ("input_layernorm", "input_layernorm"),
            ("post_layernorm", "post_attention_layernorm"),
        ):
            k.put(f"{new}{theirs}.weight", k.get(f"{old}{ours}.weight"))


def llama_maxtext(k, s):
    """MaxText with scanned layers: all layers in one tensor, the layer as its second axis."""
    at = "params.params.decoder."
    k.put("params.params.token_embedder.embedding", k.get("model.embed_tokens.weight"))
    k.put(at + "decoder_norm.scale", k.get("model.norm.weight"))
    k.put(at + "logits_dense.kernel", k.t(k.get("lm_head.weight")))
    each = lambda name, change: k.stack(
        [change(k.get(f"model.layers.{i}.{name}.weight")) for i in range(s.layers)], 1
    )
    kernel = lambda made: Kernel(k, made)
    for p, new, n in (("q", "query", s.heads), ("k", "key", s.kv), ("v", "value", s.kv)):
        k.put(
            f"{at}layers.self_attention.{new}.kernel",
            each(f"self_attn.{p}_proj", lambda made: k.reshape(kernel(made), s.hidden, n, s.head)),
        )
    k.put(
        at + "layers.self_attention.out.kernel",
        each("self_attn.o_proj", lambda made: k.reshape(kernel(made), s.heads, s.head, s.hidden)),
    )
    for p, new in (("gate", "wi_0"), ("up", "wi_1"), ("down", "wo")):
        k.put(f"{at}layers.mlp.{new}.kernel", each(f"mlp.{p}_proj", kernel))
    k.put(
        at + "layers.pre_self_attention_layer_norm.scale",
        each("input_layernorm", lambda made: made),
    )
    k.put(
        at + "layers.post_self_attention_layer_norm.scale",
        each("post_attention_layernorm", lambda made: made),
    )


def Kernel(k, made):
    return k.map(made, lambda value: value.T)


def llama_keras(k, s):
    """KerasHub: kernels with an axis of heads, layers by number behind the name."""
    k.put("token_embedding/embeddings", k.get("model.embed_tokens.weight"))
    k.put("token_embedding/reverse_embeddings", k.t(k.get("lm_head.weight")))
    k.put("sequence_output_layernorm/scale", k.get("model.norm.weight"))
    for i in range(s.layers):
        old, new = f"model.layers.{i}.", f"transformer_layer_{i}/"
        for p, name, n in (("q", "query", s.heads), ("k", "key", s.kv), ("v", "value", s.kv)):
            k.put(
                f"{new}self_attention/{name}/kernel",
                k.reshape(k.t(k.get(f"{old}self_attn.{p}_proj.weight")), s.hidden, n, s.head),
            )
        k.put(
            new + "self_attention/attention_output/kernel",
            k.reshape(k.t(k.get(old + "self_attn.o_proj.weight")), s.heads, s.head, s.hidden),
        )
        for p, name in (
            ("gate", "feedforward_gate_dense"),
            ("up", "feedforward_intermediate_dense"),
            ("down", "feedforward_output_dense"),
        ):
            k.put(f"{new}{name}/kernel", k.t(k.get(f"{old}mlp.{p}_proj.weight")))
        k.put(new + "self_attention_layernorm/scale", k.get(old + "input_layernorm.weight"))
        k.put(new + "feedforward_layernorm/scale", k.get(old + "post_attention_layernorm.weight"))


def gemma_flax(k, s):
    """Google's own Gemma: einsum weights by head, norms that store their weight less one."""
    k.put("transformer/embedder/input_embedding", k.get("model.embed_tokens.weight"))
    k.put("transformer/final_norm/scale", k.get("model.norm.weight"))
    for i in range(s.layers):
        old, new = f"model.layers.{i}.", f"transformer/layer_{i}/"
        heads = lambda p, n: k.map(
            k.get(f"{old}self_attn.{p}_proj.weight"),
            lambda value: value.reshape(n, s.head, s.hidden).swapaxes(1, 2),
        )
        k.put(new + "attn/q_einsum/w", heads("q", s.heads))
        k.put(new + "attn/kv_einsum/w", k.stack([heads("k", s.kv), heads("v", s.kv)]))
        k.put(
            new + "attn/attn_vec_einsum/w",
            k.map(
                k.get(old + "self_attn.o_proj.weight"),
                lambda v: v.T.reshape(s.heads, s.head, s.hidden),
            ),
        )
        k.put(
            new + "mlp/gating_einsum",
            k.stack([Kernel(k, k.get(f"{old}mlp.{p}_proj.weight")) for p in ("gate", "up")]),
        )
        k.put(new + "mlp/linear", k.t(k.get(old + "mlp.down_proj.weight")))
        for ours, theirs in (
            ("input_layernorm", "pre_attention_norm"),
            ("post_attention_layernorm", "post_attention_norm"),
            ("pre_feedforward_layernorm", "pre_ffw_norm"),
            ("post_feedforward_layernorm", "post_ffw_norm"),
        ):
            k.put(f"{new}{theirs}/scale", k.get(f"{old}{ours}.weight"))
