"""Converters of vision, speech and two-tower models, each in the way of a real one."""

import re

import numpy as np


def leaf_flax(k, name, made, norm_words=("norm", "ln")):
    """The name and value of a parameter as Flax has it."""
    new = name.replace(".", "/")
    if not new.endswith("/weight"):
        return new, made
    module = new.rsplit("/", 2)[-2]
    if made.value.ndim == 1:
        return new.replace("/weight", "/scale"), made
    if "embed" in module and made.value.ndim == 2:
        return new.replace("/weight", "/embedding"), made
    new = new.replace("/weight", "/kernel")
    return new, k.axes(made, 2, 3, 1, 0) if made.value.ndim == 4 else k.t(made)


def plain_flax(k, s):
    """As the Flax classes of transformers: names with slashes, kernels, scales."""
    for name in list(k.a):
        if name.endswith("num_batches_tracked"):
            continue
        k.put(*leaf_flax(k, name, k.get(name)))


def vit_bigvision(k, s):
    """The npz of the ViT authors: kernels with an axis of heads."""
    conv = k.get("vit.embeddings.patch_embeddings.projection.weight")
    k.put("embedding/kernel", k.axes(conv, 2, 3, 1, 0))
    k.put("embedding/bias", k.get("vit.embeddings.patch_embeddings.projection.bias"))
    k.put("cls", k.get("vit.embeddings.cls_token"))
    k.put("Transformer/posembed_input/pos_embedding", k.get("vit.embeddings.position_embeddings"))
    for leaf, new in (("weight", "scale"), ("bias", "bias")):
        k.put(f"Transformer/encoder_norm/{new}", k.get(f"vit.layernorm.{leaf}"))
    k.put("head/kernel", k.t(k.get("classifier.weight"))), k.put(
        "head/bias", k.get("classifier.bias")
    )
    for i in range(s.layers):
        old, new = f"vit.encoder.layer.{i}.", f"Transformer/encoderblock_{i}/"
        for name in ("query", "key", "value"):
            at = f"{old}attention.attention.{name}."
            k.put(
                f"{new}MultiHeadDotProductAttention_1/{name}/kernel",
                k.reshape(k.t(k.get(at + "weight")), s.hidden, s.heads, s.head),
            )
            k.put(
                f"{new}MultiHeadDotProductAttention_1/{name}/bias",
                k.reshape(k.get(at + "bias"), s.heads, s.head),
            )
        out = k.t(k.get(old + "attention.output.dense.weight"))
        k.put(
            new + "MultiHeadDotProductAttention_1/out/kernel",
            k.reshape(out, s.heads, s.head, s.hidden),
        )
        k.put(
            new + "MultiHeadDotProductAttention_1/out/bias",
            k.get(old + "attention.output.dense.bias"),
        )
        for theirs, ours in (
            ("MlpBlock_3/Dense_0", "intermediate.dense"),
            ("MlpBlock_3/Dense_1", "output.dense"),
        ):
            k.put(f"{new}{theirs}/kernel", k.t(k.get(f"{old}{ours}.weight")))
            k.put(f"{new}{theirs}/bias", k.get(f"{old}{ours}.bias"))
        for theirs, ours in (
            ("LayerNorm_0", "layernorm_before"),
            ("LayerNorm_2", "layernorm_after"),
        ):
            k.put(f"{new}{theirs}/scale", k.get(f"{old}{ours}.weight"))
            k.put(f"{new}{theirs}/bias", k.get(f"{old}{ours}.bias"))


def patches(order):
    """A ViT whose patches are cut first, so that their embedding is a matrix; blocks from 1 on."""

    def convert(k, s):
        for name in list(k.a):
            made, new = k.get(name), name.replace("vit.encoder.layer.", "trunk.blocks.")
            if name.endswith("projection.weight"):
                axes = {"cpp": (0, 1, 2, 3), "ppc": (0, 2, 3, 1), "pcp": (0, 2, 1, 3)}[order]
                made = k.map(made, lambda value: value.transpose(axes).reshape(len(value), -1))
            k.put(new.replace("vit.", "trunk."), made)

    return convert


def patches_first(k, s):
    """The same as a kernel: [ph pw C, out]."""
    for name in list(k.a):
        made = k.get(name)
        if name.endswith("projection.weight"):
            k.put(
                "embed/kernel", k.map(made, lambda v: v.transpose(2, 3, 1, 0).reshape(-1, len(v)))
            )
        else:
            k.put(*leaf_flax(k, name, made))


def vit_mlx(k, s):
    """MLX keeps linear weights and moves the channels of convolutions to the end."""
    for name in list(k.a):
        made = k.get(name)
        k.put(name, k.axes(made, 0, 2, 3, 1) if made.value.ndim == 4 else made)


def vit_from_one(k, s):
    """Blocks counted from 1, each part under a name of its own."""
    names = {
        "attention.attention.query": "att.to_q",
        "attention.attention.key": "att.to_k",
        "attention.attention.value": "att.to_v",
        "attention.output.dense": "att.merge",
        "intermediate.dense": "ff.grow",
        "output.dense": "ff.shrink",
        "layernorm_before": "pre_att",
        "layernorm_after": "pre_ff",
    }
    for name in list(k.a):
        found = re.match(r"vit\.encoder\.layer\.(\d+)\.(.*)\.(\w+)$", name)
        new = (
            f"net.block{int(found[1]) + 1}.{names[found[2]]}.{found[3]}"
            if found
            else "net." + name
        )
        k.put(new, k.get(name))


def clip_openai(k, s):
    top = {"text_projection.weight": "text_projection", "visual_projection.weight": "visual.proj"}
    ends = {
        "text_model.embeddings.token_embedding.weight": "token_embedding.weight",
        "text_model.embeddings.position_embedding.weight": "positional_embedding",
        "vision_model.embeddings.class_embedding": "visual.class_embedding",
        "vision_model.embeddings.position_embedding.weight": "visual.positional_embedding",
        "vision_model.embeddings.patch_embedding.weight": "visual.conv1.weight",
    }
    norms = {
        "text_model.final_layer_norm": "ln_final",
        "vision_model.pre_layrnorm": "visual.ln_pre",
        "vision_model.post_layernorm": "visual.ln_post",
    }
    for old, new in ends.items():
        k.put(new, k.get(old))
    for old, new in norms.items():
        for leaf in ("weight", "bias"):
            k.put(f"{new}.{leaf}", k.get(f"{old}.{leaf}"))
    k.put("text_projection", k.t(k.get("text_projection.weight")))
    k.put("visual.proj", k.t(k.get("vision_projection.weight")))
    k.put("logit_scale", k.get("logit_scale"))
    assert top
    for tower, prefix in (("text_model", ""), ("vision_model", "visual.")):
        for i in range(s.layers):
            old, new = f"{tower}.encoder.layers.{i}.", f"{prefix}transformer.resblocks.{i}."
            for leaf in ("weight", "bias"):
                k.put(
                    f"{new}attn.in_proj_{leaf}",
                    k.join([k.get(f"{old}self_attn.{p}_proj.{leaf}") for p in "qkv"]),
                )
                for ours, theirs in (
                    ("self_attn.out_proj", "attn.out_proj"),
                    ("layer_norm1", "ln_1"),
                    ("layer_norm2", "ln_2"),
                    ("mlp.fc1", "mlp.c_fc"),
                    ("mlp.fc2", "mlp.c_proj"),
                ):
                    k.put(f"{new}{theirs}.{leaf}", k.get(f"{old}{ours}.{leaf}"))


def convnext_facebook(k, s):
    for name in list(k.a):
        new = name.removeprefix("convnext.")
        new = new.replace("embeddings.patch_embeddings", "downsample_layers.0.0")
        new = new.replace("embeddings.layernorm", "downsample_layers.0.1")
        new = re.sub(r"encoder\.stages\.(\d+)\.downsampling_layer", r"downsample_layers.\1", new)
        new = re.sub(r"encoder\.stages\.(\d+)\.layers\.(\d+)", r"stages.\1.\2", new)
        new = new.replace("layer_scale_parameter", "gamma").replace("classifier", "head")
        new = re.sub(r"(stages\.\d+\.\d+)\.layernorm", r"\1.norm", new)
        k.put(re.sub(r"^layernorm", "norm", new), k.get(name))


def convnext_flat(k, s):
    """All blocks of all stages counted through, as Keras does, and kernels."""
    first = np.cumsum([0] + s.depths)
    for name in list(k.a):
        new = re.sub(
            r"encoder\.stages\.(\d+)\.layers\.(\d+)",
            lambda m: f"blocks.{first[int(m[1])] + int(m[2])}",
            name,
        )
        new = re.sub(r"encoder\.stages\.(\d+)\.downsampling_layer", r"reduce.\1", new)
        k.put(*leaf_flax(k, new, k.get(name)))


def swin_flat(k, s):
    first = np.cumsum([0] + s.depths)
    for name in list(k.a):
        new = re.sub(
            r"encoder\.layers\.(\d+)\.blocks\.(\d+)",
            lambda m: f"blk.{first[int(m[1])] + int(m[2])}",
            name,
        )
        new = re.sub(r"encoder\.layers\.(\d+)\.downsample", r"down.\1", new)
        k.put(new, k.get(name))


def resnet_huggingface(k, s):
    part = {"1": "0", "2": "1", "3": "2"}

    def rename(name):
        name = name.replace("fc.", "classifier.1.") if name.startswith("fc.") else name
        name = re.sub(r"^conv1\.", "resnet.embedder.embedder.convolution.", name)
        name = re.sub(r"^bn1\.", "resnet.embedder.embedder.normalization.", name)
        at = lambda m: f"resnet.encoder.stages.{int(m[1]) - 1}.layers.{m[2]}."
        name = re.sub(
            r"^layer(\d)\.(\d+)\.conv(\d)\.",
            lambda m: f"{at(m)}layer.{part[m[3]]}.convolution.",
            name,
        )
        name = re.sub(
            r"^layer(\d)\.(\d+)\.bn(\d)\.",
            lambda m: f"{at(m)}layer.{part[m[3]]}.normalization.",
            name,
        )
        name = re.sub(
            r"^layer(\d)\.(\d+)\.downsample\.0\.", lambda m: at(m) + "shortcut.convolution.", name
        )
        return re.sub(
            r"^layer(\d)\.(\d+)\.downsample\.1\.",
            lambda m: at(m) + "shortcut.normalization.",
            name,
        )

    for name in list(k.a):
        k.put(rename(name), k.get(name))


def resnet_keras(k, s):
    """keras.applications: conv2_block1_1_conv, 0 for the shortcut, moving averages."""
    leaves = {
        "weight": "gamma",
        "bias": "beta",
        "running_mean": "moving_mean",
        "running_var": "moving_variance",
    }
    for name in [n for n in k.a if not n.endswith("num_batches_tracked")]:
        made, (*path, leaf) = k.get(name), name.split(".")
        if path == ["fc"]:
            k.put(
                f"predictions/{'kernel' if leaf == 'weight' else 'bias'}",
                k.t(made) if leaf == "weight" else made,
            )
            continue
        if path[0] in ("conv1", "bn1"):
            block, number = "conv1", ""
        else:
            block = f"conv{int(path[0][5:]) + 1}_block{int(path[1]) + 1}"
            number = "_0" if path[2] == "downsample" else "_" + path[2][-1]
        is_conv = path[-1].startswith("conv") or path[-2:] == ["downsample", "0"]
        if is_conv:
            k.put(f"{block}{number}_conv/kernel", k.axes(made, 2, 3, 1, 0))
        else:
            k.put(f"{block}{number}_bn/{leaves[leaf]}", made)


def resnet_detectron(k, s):
    for name in [n for n in k.a if not n.endswith("num_batches_tracked")]:
        new = re.sub(r"bn(\d)\.", r"conv\1.norm.", name)
        new = re.sub(r"layer(\d)", lambda m: f"res{int(m[1]) + 1}", new)
        new = new.replace("downsample.0", "shortcut").replace("downsample.1", "shortcut.norm")
        k.put(new if new.startswith(("res", "fc")) else "stem." + new, k.get(name))


def wav2vec2_fairseq(k, s):
    names = [
        (
            "wav2vec2.feature_extractor.conv_layers.0.layer_norm",
            "w2v_model.feature_extractor.conv_layers.0.2",
        ),
        ("wav2vec2.feature_projection.layer_norm", "w2v_model.layer_norm"),
        ("wav2vec2.feature_projection.projection", "w2v_model.post_extract_proj"),
        ("wav2vec2.encoder.pos_conv_embed.conv", "w2v_model.encoder.pos_conv.0"),
        ("attention.", "self_attn."),
        (".layer_norm", ".self_attn_layer_norm"),
        ("feed_forward.intermediate_dense", "fc1"),
        ("feed_forward.output_dense", "fc2"),
    ]
    for name in list(k.a):
        new = re.sub(r"(conv_layers\.\d)\.conv\.", r"\1.0.", name)
        for old, theirs in names:
            if old != ".layer_norm" or ".layers." in new:
                new = new.replace(old, theirs)
        k.put(new.replace("wav2vec2.", "w2v_model.").replace("lm_head", "proj"), k.get(name))


def wav2vec2_merged(k, s):
    """Without weight norm."""
    at = "wav2vec2.encoder.pos_conv_embed.conv."
    for name in list(k.a):
        if name.startswith(at + "weight"):
            continue
        k.put(name, k.get(name))
    g, v = k.get(at + "weight_g"), k.get(at + "weight_v")
    made = k.map(v, lambda value: value / np.sqrt((value**2).sum((0, 1), keepdims=True)) * g.value)
    made.sources = frozenset([at + "weight_g", at + "weight_v"])
    k.put(at + "weight", made)
