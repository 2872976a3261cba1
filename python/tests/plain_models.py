"""Plain re-implementations of known models under other names and with fused weights.

Each takes the weights of its original; the two compute the same through another module tree.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional as F


def _heads(x: Any, count: int) -> Any:
    return x.unflatten(-1, (count, -1)).transpose(-2, -3)


def _join(x: Any) -> Any:
    return x.transpose(-2, -3).flatten(-2)


class RMS(nn.Module):
    def __init__(self, weight: Any, eps: float) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(weight.clone()), eps

    def forward(self, x: Any) -> Any:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


def _linear(weight: Any, bias: Any = None) -> nn.Linear:
    made = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
    made.weight = nn.Parameter(weight.detach().clone())
    if bias is not None:
        made.bias = nn.Parameter(bias.detach().clone())
    return made


# --- Llama: fused qkv and gate/up, its own RoPE ---


class LlamaAttention(nn.Module):
    def __init__(self, theirs: Any, config: Any) -> None:
        super().__init__()
        self.heads, self.groups = config.num_attention_heads, config.num_key_value_heads
        self.wqkv = _linear(torch.cat([theirs.q_proj.weight, theirs.k_proj.weight,
                                       theirs.v_proj.weight]))
        self.wo = _linear(theirs.o_proj.weight)
        self.width = config.hidden_size // self.heads

    def forward(self, x: Any, cos: Any, sin: Any) -> Any:
        sizes = [self.heads * self.width, self.groups * self.width, self.groups * self.width]
        q, k, v = self.wqkv(x).split(sizes, -1)
        q, k, v = _heads(q, self.heads), _heads(k, self.groups), _heads(v, self.groups)
        q, k = self.rotate(q, cos, sin), self.rotate(k, cos, sin)
        k = k.repeat_interleave(self.heads // self.groups, 1)
        v = v.repeat_interleave(self.heads // self.groups, 1)
        scores = q @ k.transpose(-1, -2) * self.width ** -0.5
        shape = scores.shape[-2:]
        scores = scores + torch.full(shape, float("-inf"), dtype=scores.dtype).triu(1)
        return self.wo(_join(scores.softmax(-1) @ v))

    def rotate(self, x: Any, cos: Any, sin: Any) -> Any:
        low, high = x.chunk(2, -1)
        return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


class LlamaBlock(nn.Module):
    def __init__(self, theirs: Any, config: Any) -> None:
        super().__init__()
        eps = config.rms_norm_eps
        self.norm_a = RMS(theirs.input_layernorm.weight.detach(), eps)
        self.norm_b = RMS(theirs.post_attention_layernorm.weight.detach(), eps)
        self.attention = LlamaAttention(theirs.self_attn, config)
        self.w13 = _linear(torch.cat([theirs.mlp.gate_proj.weight, theirs.mlp.up_proj.weight]))
        self.w2 = _linear(theirs.mlp.down_proj.weight)

    def forward(self, x: Any, cos: Any, sin: Any) -> Any:
        x = x + self.attention(self.norm_a(x), cos, sin)
        gate, up = self.w13(self.norm_b(x)).chunk(2, -1)
        return x + self.w2(F.silu(gate) * up)


class PlainLlama(nn.Module):
    def __init__(self, theirs: Any) -> None:
        super().__init__()
        config = theirs.config
        self.tok = nn.Embedding.from_pretrained(theirs.model.embed_tokens.weight.detach().clone())
        self.blocks = nn.ModuleList(LlamaBlock(each, config) for each in theirs.model.layers)
        self.norm_f = RMS(theirs.model.norm.weight.detach(), config.rms_norm_eps)
        self.out = _linear(theirs.lm_head.weight)
        width = config.hidden_size // config.num_attention_heads
        self.frequencies = 1 / config.rope_theta ** (torch.arange(0, width, 2) / width)

    def forward(self, input_ids: Any) -> Any:
        angles = torch.arange(input_ids.shape[1])[:, None] * self.frequencies
        x = self.tok(input_ids)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.out(self.norm_f(x))


# --- GPT-2: Linear instead of Conv1D, q, k, v apart ---


class GPT2Block(nn.Module):
    def __init__(self, theirs: Any, heads: int) -> None:
        super().__init__()
        self.heads = heads
        weight, bias = theirs.attn.c_attn.weight.t(), theirs.attn.c_attn.bias
        self.query, self.key, self.value = (
            _linear(w, b) for w, b in zip(weight.chunk(3), bias.chunk(3)))
        self.proj = _linear(theirs.attn.c_proj.weight.t(), theirs.attn.c_proj.bias)
        self.fc = _linear(theirs.mlp.c_fc.weight.t(), theirs.mlp.c_fc.bias)
        self.back = _linear(theirs.mlp.c_proj.weight.t(), theirs.mlp.c_proj.bias)
        self.pre, self.mid = _copy(theirs.ln_1), _copy(theirs.ln_2)

    def forward(self, x: Any) -> Any:
        x = x + self.attend(self.pre(x))
        h = self.fc(self.mid(x))
        h = F.gelu(h, approximate="tanh")
        return x + self.back(h)

    def attend(self, x: Any) -> Any:
        q, k, v = (_heads(each(x), self.heads) for each in (self.query, self.key, self.value))
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(torch.ones(scores.shape[-2:]).triu(1).bool(), float("-inf"))
        return self.proj(_join(scores.softmax(-1) @ v))


def _copy(norm: Any) -> nn.LayerNorm:
    made = nn.LayerNorm(norm.weight.shape, eps=norm.eps)
    made.load_state_dict(norm.state_dict())
    return made


class PlainGPT2(nn.Module):
    def __init__(self, theirs: Any) -> None:
        super().__init__()
        inner = theirs.transformer
        self.words = nn.Embedding.from_pretrained(inner.wte.weight.detach().clone())
        self.places = nn.Embedding.from_pretrained(inner.wpe.weight.detach().clone())
        self.stack = nn.ModuleList(GPT2Block(each, theirs.config.n_head) for each in inner.h)
        self.last = _copy(inner.ln_f)
        self.logits = _linear(theirs.lm_head.weight)

    def forward(self, input_ids: Any) -> Any:
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        for block in self.stack:
            x = block(x)
        return {"logits": self.logits(self.last(x))}


# --- ViT: patches by a product, fused qkv ---


class ViTBlock(nn.Module):
    def __init__(self, theirs: Any, heads: int) -> None:
        super().__init__()
        self.heads = heads
        inner = theirs.attention.attention
        parts = (inner.query, inner.key, inner.value)
        self.qkv = _linear(torch.cat([p.weight for p in parts]), torch.cat([p.bias for p in parts]))
        dense = theirs.attention.output.dense
        self.merge = _linear(dense.weight, dense.bias)
        up, down = theirs.intermediate.dense, theirs.output.dense
        self.up, self.down = _linear(up.weight, up.bias), _linear(down.weight, down.bias)
        self.one, self.two = _copy(theirs.layernorm_before), _copy(theirs.layernorm_after)

    def forward(self, x: Any) -> Any:
        q, k, v = (_heads(part, self.heads) for part in self.qkv(self.one(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v)
        x = x + self.merge(_join(y))
        return x + self.down(F.gelu(self.up(self.two(x))))


class PlainViT(nn.Module):
    def __init__(self, theirs: Any) -> None:
        super().__init__()
        projection = theirs.embeddings.patch_embeddings.projection
        self.size = projection.kernel_size[0]
        self.patch = _linear(projection.weight.flatten(1), projection.bias)
        self.first = nn.Parameter(theirs.embeddings.cls_token.detach().clone())
        self.place = nn.Parameter(theirs.embeddings.position_embeddings.detach().clone())
        self.blocks = nn.ModuleList(ViTBlock(each, theirs.config.num_attention_heads)
                                    for each in theirs.encoder.layer)
        self.final = _copy(theirs.layernorm)
        self.pool = _linear(theirs.pooler.dense.weight, theirs.pooler.dense.bias)

    def forward(self, pixel_values: Any) -> Any:
        x = F.unfold(pixel_values, self.size, stride=self.size).transpose(1, 2)
        x = self.patch(x)
        x = torch.cat([self.first.expand(len(x), -1, -1), x], 1) + self.place
        for block in self.blocks:
            x = block(x)
        x = self.final(x)
        return {"hidden": x, "pooled": torch.tanh(self.pool(x[:, 0]))}


# --- BERT-like: post-norm, with fused q and k only ---


class BertBlock(nn.Module):
    def __init__(self, theirs: Any, heads: int) -> None:
        super().__init__()
        self.heads = heads
        inner, out = theirs.attention.self, theirs.attention.output
        self.qk = _linear(torch.cat([inner.query.weight, inner.key.weight]),
                          torch.cat([inner.query.bias, inner.key.bias]))
        self.v = _linear(inner.value.weight, inner.value.bias)
        self.o = _linear(out.dense.weight, out.dense.bias)
        self.fc1 = _linear(theirs.intermediate.dense.weight, theirs.intermediate.dense.bias)
        self.fc2 = _linear(theirs.output.dense.weight, theirs.output.dense.bias)
        self.ln1, self.ln2 = _copy(out.LayerNorm), _copy(theirs.output.LayerNorm)

    def forward(self, x: Any) -> Any:
        q, k = (_heads(part, self.heads) for part in self.qk(x).chunk(2, -1))
        weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        y = _join(weights @ _heads(self.v(x), self.heads))
        x = self.ln1(x + self.o(y))
        return self.ln2(x + self.fc2(F.gelu(self.fc1(x))))


class PlainBert(nn.Module):
    def __init__(self, theirs: Any) -> None:
        super().__init__()
        embeddings, head = theirs.bert.embeddings, theirs.cls.predictions
        self.word = nn.Embedding.from_pretrained(embeddings.word_embeddings.weight.detach().clone())
        self.pos = nn.Embedding.from_pretrained(
            embeddings.position_embeddings.weight.detach().clone())
        self.kind = nn.Embedding.from_pretrained(
            embeddings.token_type_embeddings.weight.detach().clone())
        self.norm = _copy(embeddings.LayerNorm)
        self.layers = nn.ModuleList(BertBlock(each, theirs.config.num_attention_heads)
                                    for each in theirs.bert.encoder.layer)
        dense = head.transform.dense
        self.transform = _linear(dense.weight, dense.bias)
        self.transform_norm = _copy(head.transform.LayerNorm)
        self.decoder = _linear(head.decoder.weight, head.decoder.bias)

    def forward(self, input_ids: Any) -> Any:
        places = torch.arange(input_ids.shape[1])
        x = self.word(input_ids) + self.pos(places) + self.kind(torch.zeros_like(input_ids))
        x = self.norm(x)
        for layer in self.layers:
            x = layer(x)
        return self.decoder(self.transform_norm(F.gelu(self.transform(x))))


PLAIN: dict[str, Any] = {"llama": PlainLlama, "gpt2": PlainGPT2, "vit": PlainViT,
                         "bert": PlainBert}
