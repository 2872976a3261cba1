"""Dumps that the real tools write, against forward hooks on the same model: quiet, located, named?

    python3 tests/hunt/dump_real.py [--seed 0] [--cases 30] [--tool NAME,NAME] [--keep DIR] [-v]

Needs torch, transformers, and what each tool is of: onnx and onnxruntime, jax and flax,
transformer_lens, nnsight. B is the model of Hugging Face with one mistake planted in its weights or
in its configuration, run by the tool. Where it shows first is measured by hooks on both models.
"""
import argparse
import collections
import copy
import json
import os
import pickle
import random
import shutil
import sys
import tempfile
import warnings

import numpy
import torch

import dumps
from dump_runs import build, random_spec


def layers_of(model):
    return model.transformer.h if hasattr(model, "transformer") else model.model.layers


def hooked(model, ids):
    found = {}

    def keep(name):
        def hook(module, args, output):
            if isinstance(output, tuple):
                output = tuple(t for t in output if torch.is_tensor(t))
                output = output[0] if len(output) == 1 else output
            if torch.is_tensor(output) or isinstance(output, tuple) and output:
                found[name] = output
        return hook

    handles = [m.register_forward_hook(keep(n)) for n, m in model.named_modules() if n]
    with torch.no_grad():
        model(input_ids=ids, use_cache=False)
    for handle in handles:
        handle.remove()
    return found


def plant(model, kind, layer, rng):
    """Changes the model in place."""
    part = layers_of(model)[layer]
    old = hasattr(part, "ln_1")
    with torch.no_grad():
        if kind == "unweighted":
            (part.ln_2 if old else part.post_attention_layernorm).weight.fill_(1)
        elif kind == "constant":
            (part.mlp.c_proj if old else part.mlp.down_proj).weight.mul_(rng.choice([0.5, 2, 0.9]))
            if old:
                part.mlp.c_proj.bias.zero_()
        elif kind == "bias":
            (part.attn.c_attn if old else part.self_attn.v_proj).bias.zero_()
        elif kind == "heads":  # The heads come to the output projection in another order.
            weight = (part.attn.c_proj if old else part.self_attn.o_proj).weight
            size = model.config.hidden_size // model.config.num_attention_heads
            axis = 0 if old else 1
            weight.copy_(torch.cat(weight.split(size, axis)[::-1], axis))
        elif kind == "experts":
            one, other = part.block_sparse_moe.experts[0], part.block_sparse_moe.experts[1]
            state = copy.deepcopy(one.state_dict())
            one.load_state_dict(other.state_dict()), other.load_state_dict(state)
        elif kind == "eps":
            for name, module in model.named_modules():
                for attribute in ("variance_epsilon", "eps"):
                    if hasattr(module, attribute):
                        setattr(module, attribute, 0.1)
            for key in ("rms_norm_eps", "layer_norm_epsilon"):
                if hasattr(model.config, key):
                    setattr(model.config, key, 0.1)
        elif kind == "activation":
            for each in layers_of(model):
                if old:
                    each.mlp.act = torch.nn.ReLU()
                else:
                    each.mlp.act_fn = torch.nn.ReLU()
            model.config.hidden_act = model.config.activation_function = "relu"


CODES = {"unweighted": ["norm_weight", "operator", "scale"], "constant": ["scale", "operator"],
         "bias": ["offset", "operator", "bias_missing"],
         "eps": ["norm_epsilon", "operator", "scale"],
         "heads": ["head_mapping", "operator", "block_permutation", "axis_permutation"],
         "activation": ["activation", "operator", "mlp"], "experts": ["operator", "region",
                                                                    "experts_exchanged"]}


def exported(model, ids, folder, in_order=True):
    """All values of the graph that torch exports, by onnxruntime."""
    import onnx
    import onnxruntime
    file = f"{folder}/model.onnx"

    class Logits(torch.nn.Module):
        def __init__(self):
            super().__init__()
            for name, child in model.named_children():
                setattr(self, name, child)
            self.whole = [model]

        def forward(self, input_ids):
            model = self.whole[0]
            base = getattr(self, "model", None) or self.transformer
            return self.lm_head(base(input_ids, use_cache=False)[0])

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        torch.onnx.export(Logits().eval(), (ids,), file, input_names=["input_ids"],
                          output_names=["logits"], opset_version=14, dynamo=False)
    graph = onnx.load(file)
    os.remove(file)
    made = list(dict.fromkeys(v for node in graph.graph.node for v in node.output))
    known = {o.name for o in graph.graph.output}
    for name in (each for each in (made if in_order else sorted(made)) if each not in known):
        graph.graph.output.append(onnx.helper.make_empty_tensor_value_info(name))
    session = onnxruntime.InferenceSession(graph.SerializeToString(),
                                           providers=["CPUExecutionProvider"])
    names = [o.name for o in session.get_outputs()]
    return dict(zip(names, session.run(names, {"input_ids": ids.numpy()})))


def onnx_npz(model, ids, folder, rng):
    numpy.savez(f"{folder}/outputs.npz", **exported(model, ids, folder, rng.random() < 0.5))
    return f"{folder}/outputs.npz"


def onnx_floats(model, ids, folder, rng):
    found = exported(model, ids, folder)
    torch.save({k: torch.from_numpy(v) for k, v in found.items()
                if v.dtype == numpy.float32 and v.ndim > 1}, f"{folder}/outputs.pt")
    return f"{folder}/outputs.pt"


def polygraphy(model, ids, folder, rng):
    from polygraphy.comparator import RunResults
    results = RunResults()
    results.add([exported(model, ids, folder)], runner_name="onnxrt-runner-N0-11/20/26-10:00:00")
    results.save(f"{folder}/outputs.json")
    return f"{folder}/outputs.json"


def flax(model, ids, folder, rng, form="pickle"):
    import jax
    import flax.serialization
    import flax.traverse_util
    import transformers
    model.save_pretrained(f"{folder}/hub")
    classes = {"llama": "FlaxLlamaForCausalLM", "mistral": "FlaxMistralForCausalLM",
               "gpt2": "FlaxGPT2LMHeadModel"}
    made = getattr(transformers, classes[model.config.model_type]).from_pretrained(
        f"{folder}/hub", from_pt=True)
    shutil.rmtree(f"{folder}/hub")
    batch, length = ids.shape
    positions = numpy.broadcast_to(numpy.arange(length), (batch, length))
    _, state = made.module.apply(
        {"params": made.params}, ids.numpy(), numpy.ones_like(ids.numpy()), positions,
        capture_intermediates=True, mutable=["intermediates"])
    state = jax.device_get(state)
    if form == "pickle":
        pickle.dump(state, open(f"{folder}/state.pkl", "wb"))
        return f"{folder}/state.pkl"
    if form == "msgpack":
        with open(f"{folder}/state.msgpack", "wb") as out:
            out.write(flax.serialization.to_bytes(state))
        return f"{folder}/state.msgpack"
    leaves = jax.tree_util.tree_flatten_with_path(state["intermediates"])[0]
    key = lambda path: "/".join(str(getattr(p, "key", getattr(p, "idx", p))) for p in path)
    numpy.savez(f"{folder}/state.npz", **{key(path): numpy.asarray(leaf) for path, leaf in leaves})
    return f"{folder}/state.npz"


def lens(model, ids, folder, rng, stacked=False):
    import transformer_lens
    from transformer_lens.pretrained import weight_conversions
    c = model.config
    old = c.model_type == "gpt2"
    cfg = transformer_lens.HookedTransformerConfig(
        n_layers=c.num_hidden_layers, d_model=c.hidden_size, n_ctx=128,
        n_heads=c.num_attention_heads, d_head=c.hidden_size // c.num_attention_heads,
        d_mlp=c.n_inner if old else c.intermediate_size, d_vocab=c.vocab_size,
        act_fn="relu" if "relu" in (c.hidden_act if not old else c.activation_function)
        else "gelu_new" if old else "silu",
        normalization_type="LN" if old else "RMS",
        eps=c.layer_norm_epsilon if old else c.rms_norm_eps,
        positional_embedding_type="standard" if old else "rotary",
        rotary_dim=None if old else c.hidden_size // c.num_attention_heads,
        rotary_base=10000 if old else int(c.rope_theta), gated_mlp=not old, final_rms=not old,
        n_key_value_heads=None if old or c.num_key_value_heads == c.num_attention_heads
        else c.num_key_value_heads, original_architecture="GPT2LMHeadModel" if old
        else "LlamaForCausalLM", device="cpu", rotary_adjacent_pairs=False)
    convert = (weight_conversions.convert_gpt2_weights if old
               else weight_conversions.convert_llama_weights)
    made = transformer_lens.HookedTransformer(cfg)
    made.load_state_dict(convert(model, cfg), strict=False)
    with torch.no_grad():
        _, cache = made.run_with_cache(ids, remove_batch_dim=rng.random() < 0.3)
    torch.save(dict(cache), f"{folder}/cache.pt")
    return f"{folder}/cache.pt"


def nnsight(model, ids, folder, rng):
    from nnsight import NNsight
    wrapped = NNsight(model)
    with wrapped.trace(input_ids=ids, use_cache=False) as tracer:
        cache = tracer.cache().save()
    torch.save(cache, f"{folder}/cache.pt")
    return f"{folder}/cache.pt"


LLAMAS = ["llama", "mistral"]
TOOLS = {
    "onnx-npz": (onnx_npz, {}, LLAMAS + ["qwen2", "gpt2"]),
    "onnx-floats": (onnx_floats, {}, LLAMAS + ["qwen2", "gpt2"]),
    "polygraphy": (polygraphy, {}, LLAMAS + ["gpt2"]),
    "flax-pickle": (flax, {}, LLAMAS + ["gpt2"]),
    "flax-msgpack": (flax, {"form": "msgpack"}, LLAMAS + ["gpt2"]),
    "flax-npz": (flax, {"form": "npz"}, LLAMAS + ["gpt2"]),
    "lens": (lens, {}, LLAMAS + ["gpt2"]),
    "nnsight": (nnsight, {}, LLAMAS + ["qwen2", "mixtral", "gpt2"]),
}


def case(tool, seed, folder):
    """(a, b, kind, names of the modules that differ first)"""
    rng = random.Random(f"{seed} {tool}")
    write, options, families = TOOLS[tool]
    spec = random_spec(rng.choice(families), rng)
    model = build(spec, rng.randrange(1 << 30))
    wrong = copy.deepcopy(model)
    kinds = ["unweighted", "constant", "heads", "eps", "activation"]
    kinds = [k for k in kinds if k != "constant"] + ["experts"] if spec.experts else kinds
    if spec.experts:
        kinds.remove("activation")
    if spec.arch in ("gpt2", "qwen2"):
        kinds.append("bias")
    kind = rng.choice(kinds) if rng.random() < 0.7 else None
    if kind:
        plant(wrong, kind, rng.randrange(spec.layers), rng)
    ids = torch.randint(3, 96, (rng.choice([1, 1, 2]), rng.randrange(9, 25)))
    before, after = hooked(model, ids), hooked(wrong, ids)
    torch.save(before, f"{folder}/a.pt")
    os.makedirs(f"{folder}/b")
    b = write(wrong, ids, f"{folder}/b", rng, **options)
    first = None
    for name, x in before.items():
        x, y = (t[0] if isinstance(t, tuple) else t for t in (x, after[name]))
        if x.shape != y.shape or (x - y).norm() > 1e-3 * x.norm():
            first = name
            break
    return f"{folder}/a.pt", b, kind, first


def located(first, report):
    found = report.get("first_divergence") or {}
    name = (found.get("name_a") or "").split("[")[0]
    family = {"q_proj": "qkv", "k_proj": "qkv", "v_proj": "qkv", "gate_proj": "gu",
              "up_proj": "gu"}
    short = lambda n: ".".join(family.get(p, p) for p in n.split("."))
    return bool(first) and (short(name) == short(first) or first.startswith(name + ".") and name)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--cases", type=int, default=30)
    options.add_argument("--tool")
    options.add_argument("--keep")
    options.add_argument("-v", action="store_true")
    options = options.parse_args()
    torch.set_num_threads(1)
    tools = options.tool.split(",") if options.tool else list(TOOLS)
    table = collections.defaultdict(collections.Counter)
    for number in range(options.cases):
        tool, seed = tools[number % len(tools)], options.seed * 1000 + number // len(tools)
        folder = tempfile.mkdtemp(prefix="real-")
        a, b, kind, first = case(tool, seed, folder)
        code, report = dumps.compare(a, b)
        where = report.get("first_divergence") or {}
        codes = [f["code"] for f in report.get("findings", [])
                 if f.get("pair") == where.get("pair")]
        row = table[tool]
        if first is None:
            ok = code == 0
            row["clean"], row["quiet"] = row["clean"] + 1, row["quiet"] + ok
        else:
            found = code == 1 and bool(located(first, report))
            named = found and any(c in CODES[kind] for c in codes)
            row["bugs"] += 1
            row["located"], row["named"] = row["located"] + found, row["named"] + named
            ok = named
        if options.v or not ok:
            pairs = report.get("summary", {}).get("pairs")
            print(f"{tool} seed {seed} {'ok' if ok else 'WRONG'} rc {code} pairs {pairs} at "
                  f"{where.get('name_a')} | {where.get('name_b')} {codes} want {first} {kind} "
                  f"{report.get('error', '')}", flush=True)
        if options.keep and not ok:
            shutil.rmtree(f"{options.keep}/{tool}-{seed}", ignore_errors=True)
            shutil.move(folder, f"{options.keep}/{tool}-{seed}")
        else:
            shutil.rmtree(folder)
    for tool, row in table.items():
        print(f"{tool:16} clean {row['quiet']}/{row['clean']} "
              f"located {row['located']}/{row['bugs']}"
              f" named {row['named']}/{row['bugs']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
