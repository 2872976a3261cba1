"""Pairs of implementations by different people: of transformers, and of timm or of torch itself.

Each takes the weights of the one of transformers. Neither side was written for tensordiff, and the
module trees, fused weights and places of norms and residuals are those that the authors chose.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from typing import Any

import torch

Rules = list[tuple[str, str]]

_DEPTHS = (1, 1, 2, 1)
_WIDTHS = (16, 24, 32, 40)


def _renamed(theirs: torch.nn.Module, rules: Rules, fused: str = "") -> dict[str, torch.Tensor]:
    """The state of a model under other names; `fused` names query, key and value as one."""
    state: dict[str, torch.Tensor] = {}
    parts: dict[str, list[torch.Tensor]] = {}
    for name, tensor in theirs.state_dict().items():
        for pattern, other in rules:
            name = re.sub(pattern, other, name)
        one = re.sub(r"(query|key|value)\.(weight|bias)$", fused, name) if fused else name
        if one != name:
            parts.setdefault(one, []).append(tensor)
        else:
            state[name] = tensor
    return state | {name: torch.cat(tensors) for name, tensors in parts.items()}


def _load(port: torch.nn.Module, state: dict[str, torch.Tensor]) -> torch.nn.Module:
    own = port.state_dict()
    port.load_state_dict({name: tensor.clone() for name, tensor in state.items() if name in own},
                         strict=False)
    missing = own.keys() - state.keys()
    assert not missing, sorted(missing)
    return port.eval()


def vit(theirs: Any) -> torch.nn.Module:
    from timm.models.vision_transformer import VisionTransformer
    port = VisionTransformer(img_size=32, patch_size=8, embed_dim=32, depth=3, num_heads=4,
                             mlp_ratio=1.5, num_classes=5)
    port.norm.eps = theirs.config.layer_norm_eps
    for block in port.blocks:
        block.norm1.eps = block.norm2.eps = theirs.config.layer_norm_eps
    return _load(port, _renamed(theirs, [
        (r"^vit\.", ""), (r"^embeddings\.cls_token", "cls_token"),
        (r"^embeddings\.position_embeddings", "pos_embed"),
        (r"^embeddings\.patch_embeddings\.projection", "patch_embed.proj"),
        (r"^encoder\.layer\.", "blocks."), (r"attention\.attention\.", "attn."),
        (r"attention\.output\.dense", "attn.proj"), (r"intermediate\.dense", "mlp.fc1"),
        (r"output\.dense", "mlp.fc2"), (r"layernorm_before", "norm1"),
        (r"layernorm_after", "norm2"), (r"^layernorm", "norm"), (r"^classifier", "head")],
        r"qkv.\2"))


def convnext(theirs: Any) -> torch.nn.Module:
    from timm.models.convnext import ConvNeXt
    port = ConvNeXt(depths=_DEPTHS, dims=_WIDTHS, num_classes=5)
    # transformers has another epsilon in the last norm than in those of the blocks.
    port.head.norm.eps = theirs.config.layer_norm_eps
    return _load(port, _renamed(theirs, [
        (r"^convnext\.", ""), (r"^embeddings\.patch_embeddings", "stem.0"),
        (r"^embeddings\.layernorm", "stem.1"), (r"^encoder\.", ""),
        (r"\.layers\.", ".blocks."), (r"layer_scale_parameter", "gamma"),
        (r"dwconv", "conv_dw"), (r"\.layernorm\.", ".norm."), (r"pwconv", "mlp.fc"),
        (r"downsampling_layer", "downsample"), (r"^layernorm", "head.norm"),
        (r"^classifier", "head.fc")]))


def swin(theirs: Any) -> torch.nn.Module:
    from timm.models.swin_transformer import SwinTransformer
    port = SwinTransformer(img_size=32, patch_size=4, window_size=4, embed_dim=16, depths=(1, 2),
                           num_heads=(2, 4), num_classes=5)
    return _load(port, _renamed(theirs, [
        (r"^swin\.", ""), (r"^embeddings\.patch_embeddings\.projection", "patch_embed.proj"),
        (r"^embeddings\.norm", "patch_embed.norm"), (r"^encoder\.", ""),
        (r"layers\.0\.downsample", "layers.1.downsample"), (r"attention\.self\.", "attn."),
        (r"attention\.output\.dense", "attn.proj"), (r"intermediate\.dense", "mlp.fc1"),
        (r"output\.dense", "mlp.fc2"), (r"layernorm_before", "norm1"),
        (r"layernorm_after", "norm2"), (r"^layernorm", "norm"), (r"^classifier", "head.fc")],
        r"qkv.\2"))


def resnet(theirs: Any) -> torch.nn.Module:
    from timm.models.resnet import Bottleneck, ResNet
    port = ResNet(Bottleneck, list(_DEPTHS), num_classes=5,
                  channels=tuple(width // 4 for width in _WIDTHS))
    rules: Rules = [
        (r"^resnet\.", ""), (r"^embedder\.embedder\.convolution", "conv1"),
        (r"^embedder\.embedder\.normalization", "bn1"), (r"^classifier\.1", "fc"),
        (r"shortcut\.convolution", "downsample.0"), (r"shortcut\.normalization", "downsample.1")]
    for at in range(4):
        rules.append((rf"^encoder\.stages\.{at}\.layers\.", f"layer{at + 1}."))
    for at in range(3):
        rules += [(rf"\.layer\.{at}\.convolution", f".conv{at + 1}"),
                  (rf"\.layer\.{at}\.normalization", f".bn{at + 1}")]
    return _load(port, _renamed(theirs, rules))


class TorchBert(torch.nn.Module):
    """BERT's encoder with the layers of torch, whose query, key and value are no modules."""

    def __init__(self, width: int, heads: int, inner: int, layers: int, eps: float) -> None:
        super().__init__()
        self.layers = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(
            width, heads, inner, 0.0, "gelu", eps, batch_first=True), layers,
            enable_nested_tensor=False)
        self.word = torch.nn.Embedding(96, width)
        self.place = torch.nn.Embedding(64, width)
        self.kind = torch.nn.Embedding(2, width)
        self.norm = torch.nn.LayerNorm(width, eps)
        self.dense = torch.nn.Linear(width, width)
        self.second = torch.nn.LayerNorm(width, eps)
        self.out = torch.nn.Linear(width, 96)

    def forward(self, input_ids: Any) -> Any:
        places = torch.arange(input_ids.shape[1])
        x = self.word(input_ids) + self.place(places) + self.kind(torch.zeros_like(input_ids))
        x = self.layers(self.norm(x))
        return self.out(self.second(torch.nn.functional.gelu(self.dense(x))))


def bert(theirs: Any) -> torch.nn.Module:
    config = theirs.config
    port = TorchBert(config.hidden_size, config.num_attention_heads, config.intermediate_size,
                     config.num_hidden_layers, config.layer_norm_eps)
    return _load(port, _renamed(theirs, [
        (r"^bert\.", ""), (r"^embeddings\.word_embeddings", "word"),
        (r"^embeddings\.position_embeddings", "place"),
        (r"^embeddings\.token_type_embeddings", "kind"), (r"^embeddings\.LayerNorm", "norm"),
        (r"^encoder\.layer\.", "layers.layers."), (r"attention\.self\.", "self_attn."),
        (r"attention\.output\.dense", "self_attn.out_proj"),
        (r"attention\.output\.LayerNorm", "norm1"), (r"intermediate\.dense", "linear1"),
        (r"output\.dense", "linear2"), (r"output\.LayerNorm", "norm2"),
        (r"^cls\.predictions\.transform\.dense", "dense"),
        (r"^cls\.predictions\.transform\.LayerNorm", "second"),
        (r"^cls\.predictions\.decoder", "out")], r"in_proj_\2"))


class Turned(torch.nn.Module):
    """Attention as in the first Llama: RoPE turns neighbours, so rows of q and k lie otherwise."""

    def __init__(self, theirs: Any, config: Any) -> None:
        super().__init__()
        self.heads, self.groups = config.num_attention_heads, config.num_key_value_heads
        self.size = config.hidden_size // self.heads
        self.wq, self.wk, self.wv, self.wo = (
            torch.nn.Linear(part.weight.shape[1], part.weight.shape[0], bias=False)
            for part in (theirs.q_proj, theirs.k_proj, theirs.v_proj, theirs.o_proj))
        for mine, part in ((self.wq, theirs.q_proj), (self.wk, theirs.k_proj)):
            rows = part.weight.detach().unflatten(0, (-1, 2, self.size // 2)).transpose(1, 2)
            mine.weight = torch.nn.Parameter(rows.reshape(part.weight.shape).clone())
        self.wv.weight = torch.nn.Parameter(theirs.v_proj.weight.detach().clone())
        self.wo.weight = torch.nn.Parameter(theirs.o_proj.weight.detach().clone())

    def forward(self, x: Any, turns: Any) -> Any:
        q = self.wq(x).unflatten(-1, (self.heads, self.size))
        k = self.wk(x).unflatten(-1, (self.groups, self.size))
        v = self.wv(x).unflatten(-1, (self.groups, self.size))
        q, k = self.turn(q, turns), self.turn(k, turns)
        k, v = (each.repeat_interleave(self.heads // self.groups, 2) for each in (k, v))
        y = torch.nn.functional.scaled_dot_product_attention(
            q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True)
        return self.wo(y.transpose(1, 2).flatten(2))

    def turn(self, x: Any, turns: Any) -> Any:
        pairs = torch.view_as_complex(x.float().unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * turns[:, None]).flatten(-2).type_as(x)


class FeedForward(torch.nn.Module):
    def __init__(self, theirs: Any) -> None:
        super().__init__()
        self.w1, self.w2, self.w3 = theirs.gate_proj, theirs.down_proj, theirs.up_proj

    def forward(self, x: Any) -> Any:
        return self.w2(torch.nn.functional.silu(self.w1(x)) * self.w3(x))


class Block(torch.nn.Module):
    def __init__(self, theirs: Any, config: Any) -> None:
        super().__init__()
        self.attention = Turned(theirs.self_attn, config)
        self.feed_forward = FeedForward(theirs.mlp)
        self.attention_norm = theirs.input_layernorm
        self.ffn_norm = theirs.post_attention_layernorm

    def forward(self, x: Any, turns: Any) -> Any:
        x = x + self.attention(self.attention_norm(x), turns)
        return x + self.feed_forward(self.ffn_norm(x))


class FirstLlama(torch.nn.Module):
    def __init__(self, theirs: Any) -> None:
        super().__init__()
        config = theirs.config
        self.tok_embeddings, self.norm, self.output = (
            theirs.model.embed_tokens, theirs.model.norm, theirs.lm_head)
        self.layers = torch.nn.ModuleList(Block(each, config) for each in theirs.model.layers)
        size = config.hidden_size // config.num_attention_heads
        self.step = 1 / config.rope_theta ** (torch.arange(0, size, 2) / size)

    def forward(self, input_ids: Any) -> Any:
        angles = torch.outer(torch.arange(input_ids.shape[1]), self.step)
        turns = torch.polar(torch.ones_like(angles), angles)
        x = self.tok_embeddings(input_ids)
        for layer in self.layers:
            x = layer(x, turns)
        return self.output(self.norm(x))


def llama(theirs: Any) -> torch.nn.Module:
    return FirstLlama(copy.deepcopy(theirs)).eval()


# Whose port: (the model of architectures.py, how it is ported).
OTHER: dict[str, Callable[[Any], torch.nn.Module]] = {
    "vit_classes": vit, "convnext_classes": convnext, "swin_classes": swin,
    "resnet_classes": resnet, "bert": bert, "llama": llama}
