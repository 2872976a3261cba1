"""State dicts of many architectures, as Hugging Face names them, small and random."""

import numpy as np


class Source:
    """Random tensors under names, with the sizes that a converter asks for."""

    def __init__(self, rng):
        self.rng, self.tensors = rng, {}
        self.layers = int(rng.integers(2, 5))
        self.head = int(rng.choice([8, 16]))
        self.kv = int(rng.choice([1, 2, 2, 4]))
        self.heads = self.kv * int(rng.choice([1, 2])) if self.kv < 4 else 4
        self.hidden = self.head * self.heads
        self.inner = self.hidden * int(rng.choice([2, 3, 4]))
        self.vocab = int(rng.choice([97, 131, 200]))
        self.bias = bool(rng.random() < 0.5)

    def add(self, name, *shape, std=None):
        std = std or (0.02 if self.rng.random() < 0.5 else 0.1)
        self.tensors[name] = (self.rng.standard_normal(shape) * std).astype(np.float32)

    def linear(self, name, outputs, inputs, bias=True):
        self.add(name + ".weight", outputs, inputs)
        if bias:
            self.add(name + ".bias", outputs, std=0.05)

    def norm(self, name, size=None, bias=True, zero=False):
        size = size or self.hidden
        value = self.rng.standard_normal(size) * 0.1 + (0 if zero else 1)
        self.tensors[name + ".weight"] = value.astype(np.float32)
        if bias:
            self.add(name + ".bias", size, std=0.05)

    def conv(self, name, out, inputs, *kernel, bias=True):
        self.add(name + ".weight", out, inputs, *kernel)
        if bias:
            self.add(name + ".bias", out, std=0.05)

    def batch_norm(self, name, size):
        self.norm(name, size)
        self.add(name + ".running_mean", size)
        self.tensors[name + ".running_var"] = self.rng.random(size).astype(np.float32) + 0.5
        self.tensors[name + ".num_batches_tracked"] = np.array(100, np.int64)


def llama(
    s, zero=False, qkv_bias=False, norms=("input_layernorm", "post_attention_layernorm"), experts=0
):
    h, kv = s.heads * s.head, s.kv * s.head
    s.add("model.embed_tokens.weight", s.vocab, s.hidden)
    for i in range(s.layers):
        at = f"model.layers.{i}."
        for name, size in (("q", h), ("k", kv), ("v", kv)):
            s.linear(f"{at}self_attn.{name}_proj", size, s.hidden, qkv_bias)
        s.linear(f"{at}self_attn.o_proj", s.hidden, h, False)
        if experts:
            s.linear(f"{at}block_sparse_moe.gate", experts, s.hidden, False)
            for e in range(experts):
                for w, shape in (
                    ("w1", (s.inner, s.hidden)),
                    ("w2", (s.hidden, s.inner)),
                    ("w3", (s.inner, s.hidden)),
                ):
                    s.linear(f"{at}block_sparse_moe.experts.{e}.{w}", *shape, False)
        else:
            for name in ("gate", "up"):
                s.linear(f"{at}mlp.{name}_proj", s.inner, s.hidden, False)
            s.linear(f"{at}mlp.down_proj", s.hidden, s.inner, False)
        for norm in norms:
            s.norm(at + norm, bias=False, zero=zero)
    s.norm("model.norm", bias=False, zero=zero)
    s.linear("lm_head", s.vocab, s.hidden, False)


def gemma2(s):
    llama(
        s,
        zero=True,
        norms=(
            "input_layernorm",
            "post_attention_layernorm",
            "pre_feedforward_layernorm",
            "post_feedforward_layernorm",
        ),
    )
    del s.tensors["lm_head.weight"]


def phi3(s):
    h, kv = s.heads * s.head, s.kv * s.head
    s.add("model.embed_tokens.weight", s.vocab, s.hidden)
    for i in range(s.layers):
        at = f"model.layers.{i}."
        s.linear(at + "self_attn.qkv_proj", h + 2 * kv, s.hidden, False)
        s.linear(at + "self_attn.o_proj", s.hidden, h, False)
        s.linear(at + "mlp.gate_up_proj", 2 * s.inner, s.hidden, False)
        s.linear(at + "mlp.down_proj", s.hidden, s.inner, False)
        s.norm(at + "input_layernorm", bias=False)
        s.norm(at + "post_attention_layernorm", bias=False)
    s.norm("model.norm", bias=False)
    s.linear("lm_head", s.vocab, s.hidden, False)


def falcon(s):
    s.add("transformer.word_embeddings.weight", s.vocab, s.hidden)
    for i in range(s.layers):
        at = f"transformer.h.{i}."
        s.norm(at + "ln_attn"), s.norm(at + "ln_mlp")
        s.linear(
            at + "self_attention.query_key_value", (s.heads + 2 * s.kv) * s.head, s.hidden, False
        )
        s.linear(at + "self_attention.dense", s.hidden, s.hidden, False)
        s.linear(at + "mlp.dense_h_to_4h", s.inner, s.hidden, False)
        s.linear(at + "mlp.dense_4h_to_h", s.hidden, s.inner, False)
    s.norm("transformer.ln_f")
    s.linear("lm_head", s.vocab, s.hidden, False)


def bloom(s):
    s.kv = s.heads
    s.add("word_embeddings.weight", s.vocab, s.hidden)
    s.norm("word_embeddings_layernorm")
    for i in range(s.layers):
        at = f"h.{i}."
        s.norm(at + "input_layernorm"), s.norm(at + "post_attention_layernorm")
        s.linear(at + "self_attention.query_key_value", 3 * s.hidden, s.hidden)
        s.linear(at + "self_attention.dense", s.hidden, s.hidden)
        s.linear(at + "mlp.dense_h_to_4h", s.inner, s.hidden)
        s.linear(at + "mlp.dense_4h_to_h", s.hidden, s.inner)
    s.norm("ln_f")


def opt(s):
    s.add("model.decoder.embed_tokens.weight", s.vocab, s.hidden)
    s.add("model.decoder.embed_positions.weight", 34, s.hidden)
    for i in range(s.layers):
        at = f"model.decoder.layers.{i}."
        for name in "kvq":
            s.linear(f"{at}self_attn.{name}_proj", s.hidden, s.hidden)
        s.linear(at + "self_attn.out_proj", s.hidden, s.hidden)
        s.norm(at + "self_attn_layer_norm")
        s.linear(at + "fc1", s.inner, s.hidden), s.linear(at + "fc2", s.hidden, s.inner)
        s.norm(at + "final_layer_norm")
    s.norm("model.decoder.final_layer_norm")


def gptj(s):
    s.add("transformer.wte.weight", s.vocab, s.hidden)
    for i in range(s.layers):
        at = f"transformer.h.{i}."
        s.norm(at + "ln_1")
        for name in ("k_proj", "v_proj", "q_proj", "out_proj"):
            s.linear(at + "attn." + name, s.hidden, s.hidden, False)
        s.linear(at + "mlp.fc_in", s.inner, s.hidden), s.linear(
            at + "mlp.fc_out", s.hidden, s.inner
        )
    s.norm("transformer.ln_f"), s.linear("lm_head", s.vocab, s.hidden)


def deepseek(s):
    rank, nope, rope, experts = 24, 16, 8, 4
    s.add("model.embed_tokens.weight", s.vocab, s.hidden)
    for i in range(s.layers):
        at = f"model.layers.{i}."
        s.linear(at + "self_attn.q_a_proj", rank, s.hidden, False)
        s.norm(at + "self_attn.q_a_layernorm", rank, False)
        s.linear(at + "self_attn.q_b_proj", s.heads * (nope + rope), rank, False)
        s.linear(at + "self_attn.kv_a_proj_with_mqa", rank + rope, s.hidden, False)
        s.norm(at + "self_attn.kv_a_layernorm", rank, False)
        s.linear(at + "self_attn.kv_b_proj", s.heads * (nope + s.head), rank, False)
        s.linear(at + "self_attn.o_proj", s.hidden, s.heads * s.head, False)
        mlps = (
            [("mlp.", s.inner)]
            if i == 0
            else [("mlp.shared_experts.", 32)]
            + [(f"mlp.experts.{e}.", 32) for e in range(experts)]
        )
        for mlp, inner in mlps:
            s.linear(at + mlp + "gate_proj", inner, s.hidden, False)
            s.linear(at + mlp + "up_proj", inner, s.hidden, False)
            s.linear(at + mlp + "down_proj", s.hidden, inner, False)
        if i > 0:
            s.linear(at + "mlp.gate", experts, s.hidden, False)
        s.norm(at + "input_layernorm", bias=False), s.norm(
            at + "post_attention_layernorm", bias=False
        )
    s.norm("model.norm", bias=False), s.linear("lm_head", s.vocab, s.hidden, False)


def t5(s):
    inner = s.heads * s.head
    s.add("shared.weight", s.vocab, s.hidden)
    for side in ("encoder", "decoder"):
        for i in range(s.layers):
            at = f"{side}.block.{i}.layer."
            attentions = [("0.SelfAttention", "0")] + (
                [("1.EncDecAttention", "1")] if side == "decoder" else []
            )
            for attention, number in attentions:
                for name in "qkv":
                    s.linear(f"{at}{attention}.{name}", inner, s.hidden, False)
                s.linear(f"{at}{attention}.o", s.hidden, inner, False)
                s.norm(f"{at}{number}.layer_norm", bias=False)
            if i == 0:
                s.add(f"{at}0.SelfAttention.relative_attention_bias.weight", 16, s.heads)
            last = len(attentions)
            s.linear(f"{at}{last}.DenseReluDense.wi_0", s.inner, s.hidden, False)
            s.linear(f"{at}{last}.DenseReluDense.wi_1", s.inner, s.hidden, False)
            s.linear(f"{at}{last}.DenseReluDense.wo", s.hidden, s.inner, False)
            s.norm(f"{at}{last}.layer_norm", bias=False)
        s.norm(f"{side}.final_layer_norm", bias=False)
    s.linear("lm_head", s.vocab, s.hidden, False)


def bart(s):
    s.add("model.shared.weight", s.vocab, s.hidden)
    for side in ("encoder", "decoder"):
        s.add(f"model.{side}.embed_positions.weight", 34, s.hidden)
        s.norm(f"model.{side}.layernorm_embedding")
        for i in range(s.layers):
            at = f"model.{side}.layers.{i}."
            for attention in ["self_attn"] + (["encoder_attn"] if side == "decoder" else []):
                for name in ("k", "v", "q", "out"):
                    s.linear(f"{at}{attention}.{name}_proj", s.hidden, s.hidden)
                s.norm(f"{at}{attention}_layer_norm")
            s.linear(at + "fc1", s.inner, s.hidden), s.linear(at + "fc2", s.hidden, s.inner)
            s.norm(at + "final_layer_norm")


def vit(s, prefix="vit.", stem="encoder.layer."):
    s.patch = int(s.rng.choice([2, 4]))
    s.conv(prefix + "embeddings.patch_embeddings.projection", s.hidden, 3, s.patch, s.patch)
    s.add(prefix + "embeddings.cls_token", 1, 1, s.hidden)
    s.add(prefix + "embeddings.position_embeddings", 1, 17, s.hidden)
    for i in range(s.layers):
        at = f"{prefix}{stem}{i}."
        for name in ("query", "key", "value"):
            s.linear(f"{at}attention.attention.{name}", s.hidden, s.hidden)
        s.linear(at + "attention.output.dense", s.hidden, s.hidden)
        s.linear(at + "intermediate.dense", s.inner, s.hidden)
        s.linear(at + "output.dense", s.hidden, s.inner)
        s.norm(at + "layernorm_before"), s.norm(at + "layernorm_after")
    s.norm(prefix + "layernorm"), s.linear("classifier", 10, s.hidden)


def clip(s):
    for tower, size in (("text", s.hidden), ("vision", s.hidden)):
        at = f"{tower}_model."
        if tower == "text":
            s.add(at + "embeddings.token_embedding.weight", s.vocab, size)
            s.add(at + "embeddings.position_embedding.weight", 20, size)
            s.norm(at + "final_layer_norm")
        else:
            s.add(at + "embeddings.class_embedding", size)
            s.add(at + "embeddings.position_embedding.weight", 17, size)
            s.conv(at + "embeddings.patch_embedding", size, 3, 4, 4, bias=False)
            s.norm(at + "pre_layrnorm"), s.norm(at + "post_layernorm")
        for i in range(s.layers):
            layer = f"{at}encoder.layers.{i}."
            for name in ("k", "v", "q", "out"):
                s.linear(f"{layer}self_attn.{name}_proj", size, size)
            s.norm(layer + "layer_norm1"), s.norm(layer + "layer_norm2")
            s.linear(layer + "mlp.fc1", s.inner, size), s.linear(layer + "mlp.fc2", size, s.inner)
        s.linear(f"{tower}_projection", 24, size, False)
    s.tensors["logit_scale"] = np.float32(2.6592) * np.ones((), np.float32)


def convnext(s):
    sizes = [16, 24, 32, 48]
    s.depths = [2, 1, 3, 2]
    s.conv("convnext.embeddings.patch_embeddings", sizes[0], 3, 4, 4)
    s.norm("convnext.embeddings.layernorm", sizes[0])
    for stage, size in enumerate(sizes):
        at = f"convnext.encoder.stages.{stage}."
        if stage:
            s.norm(at + "downsampling_layer.0", sizes[stage - 1])
            s.conv(at + "downsampling_layer.1", size, sizes[stage - 1], 2, 2)
        for i in range(s.depths[stage]):
            layer = f"{at}layers.{i}."
            s.add(layer + "layer_scale_parameter", size)
            s.conv(layer + "dwconv", size, 1, 7, 7), s.norm(layer + "layernorm", size)
            s.linear(layer + "pwconv1", 4 * size, size), s.linear(
                layer + "pwconv2", size, 4 * size
            )
    s.norm("convnext.layernorm", sizes[-1]), s.linear("classifier", 10, sizes[-1])


def swin(s):
    sizes, s.depths, s.swin_heads = [16, 32, 64], [2, 2, 2], [2, 4, 8]
    s.conv("swin.embeddings.patch_embeddings.projection", 16, 3, 4, 4), s.norm(
        "swin.embeddings.norm", 16
    )
    for stage, size in enumerate(sizes):
        at = f"swin.encoder.layers.{stage}."
        for i in range(s.depths[stage]):
            layer = f"{at}blocks.{i}."
            s.norm(layer + "layernorm_before", size), s.norm(layer + "layernorm_after", size)
            for name in ("query", "key", "value"):
                s.linear(f"{layer}attention.self.{name}", size, size)
            s.add(layer + "attention.self.relative_position_bias_table", 49, s.swin_heads[stage])
            s.linear(layer + "attention.output.dense", size, size)
            s.linear(layer + "intermediate.dense", 4 * size, size), s.linear(
                layer + "output.dense", size, 4 * size
            )
        if stage < 2:
            s.linear(at + "downsample.reduction", 2 * size, 4 * size, False), s.norm(
                at + "downsample.norm", 4 * size
            )
    s.norm("swin.layernorm", 64), s.linear("classifier", 10, 64)


def resnet(s):
    """torchvision, bottlenecks."""
    s.conv("conv1", 16, 3, 7, 7, bias=False), s.batch_norm("bn1", 16)
    before, s.depths = 16, [int(s.rng.integers(1, 3)), 2, int(s.rng.integers(2, 4))]
    for stage, depth in enumerate(s.depths):
        mid = 8 * 2**stage
        for i in range(depth):
            at = f"layer{stage + 1}.{i}."
            s.conv(at + "conv1", mid, before, 1, 1, bias=False), s.batch_norm(at + "bn1", mid)
            s.conv(at + "conv2", mid, mid, 3, 3, bias=False), s.batch_norm(at + "bn2", mid)
            s.conv(at + "conv3", 4 * mid, mid, 1, 1, bias=False), s.batch_norm(at + "bn3", 4 * mid)
            if i == 0:
                s.conv(at + "downsample.0", 4 * mid, before, 1, 1, bias=False)
                s.batch_norm(at + "downsample.1", 4 * mid)
            before = 4 * mid
    s.linear("fc", 10, before)


def mamba(s):
    inner, state, rank = 2 * s.hidden, 8, 4
    s.add("backbone.embeddings.weight", s.vocab, s.hidden)
    for i in range(s.layers):
        at = f"backbone.layers.{i}."
        s.norm(at + "norm", bias=False)
        s.tensors[at + "mixer.A_log"] = np.log(s.rng.random((inner, state)) * 8 + 1).astype(
            np.float32
        )
        s.tensors[at + "mixer.D"] = (1 + s.rng.standard_normal(inner) / 10).astype(np.float32)
        s.linear(at + "mixer.in_proj", 2 * inner, s.hidden, False)
        s.conv(at + "mixer.conv1d", inner, 1, 4)
        s.linear(at + "mixer.x_proj", rank + 2 * state, inner, False)
        s.linear(at + "mixer.dt_proj", inner, rank), s.linear(
            at + "mixer.out_proj", s.hidden, inner, False
        )
    s.norm("backbone.norm_f", bias=False)


def wav2vec2(s):
    at = "wav2vec2.feature_extractor.conv_layers."
    for i in range(3):
        s.conv(f"{at}{i}.conv", 16, 1 if i == 0 else 16, 3, bias=False)
        if i == 0:
            s.norm(at + "0.layer_norm", 16)
    s.norm("wav2vec2.feature_projection.layer_norm", 16), s.linear(
        "wav2vec2.feature_projection.projection", s.hidden, 16
    )
    at = "wav2vec2.encoder.pos_conv_embed.conv."
    s.add(at + "weight_g", 1, 1, 8), s.add(at + "weight_v", s.hidden, s.hidden // 4, 8), s.add(
        at + "bias", s.hidden
    )
    s.norm("wav2vec2.encoder.layer_norm")
    for i in range(s.layers):
        layer = f"wav2vec2.encoder.layers.{i}."
        for name in ("k", "v", "q", "out"):
            s.linear(f"{layer}attention.{name}_proj", s.hidden, s.hidden)
        s.norm(layer + "layer_norm"), s.norm(layer + "final_layer_norm")
        s.linear(layer + "feed_forward.intermediate_dense", s.inner, s.hidden)
        s.linear(layer + "feed_forward.output_dense", s.hidden, s.inner)
    s.linear("lm_head", 32, s.hidden)
