"""Models of images, drawn after those of conversion_models.py were settled; and all of these."""

import re

import conversion_late as first
from conversion_vision import leaf_flax


def unet(s):
    """Down, middle and up blocks, as diffusers names them."""
    sizes = [16, 32]
    s.linear("time_embedding.linear_1", 64, 16), s.linear("time_embedding.linear_2", 64, 64)
    s.conv("conv_in", 16, 4, 3, 3)

    def resnet(at, before, size):
        s.norm(at + "norm1", before), s.conv(at + "conv1", size, before, 3, 3), s.linear(
            at + "time_emb_proj", size, 64
        )
        s.norm(at + "norm2", size), s.conv(at + "conv2", size, size, 3, 3)
        if before != size:
            s.conv(at + "conv_shortcut", size, before, 1, 1)

    before = 16
    for i, size in enumerate(sizes):
        for j in range(2):
            resnet(f"down_blocks.{i}.resnets.{j}.", before, size)
            before = size
        if i == 0:
            s.conv("down_blocks.0.downsamplers.0.conv", 16, 16, 3, 3)
    resnet("mid_block.resnets.0.", 32, 32), resnet("mid_block.resnets.1.", 32, 32)
    for i, size in enumerate(reversed(sizes)):
        for j in range(3):
            resnet(f"up_blocks.{i}.resnets.{j}.", before + (size if j < 2 else 16), size)
            before = size
        if i == 0:
            s.conv("up_blocks.0.upsamplers.0.conv", 32, 32, 3, 3)
    s.norm("conv_norm_out", 16), s.conv("conv_out", 4, 16, 3, 3)


def unet_ldm(k, s):
    """One list of input blocks and one of output blocks, counted through."""
    parts = {
        "norm1": "in_layers.0",
        "conv1": "in_layers.2",
        "time_emb_proj": "emb_layers.1",
        "norm2": "out_layers.0",
        "conv2": "out_layers.3",
        "conv_shortcut": "skip_connection",
    }
    fixed = {
        "time_embedding.linear_1": "time_embed.0",
        "time_embedding.linear_2": "time_embed.2",
        "conv_in": "input_blocks.0.0",
        "down_blocks.0.downsamplers.0.conv": "input_blocks.3.0.op",
        "up_blocks.0.upsamplers.0.conv": "output_blocks.2.1.conv",
        "conv_norm_out": "out.0",
        "conv_out": "out.2",
    }
    for name in list(k.a):
        module, leaf = name.rsplit(".", 1)
        found = re.match(r"(down|up)_blocks\.(\d)\.resnets\.(\d)\.(\w+)", module)
        middle = re.match(r"mid_block\.resnets\.(\d)\.(\w+)", module)
        if found:
            i, j, down = int(found[2]), int(found[3]), found[1] == "down"
            at = f"input_blocks.{1 + 3 * i + j}.0" if down else f"output_blocks.{3 * i + j}.0"
            new = f"{at}.{parts[found[4]]}"
        elif middle:
            new = f"middle_block.{2 * int(middle[1])}.{parts[middle[2]]}"
        else:
            new = fixed[module]
        k.put(f"model.diffusion_model.{new}.{leaf}", k.get(name))


def rwkv(s):
    s.add("rwkv.embeddings.weight", s.vocab, s.hidden)
    for i in range(s.layers):
        at = f"rwkv.blocks.{i}."
        if i == 0:
            s.norm(at + "pre_ln")
        s.norm(at + "ln1"), s.norm(at + "ln2")
        for name in ("time_decay", "time_first"):
            s.add(f"{at}attention.{name}", s.hidden, std=0.3)
        for name in ("key", "value", "receptance"):
            s.add(f"{at}attention.time_mix_{name}", 1, 1, s.hidden, std=0.3)
            s.linear(f"{at}attention.{name}", s.hidden, s.hidden, False)
        s.linear(at + "attention.output", s.hidden, s.hidden, False)
        s.add(at + "feed_forward.time_mix_key", 1, 1, s.hidden, std=0.3), s.add(
            at + "feed_forward.time_mix_receptance", 1, 1, s.hidden, std=0.3
        )
        s.linear(at + "feed_forward.key", s.inner, s.hidden, False), s.linear(
            at + "feed_forward.receptance", s.hidden, s.hidden, False
        )
        s.linear(at + "feed_forward.value", s.hidden, s.inner, False)
    s.norm("rwkv.ln_out"), s.linear("head", s.vocab, s.hidden, False)


def rwkv_original(k, s):
    for name in list(k.a):
        new = name.removeprefix("rwkv.").replace("embeddings.", "emb.").replace("pre_ln", "ln0")
        new = new.replace("attention.", "att.").replace("feed_forward.", "ffn.")
        new = re.sub(r"time_mix_(key|value|receptance)", lambda m: "time_mix_" + m[1][0], new)
        k.put(new, k.get(name))


def efficientnet(s):
    """timm."""
    s.conv("conv_stem", 16, 3, 3, 3, bias=False), s.batch_norm("bn1", 16)
    before, s.depths = 16, [1, 2, 2]
    for stage, depth in enumerate(s.depths):
        size = 16 + 8 * stage
        for i in range(depth):
            at = f"blocks.{stage}.{i}."
            mid = 4 * before
            s.conv(at + "conv_pw", mid, before, 1, 1, bias=False), s.batch_norm(at + "bn1", mid)
            s.conv(at + "conv_dw", mid, 1, 3, 3, bias=False), s.batch_norm(at + "bn2", mid)
            s.conv(at + "se.conv_reduce", 8, mid, 1, 1), s.conv(
                at + "se.conv_expand", mid, 8, 1, 1
            )
            s.conv(at + "conv_pwl", size, mid, 1, 1, bias=False), s.batch_norm(at + "bn3", size)
            before = size
    s.conv("conv_head", 64, before, 1, 1, bias=False), s.batch_norm("bn2", 64), s.linear(
        "classifier", 10, 64
    )


def efficientnet_keras(k, s):
    """block1a_expand_conv/kernel; depthwise kernels as [height, width, channels, 1]."""
    parts = {
        "conv_pw": "expand_conv",
        "conv_dw": "dwconv",
        "conv_pwl": "project_conv",
        "se.conv_reduce": "se_reduce",
        "se.conv_expand": "se_expand",
        "bn1": "expand_bn",
        "bn2": "bn",
        "bn3": "project_bn",
    }
    ends = {
        "conv_stem": "stem_conv",
        "bn1": "stem_bn",
        "conv_head": "top_conv",
        "bn2": "top_bn",
        "classifier": "predictions",
    }
    leaves = {
        "weight": "gamma",
        "bias": "beta",
        "running_mean": "moving_mean",
        "running_var": "moving_variance",
    }
    for name in [n for n in k.a if not n.endswith("num_batches_tracked")]:
        made, (module, leaf) = k.get(name), name.rsplit(".", 1)
        found = re.match(r"blocks\.(\d+)\.(\d+)\.(.+)", module)
        new = (
            f"block{int(found[1]) + 1}{'abc'[int(found[2])]}_{parts[found[3]]}"
            if found
            else ends[module]
        )
        if new.endswith("bn"):
            k.put(f"{new}/{leaves[leaf]}", made)
        elif leaf == "bias":
            k.put(f"{new}/bias", made)
        elif "dwconv" in new:
            k.put(f"{new}/depthwise_kernel", k.axes(made, 2, 3, 0, 1))
        else:
            k.put(f"{new}/kernel", k.axes(made, 2, 3, 1, 0) if made.value.ndim == 4 else k.t(made))


def sam(s):
    """The encoder of images with relative positions, as transformers names it."""
    s.conv("vision_encoder.patch_embed.projection", s.hidden, 3, 4, 4), s.add(
        "vision_encoder.pos_embed", 1, 8, 8, s.hidden
    )
    for i in range(s.layers):
        at = f"vision_encoder.layers.{i}."
        s.norm(at + "layer_norm1"), s.norm(at + "layer_norm2")
        s.linear(at + "attn.qkv", 3 * s.hidden, s.hidden), s.linear(
            at + "attn.proj", s.hidden, s.hidden
        )
        s.add(at + "attn.rel_pos_h", 15, s.head), s.add(at + "attn.rel_pos_w", 15, s.head)
        s.linear(at + "mlp.lin1", s.inner, s.hidden), s.linear(at + "mlp.lin2", s.hidden, s.inner)
    s.conv("vision_encoder.neck.conv1", 32, s.hidden, 1, 1, bias=False), s.norm(
        "vision_encoder.neck.layer_norm1", 32
    )
    s.conv("vision_encoder.neck.conv2", 32, 32, 3, 3, bias=False), s.norm(
        "vision_encoder.neck.layer_norm2", 32
    )


def sam_original(k, s):
    names = [
        ("vision_encoder", "image_encoder"),
        ("patch_embed.projection", "patch_embed.proj"),
        ("layers.", "blocks."),
        ("neck.conv1", "neck.0"),
        ("neck.layer_norm1", "neck.1"),
        ("neck.conv2", "neck.2"),
        ("neck.layer_norm2", "neck.3"),
        ("layer_norm1", "norm1"),
        ("layer_norm2", "norm2"),
    ]
    for name in list(k.a):
        new = name
        for ours, theirs in names:
            new = new.replace(ours, theirs)
        k.put(new, k.get(name))


def vgg(s):
    at, before = 0, 3
    for size, count in ((8, 1), (16, 2), (32, 3)):
        for _ in range(count):
            s.conv(f"features.{at}", size, before, 3, 3)
            at, before = at + 2, size
        at += 1
    s.linear("classifier.0", 64, 32 * 4), s.linear("classifier.3", 64, 64), s.linear(
        "classifier.6", 10, 64
    )


def vgg_keras(k, s):
    """block1_conv1/kernel; the convolutions of each block from 1 on."""
    numbers = iter(
        [
            "block1_conv1",
            "block2_conv1",
            "block2_conv2",
            "block3_conv1",
            "block3_conv2",
            "block3_conv3",
            "fc1",
            "fc2",
            "predictions",
        ]
    )
    for name in [n for n in k.a if n.endswith("weight")]:
        new, made = next(numbers), k.get(name)
        k.put(new + "/kernel", k.axes(made, 2, 3, 1, 0) if made.value.ndim == 4 else k.t(made))
        k.put(new + "/bias", k.get(name.replace("weight", "bias")))


def late_flax(k, s):
    for name in list(k.a):
        k.put(*leaf_flax(k, name, k.get(name)))


CONVERSIONS = [
    (first.bert, first.bert_tf, "npz"),
    (first.bert, first.bert_megatron, ""),
    (first.gpt2, first.gpt2_linear, ""),
    (first.gpt2, first.gpt2_split, ""),
    (first.internlm2, first.internlm2_llama, ""),
    (first.baichuan, first.baichuan_llama, ""),
    (first.dbrx, first.dbrx_gguf, "gguf:dbrx"),
    (first.whisper, first.whisper_mlx, "npz"),
    (unet, unet_ldm, ""),
    (rwkv, rwkv_original, ""),
    (efficientnet, efficientnet_keras, "npz"),
    (sam, sam_original, ""),
    (vgg, vgg_keras, ""),
    (first.bert, late_flax, "msgpack"),
    (unet, late_flax, "msgpack"),
    (sam, late_flax, "msgpack"),
]
