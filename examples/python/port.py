"""A port with three mistakes: Hugging Face's Llama, and a plain implementation of it.

    python examples/python/port.py

The port has other names, fused weights and its own RoPE. isolate() pairs the modules by their
weights and names each mistake at its own place. Needs torch and transformers; no download.
"""

import torch
import transformers
from torch import nn
from torch.nn import functional as F

import tensordiff


class Attention(nn.Module):
    def __init__(self, theirs, config):
        super().__init__()
        self.heads, self.groups = config.num_attention_heads, config.num_key_value_heads
        self.wqkv = fused(theirs.q_proj, theirs.k_proj, theirs.v_proj)
        self.wo = fused(theirs.o_proj)
        self.scale = theirs.head_dim ** -0.5

    def forward(self, x, cos, sin):
        width = self.wo.in_features // self.heads
        sizes = [self.heads * width, self.groups * width, self.groups * width]
        q, k, v = (part.unflatten(-1, (-1, width)).transpose(1, 2)
                   for part in self.wqkv(x).split(sizes, -1))
        q, k = rotate(q, cos, sin), rotate(k, cos, sin)
        k, v = (t.repeat_interleave(self.heads // self.groups, 1) for t in (k, v))
        scores = q @ k.transpose(-1, -2) * self.scale
        scores = scores + torch.full(scores.shape[-2:], float("-inf")).triu(1)
        return self.wo((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Norm(nn.Module):
    def __init__(self, theirs):
        super().__init__()
        self.weight, self.eps = nn.Parameter(theirs.weight.detach().clone()), 1e-6

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + self.eps) * self.weight


class Block(nn.Module):
    def __init__(self, theirs, config):
        super().__init__()
        self.norm_a, self.norm_b = Norm(theirs.input_layernorm), Norm(
            theirs.post_attention_layernorm)
        self.attention = Attention(theirs.self_attn, config)
        self.w13 = fused(theirs.mlp.gate_proj, theirs.mlp.up_proj)
        self.w2 = fused(theirs.mlp.down_proj)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.norm_a(x), cos, sin)
        gate, up = self.w13(self.norm_b(x)).chunk(2, -1)
        return x + self.w2(F.silu(gate) * up)


class Port(nn.Module):
    def __init__(self, theirs):
        super().__init__()
        config = theirs.config
        self.embedding = nn.Embedding.from_pretrained(theirs.model.embed_tokens.weight.detach())
        self.blocks = nn.ModuleList(Block(each, config) for each in theirs.model.layers)
        self.norm = Norm(theirs.model.norm)
        self.head = fused(theirs.lm_head)
        width = config.hidden_size // config.num_attention_heads
        self.frequencies = config.rope_theta ** (-torch.arange(0, width, 2) / width)

    def forward(self, input_ids):
        angles = torch.arange(input_ids.shape[1])[:, None] * self.frequencies
        x = self.embedding(input_ids)
        for block in self.blocks:
            x = block(x, angles.cos(), angles.sin())
        return self.head(self.norm(x))


def fused(*layers):
    weight = torch.cat([layer.weight.detach() for layer in layers])
    made = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    made.weight = nn.Parameter(weight.clone())
    return made


def rotate(x, cos, sin):
    low, high = x.chunk(2, -1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin], -1)


def main():
    torch.manual_seed(0)
    reference = transformers.LlamaForCausalLM(transformers.LlamaConfig(
        vocab_size=96, hidden_size=64, intermediate_size=96, num_hidden_layers=4,
        num_attention_heads=4, num_key_value_heads=2, initializer_range=0.2)).eval()
    inputs = {"input_ids": torch.randint(0, 96, (2, 12))}
    port = Port(reference).eval()
    print("A right port:")
    print(tensordiff.isolate(reference, port, inputs))

    port.blocks[1].attention.scale = 0.125           # sqrt(64) instead of sqrt(16).
    with torch.no_grad():
        port.blocks[1].w2.weight[5] = 0              # A row lost in the conversion.
    port.blocks[3].norm_b.eps = 1e-2
    print("\nWith three mistakes:")
    print(tensordiff.isolate(reference, port, inputs))


if __name__ == "__main__":
    main()
