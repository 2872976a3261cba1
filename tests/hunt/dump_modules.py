"""What the modules of a model give, in the order in which they return: Hugging Face's own, and
those of inference engines (vLLM, sglang), which fuse projections and carry the residual beside.

A `Call` has the path of a module, its class, what it gives, and which step of a Run each of that
is. `shard` says how ranks share it: None all the same, "columns" each a part, "parts" each a part
of every summand of a fused projection.
"""
import dataclasses

import torch


@dataclasses.dataclass
class Call:
    path: str
    cls: str
    outputs: list           # Names of steps, or (steps joined on the last axis).
    layer: int | None = None
    shard: str | None = None
    leaf: bool = True
    inputs: list = dataclasses.field(default_factory=list)


def value(run, layer, name):
    if isinstance(name, tuple):
        return torch.cat([value(run, layer, part) for part in name], -1)
    return run[(None if name in ("embed", "norm", "logits") else layer, name)]


def columns(tensor, rank, ranks, unit):
    """The part of a rank; heads of keys that are fewer than ranks are on several."""
    count = tensor.shape[-1] // unit
    if count < ranks:
        at = rank * count // ranks
        return tensor[..., at * unit:(at + 1) * unit]
    size = tensor.shape[-1] // ranks
    return tensor[..., rank * size:(rank + 1) * size]


def on_rank(run, spec, call, name, rank, ranks):
    if call.shard is None or ranks == 1:
        return value(run, call.layer, name)
    unit = lambda part: spec.size if part in ("q", "k", "v", "qr", "kr", "z") else 1
    parts = name if isinstance(name, tuple) else (name,)
    return torch.cat([columns(value(run, call.layer, p), rank, ranks, unit(p)) for p in parts], -1)


NAMES = {  # Of modules, by family: layers, embedding, final norm, head.
    "gpt2": ("transformer.h", "transformer.wte", "transformer.ln_f", "lm_head"),
    "neox": ("gpt_neox.layers", "gpt_neox.embed_in", "gpt_neox.final_layer_norm", "embed_out"),
}
PLAIN = ("model.layers", "model.embed_tokens", "model.norm", "lm_head")


def engine_calls(spec):
    """As vLLM and sglang have them."""
    layers, embed, norm, head = NAMES.get(spec.arch, PLAIN)
    calls = [Call(embed, "VocabParallelEmbedding", ["embed"])]
    plain = spec.arch in ("gpt2", "neox")  # No residual beside.
    for i in range(spec.layers):
        at = f"{layers}.{i}"

        def add(path, cls, outputs, shard=None, leaf=True, inputs=()):
            calls.append(Call(f"{at}.{path}" if path else at, cls, outputs, i, shard, leaf,
                              list(inputs)))

        if spec.arch == "gpt2":
            add("ln_1", "LayerNorm", ["ln1"], inputs=["in"])
            add("attn.c_attn", "QKVParallelLinear", [("q", "k", "v")], "parts", inputs=["ln1"])
            add("attn.attn", "Attention", ["z"], "columns", inputs=["q", "k", "v"])
            add("attn.c_proj", "RowParallelLinear", ["o"], inputs=["z"])
            add("attn", "GPT2Attention", ["o"], leaf=False)
            add("ln_2", "LayerNorm", ["ln2"], inputs=["mid"])
            add("mlp.c_fc", "ColumnParallelLinear", ["up"], "columns", inputs=["ln2"])
            add("mlp.act", "NewGELU", ["act"], "columns", inputs=["up"])
            add("mlp.c_proj", "RowParallelLinear", ["mlp"], inputs=["act"])
            add("mlp", "GPT2MLP", ["mlp"], leaf=False)
            add("", "GPT2Block", ["out"], leaf=False)
            continue
        if spec.arch == "neox":
            add("input_layernorm", "LayerNorm", ["ln1"], inputs=["in"])
            add("attention.query_key_value", "QKVParallelLinear", [("q", "k", "v")], "parts",
                inputs=["ln1"])
            add("attention.rotary_emb", "RotaryEmbedding", ["qr", "kr"], "columns")
            add("attention.attn", "Attention", ["z"], "columns", inputs=["qr", "kr", "v"])
            add("attention.dense", "RowParallelLinear", ["o"], inputs=["z"])
            add("attention", "GPTNeoXAttention", ["o"], leaf=False)
            add("post_attention_layernorm", "LayerNorm", ["ln2"], inputs=["in"])
            add("mlp.dense_h_to_4h", "ColumnParallelLinear", ["up"], "columns", inputs=["ln2"])
            add("mlp.act", "GELU", ["act"], "columns", inputs=["up"])
            add("mlp.dense_4h_to_h", "RowParallelLinear", ["mlp"], inputs=["act"])
            add("mlp", "GPTNeoXMLP", ["mlp"], leaf=False)
            add("", "GPTNeoXLayer", ["out"], leaf=False)
            continue
        add("input_layernorm", "RMSNorm", ["ln1"] if i == 0 else ["ln1", "in"],
            inputs=["in"] if i == 0 else ["before_hidden", "before_mid"])
        add("self_attn.qkv_proj", "QKVParallelLinear", [("q", "k", "v")], "parts", inputs=["ln1"])
        add("self_attn.rotary_emb", "RotaryEmbedding", ["qr", "kr"], "columns")
        add("self_attn.attn", "RadixAttention", ["z"], "columns", inputs=["qr", "kr", "v"])
        add("self_attn.o_proj", "RowParallelLinear", ["o"], inputs=["z"])
        add("self_attn", "LlamaAttention", ["o"], leaf=False)
        if spec.sandwich:
            add("post_attention_layernorm", "GemmaRMSNorm", ["post1"], inputs=["o"])
            add("pre_feedforward_layernorm", "GemmaRMSNorm", ["ln2", "mid"], inputs=["post1", "in"])
        else:
            add("post_attention_layernorm", "RMSNorm", ["ln2", "mid"], inputs=["o", "in"])
        if spec.experts:
            add("block_sparse_moe.gate", "ReplicatedLinear", ["router"], inputs=["ln2"])
            add("block_sparse_moe.experts", "FusedMoE", ["mlp"], "partial", inputs=["ln2"])
            add("block_sparse_moe", "MixtralMoE", ["mlp"], leaf=False)
        else:
            add("mlp.gate_up_proj", "MergedColumnParallelLinear", [("gate", "up")], "parts",
                inputs=["ln2"])
            add("mlp.act_fn", "SiluAndMul", ["gated"], "columns", inputs=["gate", "up"])
            add("mlp.down_proj", "RowParallelLinear", ["mlp"], inputs=["gated"])
            add("mlp", "LlamaMLP", ["mlp"], leaf=False)
        if spec.sandwich:
            add("post_feedforward_layernorm", "GemmaRMSNorm", ["post2"], inputs=["mlp"])
        add("", "LlamaDecoderLayer", ["hidden", "mid"], leaf=False)
    calls.append(Call(norm, "LayerNorm" if plain else "RMSNorm",
                      ["norm"] if plain else ["norm", "out"], spec.layers - 1))
    return calls


def hub_calls(spec):
    """As Hugging Face has them, for dumps that no hook of ours writes."""
    layers, embed, norm, head = NAMES.get(spec.arch, PLAIN)
    calls = [Call(embed, "Embedding", ["embed"])]
    for i in range(spec.layers):
        at = f"{layers}.{i}"

        def add(path, cls, outputs, leaf=True):
            calls.append(Call(f"{at}.{path}" if path else at, cls, outputs, i, None, leaf))

        if spec.arch == "gpt2":
            add("ln_1", "LayerNorm", ["ln1"])
            add("attn.c_attn", "Conv1D", [("q", "k", "v")])
            add("attn.c_proj", "Conv1D", ["o"])
            add("attn", "GPT2Attention", ["o"], leaf=False)
            add("ln_2", "LayerNorm", ["ln2"])
            add("mlp.c_fc", "Conv1D", ["up"])
            add("mlp.act", "NewGELUActivation", ["act"])
            add("mlp.c_proj", "Conv1D", ["mlp"])
            add("mlp", "GPT2MLP", ["mlp"], leaf=False)
            add("", "GPT2Block", ["out"], leaf=False)
            continue
        if spec.arch == "neox":
            add("input_layernorm", "LayerNorm", ["ln1"])
            add("attention.query_key_value", "Linear", ["qkv_by_head"])
            add("attention.dense", "Linear", ["o"])
            add("attention", "GPTNeoXAttention", ["o"], leaf=False)
            add("post_attention_layernorm", "LayerNorm", ["ln2"])
            add("mlp.dense_h_to_4h", "Linear", ["up"])
            add("mlp.act", "GELUActivation", ["act"])
            add("mlp.dense_4h_to_h", "Linear", ["mlp"])
            add("mlp", "GPTNeoXMLP", ["mlp"], leaf=False)
            add("", "GPTNeoXLayer", ["out"], leaf=False)
            continue
        add("input_layernorm", "LlamaRMSNorm", ["ln1"])
        for part in "qkv":
            add(f"self_attn.{part}_proj", "Linear", [part])
        add("self_attn.o_proj", "Linear", ["o"])
        add("self_attn", "LlamaAttention", ["o"], leaf=False)
        if spec.sandwich:
            add("post_attention_layernorm", "Gemma2RMSNorm", ["post1"])
            add("pre_feedforward_layernorm", "Gemma2RMSNorm", ["ln2"])
        else:
            add("post_attention_layernorm", "LlamaRMSNorm", ["ln2"])
        if spec.experts:
            add("block_sparse_moe.gate", "Linear", ["router"])
            add("block_sparse_moe", "MixtralSparseMoeBlock", ["mlp"], leaf=False)
        else:
            add("mlp.gate_proj", "Linear", ["gate"])
            add("mlp.act_fn", "SiLU", ["act"])
            add("mlp.up_proj", "Linear", ["up"])
            add("mlp.down_proj", "Linear", ["mlp"])
            add("mlp", "LlamaMLP", ["mlp"], leaf=False)
        if spec.sandwich:
            add("post_feedforward_layernorm", "Gemma2RMSNorm", ["post2"])
        add("", "LlamaDecoderLayer", ["out"], leaf=False)
    calls.append(Call(norm, "LayerNorm" if spec.layer_norm else "LlamaRMSNorm", ["norm"]))
    calls.append(Call(head, "Linear", ["logits"]))
    return calls


def steps_of(calls):
    """{path or path.i: (layer, step)}; a fused projection is its parts."""
    names = {}
    for call in calls:
        for i, name in enumerate(call.outputs):
            path = call.path if len(call.outputs) == 1 else f"{call.path}.{i}"
            for step in name if isinstance(name, tuple) else (name,):
                if step == "qkv_by_head":
                    names.setdefault(path, []).extend((call.layer, p) for p in "qkv")
                    continue
                layer = None if step in ("embed", "norm", "logits") else call.layer
                if step == "in":
                    layer, step = call.layer - 1, "out"
                names.setdefault(path, []).append((layer, step))
    return names


READ = {  # What each module reads, by the last part of its path; see input_of().
    "q_proj": "ln1", "k_proj": "ln1", "v_proj": "ln1", "qkv_proj": "ln1", "c_attn": "ln1",
    "query_key_value": "ln1", "self_attn": "ln1", "attn": "ln1", "attention": "ln1",
    "o_proj": "z", "dense": "z", "gate_proj": "ln2", "up_proj": "ln2", "gate": "ln2",
    "c_fc": "ln2", "dense_h_to_4h": "ln2", "mlp": "ln2", "block_sparse_moe": "ln2",
    "act": "up", "act_fn": "gate", "dense_4h_to_h": "act", "input_layernorm": "in", "ln_1": "in",
    "ln_2": "mid", "pre_feedforward_layernorm": "mid", "post_feedforward_layernorm": "mlp",
}


def input_of(spec, call):
    """The step that a module of Hugging Face reads; none where it is no step of its layer."""
    last = call.path.rsplit(".", 1)[-1]
    if call.layer is None:
        return "norm" if call.outputs == ["logits"] else None
    if last == "post_attention_layernorm":
        return "o" if spec.sandwich else "in" if spec.parallel else "mid"
    if last == "c_proj":
        return "act" if ".mlp." in call.path else "z"
    if last == "down_proj":
        return "gated"
    return READ.get(last)


def step_read(spec, call):
    """The same as (layer, step), the input of a layer as the output of the one before."""
    step = input_of(spec, call)
    if step == "norm":
        return None, step
    return (call.layer - 1, "out") if step == "in" else (call.layer, step)
