"""Converters of other language models, each in the way of a real one."""

import numpy as np

from conversion_scripts import BLK, gguf_ends


def falcon_gguf(k, s):
    """Groups of queries with their key and value become all queries, keys, values."""
    k.put("token_embd.weight", k.get("transformer.word_embeddings.weight"))
    k.put("output.weight", k.get("lm_head.weight"))
    for leaf in ("weight", "bias"):
        k.put(f"output_norm.{leaf}", k.get(f"transformer.ln_f.{leaf}"))
    names = {
        "ln_attn": "attn_norm_2",
        "ln_mlp": "attn_norm",
        "self_attention.dense": "attn_output",
        "mlp.dense_h_to_4h": "ffn_up",
        "mlp.dense_4h_to_h": "ffn_down",
    }
    for i in range(s.layers):
        old, new, q = f"transformer.h.{i}.", f"blk.{i}.", s.heads // s.kv

        def reorder(value):
            groups = value.reshape(s.kv, q + 2, s.head, -1)
            return np.concatenate(
                [
                    part.reshape(-1, s.hidden)
                    for part in (groups[:, :-2], groups[:, [-2]], groups[:, [-1]])
                ]
            )

        k.put(
            new + "attn_qkv.weight",
            k.step("by_head", k.get(old + "self_attention.query_key_value.weight"), reorder),
        )
        for ours, theirs in names.items():
            for leaf in ("weight", "bias"):
                if k.has(f"{old}{ours}.{leaf}"):
                    k.put(f"{new}{theirs}.{leaf}", k.get(f"{old}{ours}.{leaf}"))


def bloom_megatron(k, s):
    """The names of Megatron-DeepSpeed: one file a layer, numbered from 3 on."""
    k.put("layer_01.word_embeddings.weight", k.get("word_embeddings.weight"))
    for leaf in ("weight", "bias"):
        k.put(f"layer_01.word_embeddings.norm.{leaf}", k.get(f"word_embeddings_layernorm.{leaf}"))
        k.put(f"layer_{s.layers + 4:02}.{leaf}", k.get(f"ln_f.{leaf}"))
    for name in [n for n in k.a if n.startswith("h.")]:
        _, i, rest = name.split(".", 2)
        k.put(f"layer_{int(i) + 3:02}.{rest}", k.get(name))


def opt_flax(k, s):
    for name in list(k.a):
        new = name.replace(".", "/").replace("embed_tokens/weight", "embed_tokens/embedding")
        new = new.replace("embed_positions/weight", "embed_positions/embedding")
        if name.endswith("norm.weight"):
            new = new.replace("/weight", "/scale")
        made = k.get(name)
        if new.endswith("/weight"):
            made, new = k.t(made), new.replace("/weight", "/kernel")
        k.put(new, made)


def gptj_gguf(k, s):
    names = {
        "attn.q_proj": "attn_q",
        "attn.k_proj": "attn_k",
        "attn.v_proj": "attn_v",
        "attn.out_proj": "attn_output",
        "mlp.fc_in": "ffn_up",
        "mlp.fc_out": "ffn_down",
        "ln_1": "attn_norm",
    }
    for old, new in (
        ("transformer.wte", "token_embd"),
        ("transformer.ln_f", "output_norm"),
        ("lm_head", "output"),
    ):
        for leaf in ("weight", "bias"):
            if k.has(f"{old}.{leaf}"):
                k.put(f"{new}.{leaf}", k.get(f"{old}.{leaf}"))
    for name in [n for n in k.a if n.startswith("transformer.h.")]:
        _, _, i, *middle, leaf = name.split(".")
        k.put(f"blk.{i}.{names['.'.join(middle)]}.{leaf}", k.get(name))


def gptj_mesh(k, s):
    """The Haiku names of mesh-transformer-jax: kernels, layers with a number behind the name."""
    names = {
        "attn.q_proj": "linear",
        "attn.v_proj": "linear_1",
        "attn.k_proj": "linear_2",
        "attn.out_proj": "linear_3",
        "mlp.fc_in": "linear_4",
        "mlp.fc_out": "linear_5",
        "ln_1": "replicated_layer_norm",
    }
    kernel = lambda name: k.t(k.get(name))
    shards = "causal_transformer_shard/~/"
    k.put(shards + "embedding_shard/~/linear/w", k.get("transformer.wte.weight"))
    k.put(shards + "projection_shard/~/linear/w", kernel("lm_head.weight"))
    k.put(shards + "projection_shard/~/linear/b", k.get("lm_head.bias"))
    k.put(
        shards + "projection_shard/~/replicated_layer_norm/scale", k.get("transformer.ln_f.weight")
    )
    k.put(
        shards + "projection_shard/~/replicated_layer_norm/offset", k.get("transformer.ln_f.bias")
    )
    for name in [n for n in k.a if n.startswith("transformer.h.")]:
        _, _, i, *middle, leaf = name.split(".")
        new = names[".".join(middle)]
        leaf = (
            {"weight": "scale", "bias": "offset"}[leaf]
            if "norm" in new
            else {"weight": "w", "bias": "b"}[leaf]
        )
        k.put(f"{shards}layer_{i}/~/{new}/{leaf}", kernel(name) if leaf == "w" else k.get(name))


def deepseek_gguf(k, s):
    gguf_ends(k)
    names = dict(
        BLK,
        **{
            "self_attn.q_a_proj": "attn_q_a",
            "self_attn.q_b_proj": "attn_q_b",
            "self_attn.q_a_layernorm": "attn_q_a_norm",
            "self_attn.kv_a_layernorm": "attn_kv_a_norm",
            "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
            "self_attn.kv_b_proj": "attn_kv_b",
            "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
            "mlp.shared_experts.up_proj": "ffn_up_shexp",
            "mlp.shared_experts.down_proj": "ffn_down_shexp",
            "mlp.gate": "ffn_gate_inp",
        },
    )
    for name in [n for n in k.a if n.startswith("model.layers.")]:
        _, _, i, *middle, leaf = name.split(".")
        if ".experts." not in name:
            k.put(f"blk.{i}.{names['.'.join(middle)]}.{leaf}", k.get(name))
    for i in range(1, s.layers):
        for p in ("gate", "up", "down"):
            k.put(
                f"blk.{i}.ffn_{p}_exps.weight",
                k.stack(
                    [k.get(f"model.layers.{i}.mlp.experts.{e}.{p}_proj.weight") for e in range(4)]
                ),
            )


def t5_t5x(k, s, wrap="target/"):
    at = wrap
    k.put(at + "token_embedder/embedding", k.get("shared.weight"))
    k.put(at + "decoder/logits_dense/kernel", k.t(k.get("lm_head.weight")))
    for side in ("encoder", "decoder"):
        k.put(f"{at}{side}/{side}_norm/scale", k.get(f"{side}.final_layer_norm.weight"))
        k.put(
            f"{at}{side}/relpos_bias/rel_embedding",
            k.t(k.get(f"{side}.block.0.layer.0.SelfAttention.relative_attention_bias.weight")),
        )
        attentions = (
            [("attention", "SelfAttention", "pre_attention_layer_norm")]
            if side == "encoder"
            else [
                ("self_attention", "SelfAttention", "pre_self_attention_layer_norm"),
                ("encoder_decoder_attention", "EncDecAttention", "pre_cross_attention_layer_norm"),
            ]
        )
        for i in range(s.layers):
            new, old = f"{at}{side}/layers_{i}/", f"{side}.block.{i}.layer."
            for j, (theirs, ours, norm) in enumerate(attentions):
                for p, name in (("q", "query"), ("k", "key"), ("v", "value"), ("o", "out")):
                    k.put(
                        f"{new}{theirs}/{name}/kernel", k.t(k.get(f"{old}{j}.{ours}.{p}.weight"))
                    )
                k.put(f"{new}{norm}/scale", k.get(f"{old}{j}.layer_norm.weight"))
            j = len(attentions)
            for p in ("wi_0", "wi_1", "wo"):
                k.put(f"{new}mlp/{p}/kernel", k.t(k.get(f"{old}{j}.DenseReluDense.{p}.weight")))
            k.put(new + "pre_mlp_layer_norm/scale", k.get(f"{old}{j}.layer_norm.weight"))


def t5_optimizer(k, s):
    t5_t5x(k, s, "optimizer/target/")


def bart_fairseq(k, s):
    for name in list(k.a):
        new = name.removeprefix("model.")
        if new == "shared.weight":
            k.put("encoder.embed_tokens.weight", k.get(name))
            k.put("decoder.embed_tokens.weight", k.get(name))
        else:
            k.put(new, k.get(name))


def mamba_original(k, s):
    for name in list(k.a):
        k.put(name.replace("embeddings.weight", "embedding.weight"), k.get(name))


def mamba_gguf(k, s):
    names = {
        "mixer.A_log": "ssm_a",
        "mixer.D": "ssm_d",
        "mixer.in_proj": "ssm_in",
        "mixer.conv1d": "ssm_conv1d",
        "mixer.x_proj": "ssm_x",
        "mixer.dt_proj": "ssm_dt",
        "mixer.out_proj": "ssm_out",
        "norm": "attn_norm",
    }
    k.put("token_embd.weight", k.get("backbone.embeddings.weight"))
    k.put("output_norm.weight", k.get("backbone.norm_f.weight"))
    for name in [n for n in k.a if n.startswith("backbone.layers.")]:
        rest = name.split(".", 3)[3]
        i, made = name.split(".")[2], k.get(name)
        if rest in ("mixer.A_log", "mixer.D"):
            change = (
                (lambda value: -np.exp(value)) if rest == "mixer.A_log" else (lambda value: value)
            )
            k.put(f"blk.{i}.{names[rest]}", k.step("exp", made, change))
            continue
        middle, leaf = rest.rsplit(".", 1)
        if made.value.ndim == 3:
            made = k.map(made, lambda value: value[:, 0])
        k.put(f"blk.{i}.{names[middle]}.{leaf}", made)
