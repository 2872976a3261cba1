"""Small decoders of Hugging Face, computed again step by step so that every step can be dumped.

A `Run` holds what each step gave for all tokens of all sequences, one after the other ([T, …]),
under the names of `STEPS`. `mistake` changes one step; where it shows first is measured by holding
the run against one without it, never told by whoever wrote the mistake.
"""
import dataclasses
import math

import torch
import torch.nn.functional as F
import transformers as tf

STEPS = ["embed", "ln1", "q", "k", "v", "qr", "kr", "z", "o", "post1", "mid", "ln2", "router",
         "topk", "weights", "gate", "up", "act", "gated", "mlp", "post2", "out", "norm", "logits"]
IDS = dict(vocab_size=96, pad_token_id=0, bos_token_id=1, eos_token_id=2)


@dataclasses.dataclass
class Spec:
    arch: str
    layers: int
    hidden: int
    heads: int
    kv: int
    size: int          # Of a head.
    inner: int
    eps: float = 1e-6
    theta: float = 10000.0
    rotary: float = 1.0  # How much of a head is rotated.
    gated: bool = True
    activation: str = "silu"
    layer_norm: bool = False
    parallel: bool = False  # Attention and MLP read the same stream.
    sandwich: bool = False  # Norms behind attention and MLP too.
    learned: bool = False   # Positions are added to the embedding.
    plus_one: bool = False
    experts: int = 0
    chosen: int = 2
    scale: float = 1.0      # Of the embedding.


def random_spec(arch, rng):
    heads = rng.choice([4, 4, 8])
    size = rng.choice([8, 16])
    spec = Spec(arch, rng.choice([2, 3, 4]), heads * size, heads, rng.choice([heads, heads // 2,
            2]),
                size, rng.choice([80, 96, 112]), rng.choice([1e-5, 1e-6]),
                rng.choice([10000.0, 500000.0]))
    if arch == "gpt2":
        spec = dataclasses.replace(spec, kv=heads, gated=False, activation="gelu_new",
                                   layer_norm=True, learned=True, eps=1e-5)
    elif arch == "neox":
        spec = dataclasses.replace(spec, kv=heads, gated=False, activation="gelu", layer_norm=True,
                                   parallel=True, rotary=0.25 if size == 16 else 0.5, eps=1e-5)
    elif arch == "gemma2":
        spec = dataclasses.replace(spec, activation="gelu_pytorch_tanh", sandwich=True,
                                   plus_one=True, scale=math.sqrt(spec.hidden))
    elif arch == "mixtral":
        spec = dataclasses.replace(spec, experts=4)
    return spec


def build(spec, seed):
    """The model of Hugging Face with random weights, large enough that every step matters."""
    torch.manual_seed(seed)
    common = dict(hidden_size=spec.hidden, intermediate_size=spec.inner,
                  num_hidden_layers=spec.layers, num_attention_heads=spec.heads,
                  max_position_embeddings=128, **IDS)
    rms = dict(num_key_value_heads=spec.kv, rms_norm_eps=spec.eps, rope_theta=spec.theta,
               head_dim=spec.size, tie_word_embeddings=False)
    if spec.arch == "llama":
        model = tf.LlamaForCausalLM(tf.LlamaConfig(**common, **rms))
    elif spec.arch == "qwen2":
        model = tf.Qwen2ForCausalLM(tf.Qwen2Config(**common, **rms))
    elif spec.arch == "mistral":
        model = tf.MistralForCausalLM(tf.MistralConfig(**common, **rms))
    elif spec.arch == "mixtral":
        model = tf.MixtralForCausalLM(tf.MixtralConfig(
            **common, **rms, num_local_experts=spec.experts, num_experts_per_tok=spec.chosen))
    elif spec.arch == "gemma2":
        model = tf.Gemma2ForCausalLM(tf.Gemma2Config(
            **common, **rms, query_pre_attn_scalar=spec.size, attn_logit_softcapping=None,
            final_logit_softcapping=None, sliding_window=4096,
            hidden_activation=spec.activation))
    elif spec.arch == "neox":
        model = tf.GPTNeoXForCausalLM(tf.GPTNeoXConfig(
            **common, rotary_pct=spec.rotary, rotary_emb_base=spec.theta,
            layer_norm_eps=spec.eps, hidden_act="gelu", use_parallel_residual=True))
    else:
        model = tf.GPT2LMHeadModel(tf.GPT2Config(
            n_embd=spec.hidden, n_inner=spec.inner, n_layer=spec.layers, n_head=spec.heads,
            n_positions=128, layer_norm_epsilon=spec.eps, activation_function="gelu_new",
            resid_pdrop=0, embd_pdrop=0, attn_pdrop=0, **IDS))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            in_norm = "norm" in name and parameter.dim() == 1
            if in_norm or ".ln_" in name and name.endswith("weight"):
                base = 0.0 if spec.plus_one else 1.0
                parameter.copy_(base + 0.2 * torch.randn_like(parameter))
            elif parameter.dim() == 1:
                parameter.copy_(0.3 * torch.randn_like(parameter))
            elif "embed" in name or "wte" in name or "wpe" in name:
                parameter.copy_(torch.randn_like(parameter))
            else:
                parameter.copy_(torch.randn_like(parameter) * 1.2 / math.sqrt(parameter.shape[-1]))
    return model.float().eval()


def weights_of(model, spec):
    """{"embed", "norm", "head"} and of each layer {"q": (weight [out, in], bias or None), …}."""
    s = {k: v.detach() for k, v in model.state_dict().items()}
    pair = lambda name: (s[name + ".weight"], s.get(name + ".bias"))
    layers = []
    for i in range(spec.layers):
        w = {}
        if spec.arch == "gpt2":
            at = f"transformer.h.{i}."
            turned = lambda name: (s[at + name + ".weight"].T, s[at + name + ".bias"])
            fused, bias = turned("attn.c_attn")
            for part, weight, b in zip("qkv", fused.chunk(3), bias.chunk(3)):
                w[part] = (weight, b)
            w["o"], w["up"], w["down"] = (turned(n) for n in ("attn.c_proj", "mlp.c_fc",
                    "mlp.c_proj"))
            w["ln1"], w["ln2"] = pair(at + "ln_1"), pair(at + "ln_2")
        elif spec.arch == "neox":
            at = f"gpt_neox.layers.{i}."
            weight, bias = pair(at + "attention.query_key_value")
            weight = weight.view(spec.heads, 3, spec.size, -1)
            bias = bias.view(spec.heads, 3, spec.size)
            for j, part in enumerate("qkv"):
                w[part] = (weight[:, j].reshape(spec.hidden, -1), bias[:, j].reshape(-1))
            w["o"], w["up"] = pair(at + "attention.dense"), pair(at + "mlp.dense_h_to_4h")
            w["down"] = pair(at + "mlp.dense_4h_to_h")
            w["ln1"], w["ln2"] = pair(at + "input_layernorm"), pair(at + "post_attention_layernorm")
        else:
            at = f"model.layers.{i}."
            for part in "qkvo":
                w[part] = pair(at + f"self_attn.{part}_proj")
            if spec.experts:
                w["router"], w["experts"] = experts_of(s, at, spec)
            else:
                for part in ("gate", "up", "down"):
                    w[part] = pair(at + f"mlp.{part}_proj")
            w["ln1"] = pair(at + "input_layernorm")
            if spec.sandwich:
                w["post1"] = pair(at + "post_attention_layernorm")
                w["ln2"] = pair(at + "pre_feedforward_layernorm")
                w["post2"] = pair(at + "post_feedforward_layernorm")
            else:
                w["ln2"] = pair(at + "post_attention_layernorm")
        layers.append(w)
    names = {"gpt2": ("transformer.wte", "transformer.ln_f", "lm_head"),
             "neox": ("gpt_neox.embed_in", "gpt_neox.final_layer_norm", "embed_out")}
    embed, norm, head = names.get(spec.arch, ("model.embed_tokens", "model.norm", "lm_head"))
    out = {"layers": layers, "embed": s[embed + ".weight"], "norm": pair(norm),
           "head": pair(head)}
    if spec.learned:
        out["positions"] = s["transformer.wpe.weight"]
    return out


def experts_of(s, at, spec):
    """The router and [gate, up, down] of each expert, as transformers 4 and 5 store them."""
    if at + "mlp.gate.weight" in s:
        fused, down = s[at + "mlp.experts.gate_up_proj"], s[at + "mlp.experts.down_proj"]
        return (s[at + "mlp.gate.weight"], None), [
            [*fused[e].chunk(2), down[e]] for e in range(spec.experts)]
    moe = at + "block_sparse_moe."
    return (s[moe + "gate.weight"], None), [
        [s[moe + f"experts.{e}.{n}.weight"] for n in ("w1", "w3", "w2")]
        for e in range(spec.experts)]


class Run(dict):
    """(layer or None, step) -> [T, …]. `by_expert`: layer -> [experts, T, …], which add up."""

    def __init__(self):
        super().__init__()
        self.by_expert = {}


def linear(x, pair):
    weight, bias = pair
    return F.linear(x, weight.to(x.dtype), None if bias is None else bias.to(x.dtype))


def norm(x, pair, spec, eps):
    weight, bias = pair[0].to(x.dtype), pair[1]
    if spec.layer_norm:
        return F.layer_norm(x, x.shape[-1:], weight, bias.to(x.dtype), eps)
    weight = weight + 1 if spec.plus_one else weight
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * weight


def rotated(x, positions, spec, theta):
    """x [T, heads, size], two halves rotated against each other."""
    count = int(spec.size * spec.rotary)
    frequency = theta ** (-torch.arange(0, count, 2, dtype=torch.float64) / count)
    angle = (positions[:, None].double() * frequency).to(x.dtype)
    both = torch.cat([angle, angle], -1)[:, None]
    cos, sin = both.cos(), both.sin()
    part, rest = x[..., :count], x[..., count:]
    turned = torch.cat([-part[..., count // 2:], part[..., :count // 2]], -1)
    return torch.cat([part * cos + turned * sin, rest], -1)


ACTIVATIONS = {"silu": F.silu, "gelu": F.gelu, "relu": F.relu,
        "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
               "gelu_new": lambda x: F.gelu(x, approximate="tanh"),
               "gelu_pytorch_tanh": lambda x: F.gelu(x, approximate="tanh")}


def mask_of(lengths, bug, passes):
    """[T, T], True where a row may look; `passes` gives the pass of each token."""
    total = sum(lengths)
    sequence = torch.cat([torch.full((n,), i) for i, n in enumerate(lengths)])
    at = torch.arange(total)
    mask = (sequence[:, None] == sequence[None]) & (at[:, None] >= at[None])
    kind = bug.get("kind")
    if kind == "chunk_mask":      # In later passes a row sees all of its own chunk.
        own = (passes[:, None] == passes[None]) & (sequence[:, None] == sequence[None])
        mask = mask | (own & (passes[:, None] > bug["pass"] - 1))
    elif kind == "leak":          # The second sequence sees the first.
        mask = mask | ((sequence[:, None] == 1) & (sequence[None] == 0))
    elif kind == "window":        # A sliding window that should not be there.
        mask = mask & (at[:, None] - at[None] < bug["size"])
    elif kind == "lost":          # Later passes do not see the first: a cache that was dropped.
        mask = mask & ~((passes[:, None] >= bug["pass"]) & (passes[None] < bug["pass"]))
    return mask


def attention(q, k, v, spec, mask, scale):
    group = spec.heads // spec.kv
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    scores = torch.einsum("qhd,khd->hqk", q, k) * scale
    pattern = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    return torch.einsum("hqk,khd->qhd", pattern, v)


def mixture(x, w, spec, bug, here, run, layer, rank, ranks):
    run[layer, "router"] = linear(x, w["router"])
    chances = run[layer, "router"].softmax(-1)
    weights, ids = chances.topk(spec.chosen, -1)
    if here("unnormalised"):
        pass
    else:
        weights = weights / weights.sum(-1, keepdim=True)
    run[layer, "topk"], run[layer, "weights"] = ids.int(), weights
    experts = list(range(spec.experts))
    if here("experts"):
        i, j = bug["experts"]
        experts[i], experts[j] = experts[j], experts[i]
    act = ACTIVATIONS["gelu" if here("activation") else spec.activation]
    y, of_experts = torch.zeros_like(x), []
    for e in range(spec.experts):
        w1, w3, w2 = (t.to(x.dtype) for t in w["experts"][experts[e]])
        share = (weights * (ids == e)).sum(-1, keepdim=True)
        inner = act(F.linear(x, w1)) * F.linear(x, w3)
        size = spec.inner // ranks
        part = slice(rank * size, (rank + 1) * size)
        of_experts.append(share * F.linear(inner[:, part], w2[:, part]))
        y = y + of_experts[-1]
    run.by_expert[layer] = torch.stack(of_experts)
    return y


def mlp(x, w, spec, bug, here, run, layer):
    act = ACTIVATIONS[spec.activation]
    if here("activation"):
        act = ACTIVATIONS[bug["to"]]
    run[layer, "up"] = linear(x, w["up"])
    if not spec.gated:
        run[layer, "act"] = inner = act(run[layer, "up"])
    else:
        run[layer, "gate"] = linear(x, w["gate"])
        run[layer, "act"] = act(run[layer, "gate"])
        run[layer, "gated"] = inner = run[layer, "act"] * run[layer, "up"]
    return linear(inner, w["down"])


def compute(spec, weights, ids, lengths, bug=None, passes=None, rank=0, ranks=1,
            dtype=torch.float32):
    """All steps for the sequences of these lengths, packed. `rank` of `ranks` matters only where a
    sum over ranks is missing, and for what experts give before it."""
    bug = bug or {}
    run = Run()
    positions = torch.cat([torch.arange(n) for n in lengths])
    passes = passes if passes is not None else torch.zeros_like(positions)
    here_at = lambda layer: lambda kind: (
        bug.get("kind") == kind and bug.get("layer") in (layer, None))
    x = weights["embed"].to(dtype)[ids]
    run[None, "embed"] = x  # What the module gives; the scale is applied behind it.
    x = x * spec.scale
    if spec.learned:
        x = x + weights["positions"].to(dtype)[positions]
    for i, w in enumerate(weights["layers"]):
        here = here_at(i)
        run[i, "in"] = x
        eps = bug["eps"] if here("eps") else spec.eps
        run[i, "ln1"] = norm(x, w["ln1"], spec, eps)
        for part in "qkv":
            pair = w[part]
            if here("bias") and bug["part"] == part:
                pair = (pair[0], None)
            y = linear(run[i, "ln1"], pair)
            if here("add") and bug["part"] == part:
                y = y + bug["by"].to(dtype)[:y.shape[-1]]
            run[i, part] = y
        q, k, v = (run[i, p].view(len(ids), -1, spec.size) for p in "qkv")
        if not spec.learned:
            theta = bug["theta"] if here("theta") else spec.theta
            shift = bug["by_positions"] if here("shift") else 0
            q, k = (rotated(t, positions + shift, spec, theta) for t in (q, k))
            run[i, "qr"], run[i, "kr"] = q.flatten(1), k.flatten(1)
        if here("stale"):  # The cache keeps what stood in one place before.
            slot = bug["slot"]
            k, v = k.clone(), v.clone()
            k_old, v_old = k.roll(1, 0), v.roll(1, 0)
            late = passes >= bug["pass"]
            mask = mask_of(lengths, {}, passes)
            z = attention(q, k, v, spec, mask, spec.size ** -0.5)
            k[slot], v[slot] = k_old[slot], v_old[slot]
            z = torch.where(late[:, None, None],
                            attention(q, k, v, spec, mask, spec.size ** -0.5), z)
        else:
            in_layer = bug if bug.get("layer") in (i, None) else {}
            scale = spec.size ** -0.5 * (bug["factor"] if here("scale") else 1)
            if here("heads"):  # Groups of queries read the wrong keys.
                k, v = k.roll(1, 1), v.roll(1, 1)
            z = attention(q, k, v, spec, mask_of(lengths, in_layer, passes), scale)
        run[i, "z"] = z.flatten(1)
        if here("reduce"):
            size = run[i, "z"].shape[1] // ranks
            part = slice(rank * size, (rank + 1) * size)
            run[i, "o"] = F.linear(run[i, "z"][:, part], w["o"][0].to(dtype)[:, part])
        else:
            run[i, "o"] = linear(run[i, "z"], w["o"])
        branch = run[i, "o"]
        if spec.sandwich:
            run[i, "post1"] = branch = norm(branch, w["post1"], spec, spec.eps)
        run[i, "mid"] = branch if here("residual") else x + branch
        read = x if spec.parallel else run[i, "mid"]
        second = (torch.ones_like(w["ln2"][0]), w["ln2"][1]) if here("unweighted") else w["ln2"]
        run[i, "ln2"] = norm(read, second, spec, spec.eps)
        if spec.experts:
            run[i, "mlp"] = mixture(run[i, "ln2"], w, spec, bug, here, run, i, 0, 1)
        else:
            run[i, "mlp"] = mlp(run[i, "ln2"], w, spec, bug, here, run, i)
        if here("constant"):
            run[i, "mlp"] = run[i, "mlp"] * bug["factor"]
        branch = run[i, "mlp"]
        if spec.sandwich:
            run[i, "post2"] = branch = norm(branch, w["post2"], spec, spec.eps)
        x = run[i, "out"] = run[i, "mid"] + branch
        run[i, "hidden"] = branch
    run[None, "norm"] = norm(x, weights["norm"], spec, spec.eps)
    run[None, "logits"] = linear(run[None, "norm"], weights["head"])
    return run


def first_difference(clean, wrong, shown):
    """The (layer, step) of `shown`, in order of computing, that changes first."""
    for key in clean:
        if key not in shown or key[1] in ("topk",):
            continue
        a, b = clean[key].double(), wrong[key].double()
        if not torch.isfinite(b).all() or (a - b).norm() > 1e-3 * a.norm():
            return key
    return None
