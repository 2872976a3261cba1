"""Language models and speech, drawn after those of conversion_models.py were settled."""

import re

import numpy as np


def bert(s):
    for name, rows in (("word", s.vocab), ("position", 40), ("token_type", 2)):
        s.add(f"bert.embeddings.{name}_embeddings.weight", rows, s.hidden)
    s.norm("bert.embeddings.LayerNorm")
    for i in range(s.layers):
        at = f"bert.encoder.layer.{i}."
        for name in ("query", "key", "value"):
            s.linear(f"{at}attention.self.{name}", s.hidden, s.hidden)
        s.linear(at + "attention.output.dense", s.hidden, s.hidden), s.norm(
            at + "attention.output.LayerNorm"
        )
        s.linear(at + "intermediate.dense", s.inner, s.hidden), s.linear(
            at + "output.dense", s.hidden, s.inner
        )
        s.norm(at + "output.LayerNorm")
    s.linear("bert.pooler.dense", s.hidden, s.hidden)


def bert_tf(k, s):
    """Google's own names: kernels, layer_0, gamma and beta."""
    for name in list(k.a):
        made, new = k.get(name), name.replace("layer.", "layer_").replace(".", "/")
        if new.endswith("LayerNorm/weight"):
            new = new.replace("LayerNorm/weight", "LayerNorm/gamma")
        elif new.endswith("LayerNorm/bias"):
            new = new.replace("LayerNorm/bias", "LayerNorm/beta")
        elif "embeddings/weight" in new:
            new = new.replace("/weight", "")
        elif new.endswith("/weight"):
            new, made = new.replace("/weight", "/kernel"), k.t(made)
        k.put(new, made)


def bert_megatron(k, s):
    """q, k and v inside each head, under the names of Megatron-LM."""
    at = "language_model."
    k.put(at + "embedding.word_embeddings.weight", k.get("bert.embeddings.word_embeddings.weight"))
    k.put(
        at + "embedding.position_embeddings.weight",
        k.get("bert.embeddings.position_embeddings.weight"),
    )
    k.put(
        at + "embedding.tokentype_embeddings.weight",
        k.get("bert.embeddings.token_type_embeddings.weight"),
    )
    for leaf in ("weight", "bias"):
        k.put(at + "embedding.norm." + leaf, k.get("bert.embeddings.LayerNorm." + leaf))
        k.put(at + "pooler.dense." + leaf, k.get("bert.pooler.dense." + leaf))
        for i in range(s.layers):
            old, new = f"bert.encoder.layer.{i}.", f"{at}encoder.layers.{i}."
            k.put(
                f"{new}self_attention.query_key_value.{leaf}",
                k.by_head(
                    [k.get(f"{old}attention.self.{p}.{leaf}") for p in ("query", "key", "value")],
                    s.heads,
                ),
            )
            for ours, theirs in (
                ("attention.output.dense", "self_attention.dense"),
                ("attention.output.LayerNorm", "post_attention_norm"),
                ("intermediate.dense", "mlp.dense_h_to_4h"),
                ("output.dense", "mlp.dense_4h_to_h"),
                ("output.LayerNorm", "output_norm"),
            ):
                k.put(f"{new}{theirs}.{leaf}", k.get(f"{old}{ours}.{leaf}"))


def gpt2(s):
    """Conv1D: inputs first."""
    s.add("wte.weight", s.vocab, s.hidden), s.add("wpe.weight", 40, s.hidden)
    for i in range(s.layers):
        at = f"h.{i}."
        s.norm(at + "ln_1"), s.norm(at + "ln_2")
        for name, shape in (
            ("attn.c_attn", (s.hidden, 3 * s.hidden)),
            ("attn.c_proj", (s.hidden, s.hidden)),
            ("mlp.c_fc", (s.hidden, s.inner)),
            ("mlp.c_proj", (s.inner, s.hidden)),
        ):
            s.add(f"{at}{name}.weight", *shape), s.add(f"{at}{name}.bias", shape[1], std=0.05)
    s.norm("ln_f")


def gpt2_linear(k, s):
    """As nanoGPT and its like store it: linear weights, outputs first."""
    for name in list(k.a):
        made = k.get(name)
        turned = name.endswith(("c_attn.weight", "c_proj.weight", "c_fc.weight"))
        k.put("transformer." + name, k.t(made) if turned else made)


def gpt2_split(k, s):
    """Linear weights, q, k and v apart, blocks from 1 on."""
    for name in list(k.a):
        made, new = k.get(name), re.sub(r"^h\.(\d+)\.", lambda m: f"blocks.{int(m[1]) + 1}.", name)
        if "c_attn" in name:
            parts = k.cut(made, [s.hidden] * 3, made.value.ndim - 1)
            for p, piece in zip("qkv", parts):
                k.put(new.replace("c_attn", p), k.map(piece, lambda value: value.T))
        else:
            k.put(new, k.t(made) if name.endswith(("c_proj.weight", "c_fc.weight")) else made)


def internlm2(s):
    s.add("model.tok_embeddings.weight", s.vocab, s.hidden)
    for i in range(s.layers):
        at = f"model.layers.{i}."
        s.linear(at + "attention.wqkv", (s.heads + 2 * s.kv) * s.head, s.hidden, False)
        s.linear(at + "attention.wo", s.hidden, s.heads * s.head, False)
        s.linear(at + "feed_forward.w1", s.inner, s.hidden, False), s.linear(
            at + "feed_forward.w3", s.inner, s.hidden, False
        )
        s.linear(at + "feed_forward.w2", s.hidden, s.inner, False)
        s.norm(at + "attention_norm", bias=False), s.norm(at + "ffn_norm", bias=False)
    s.norm("model.norm", bias=False), s.linear("output", s.vocab, s.hidden, False)


def internlm2_llama(k, s):
    q = s.heads // s.kv
    names = {
        "attention.wo": "self_attn.o_proj",
        "feed_forward.w1": "mlp.gate_proj",
        "feed_forward.w3": "mlp.up_proj",
        "feed_forward.w2": "mlp.down_proj",
        "attention_norm": "input_layernorm",
        "ffn_norm": "post_attention_layernorm",
    }
    for old, new in (
        ("model.tok_embeddings", "model.embed_tokens"),
        ("model.norm", "model.norm"),
        ("output", "lm_head"),
    ):
        k.put(new + ".weight", k.get(old + ".weight"))
    for i in range(s.layers):
        old, new = f"model.layers.{i}.", f"model.layers.{i}."
        fused = k.get(old + "attention.wqkv.weight")
        groups = lambda pick: k.map(
            fused, lambda v: v.reshape(s.kv, q + 2, s.head, -1)[:, pick].reshape(-1, s.hidden)
        )
        for p, pick in (("q", slice(0, q)), ("k", slice(q, q + 1)), ("v", slice(q + 1, q + 2))):
            k.put(f"{new}self_attn.{p}_proj.weight", groups(pick))
        for ours, theirs in names.items():
            k.put(f"{new}{theirs}.weight", k.get(f"{old}{ours}.weight"))


def baichuan(s):
    from conversion_models import llama

    llama(s)
    for i in range(s.layers):
        at = f"model.layers.{i}.self_attn."
        parts = [s.tensors.pop(f"{at}{p}_proj.weight") for p in "qkv"]
        s.tensors[at + "W_pack.weight"] = np.concatenate(parts)


def baichuan_llama(k, s):
    for name in list(k.a):
        made = k.get(name)
        if "W_pack" in name:
            sizes = [s.heads * s.head, s.kv * s.head, s.kv * s.head]
            for p, piece in zip("qkv", k.cut(made, sizes)):
                k.put(name.replace("W_pack", p + "_proj"), piece)
        else:
            k.put(name, made)


def dbrx(s):
    experts = s.experts = 4
    s.add("transformer.wte.weight", s.vocab, s.hidden)
    for i in range(s.layers):
        at = f"transformer.blocks.{i}."
        s.linear(at + "norm_attn_norm.attn.Wqkv", (s.heads + 2 * s.kv) * s.head, s.hidden, False)
        s.linear(at + "norm_attn_norm.attn.out_proj", s.hidden, s.heads * s.head, False)
        s.norm(at + "norm_attn_norm.norm_1", bias=False), s.norm(
            at + "norm_attn_norm.norm_2", bias=False
        )
        s.linear(at + "ffn.router.layer", experts, s.hidden, False)
        for w in ("w1", "v1", "w2"):
            s.add(f"{at}ffn.experts.mlp.{w}", experts * s.inner, s.hidden)
    s.norm("transformer.norm_f", bias=False), s.linear("lm_head", s.vocab, s.hidden, False)


def dbrx_gguf(k, s):
    k.put("token_embd.weight", k.get("transformer.wte.weight"))
    k.put("output_norm.weight", k.get("transformer.norm_f.weight")), k.put(
        "output.weight", k.get("lm_head.weight")
    )
    for i in range(s.layers):
        old, new = f"transformer.blocks.{i}.", f"blk.{i}."
        for ours, theirs in (
            ("norm_attn_norm.attn.Wqkv", "attn_qkv"),
            ("norm_attn_norm.attn.out_proj", "attn_output"),
            ("norm_attn_norm.norm_1", "attn_norm"),
            ("norm_attn_norm.norm_2", "attn_output_norm"),
            ("ffn.router.layer", "ffn_gate_inp"),
        ):
            k.put(f"{new}{theirs}.weight", k.get(f"{old}{ours}.weight"))
        for w, theirs in (("w1", "ffn_gate_exps"), ("v1", "ffn_up_exps"), ("w2", "ffn_down_exps")):
            made = k.reshape(k.get(f"{old}ffn.experts.mlp.{w}"), s.experts, s.inner, s.hidden)
            k.put(
                f"{new}{theirs}.weight",
                k.map(made, lambda v: v.swapaxes(1, 2)) if w == "w2" else made,
            )


def whisper(s):
    s.conv("model.encoder.conv1", s.hidden, 10, 3), s.conv(
        "model.encoder.conv2", s.hidden, s.hidden, 3
    )
    s.add("model.encoder.embed_positions.weight", 30, s.hidden)
    s.add("model.decoder.embed_tokens.weight", s.vocab, s.hidden), s.add(
        "model.decoder.embed_positions.weight", 28, s.hidden
    )
    for side in ("encoder", "decoder"):
        for i in range(s.layers):
            at = f"model.{side}.layers.{i}."
            for attention in ["self_attn"] + (["encoder_attn"] if side == "decoder" else []):
                for name in ("k", "v", "q", "out"):
                    s.linear(f"{at}{attention}.{name}_proj", s.hidden, s.hidden, name != "k")
                s.norm(f"{at}{attention}_layer_norm")
            s.linear(at + "fc1", s.inner, s.hidden), s.linear(
                at + "fc2", s.hidden, s.inner
            ), s.norm(at + "final_layer_norm")
        s.norm(f"model.{side}.layer_norm")


def whisper_mlx(k, s):
    """OpenAI's names with the convolutions of MLX: [out, kernel, in]."""
    names = [
        ("layers", "blocks"),
        ("fc1", "mlp1"),
        ("fc2", "mlp2"),
        ("final_layer_norm", "mlp_ln"),
        ("encoder_attn_layer_norm", "cross_attn_ln"),
        ("self_attn_layer_norm", "attn_ln"),
        ("encoder_attn", "cross_attn"),
        ("self_attn", "attn"),
        ("q_proj", "query"),
        ("k_proj", "key"),
        ("v_proj", "value"),
        ("out_proj", "out"),
        ("embed_tokens", "token_embedding"),
        ("encoder.layer_norm", "encoder.ln_post"),
        ("decoder.layer_norm", "decoder.ln"),
    ]
    for name in list(k.a):
        new, made = name.removeprefix("model."), k.get(name)
        for ours, theirs in names:
            new = new.replace(ours, theirs)
        new = new.replace("embed_positions.weight", "positional_embedding")
        k.put(new, k.axes(made, 0, 2, 1) if made.value.ndim == 3 else made)
