"""More writers, of what people keep: trees, dataclasses, lists of pairs, HDF5, statistics, caches
of nnsight, the debugger of transformers: see dump_layouts.py."""
import collections
import dataclasses
import json
import os
import sys
import types

import numpy
import torch

from dump_layouts import given_hub, save
from dump_modules import engine_calls, hub_calls, input_of, step_read, steps_of
from dump_others import batched

PARTS = {  # How a notebook may call the steps of a layer: nested, then flat.
    "ln1": ("attn.norm", "attn_norm"), "q": ("attn.q", "q_proj"), "k": ("attn.k", "k_proj"),
    "v": ("attn.v", "v_proj"), "o": ("attn.out", "attn_out"), "ln2": ("mlp.norm", "ffn_norm"),
    "mlp": ("mlp.out", "mlp_out"), "out": ("output", "hidden_states")}


def nested_tree(dump, folder):
    """{"embed": …, "layers": [{"attn": {"q": …}}, …], "final_norm": …, "logits": …}"""
    run, names = dump.runs[0], {"embed": [(None, "embed")]}
    tree = {"embed": batched(dump, run[None, "embed"]), "layers": []}
    for i in range(dump.spec.layers):
        layer = {}
        for step, (path, _) in PARTS.items():
            at = layer
            *above, last = path.split(".")
            for part in above:
                at = at.setdefault(part, {})
            at[last] = batched(dump, run[i, step])
            names[f"layers.{i}.{path}"] = [(i, step)]
        tree["layers"].append(layer)
    tree["final_norm"] = batched(dump, run[None, "norm"])
    tree["logits"] = batched(dump, run[None, "logits"])
    names["final_norm"], names["logits"] = [(None, "norm")], [(None, "logits")]
    save(f"{folder}/acts.pt", tree)
    return names


def in_module(module, name, fields):
    """A dataclass of a module that only the writer has."""
    made = dataclasses.make_dataclass(name, fields)
    parts = module.split(".")
    for i in range(len(parts)):
        parent = ".".join(parts[:i + 1])
        sys.modules.setdefault(parent, types.ModuleType(parent))
    made.__module__ = module
    setattr(sys.modules[module], name, made)
    return made


def dataclasses_of_layers(dump, folder):
    """A list with a dataclass for each layer."""
    fields = ["layer_idx"] + [flat for _, flat in PARTS.values()]
    trace = in_module("my_project.debugging", "LayerTrace", fields)
    run = dump.runs[0]
    layers, names = [], {}
    for i in range(dump.spec.layers):
        layers.append(trace(i, *(batched(dump, run[i, step]) for step in PARTS)))
        for step, (_, flat) in PARTS.items():
            names[f"{i}.{flat}"] = [(i, step)]
    save(f"{folder}/trace.pt", layers)
    return names


def pairs(dump, folder):
    """[(name, output), …], as a hook appends them."""
    calls = hub_calls(dump.spec)
    save(f"{folder}/trace.pt", [
        (c.path, given_hub(dump, c)[0][dump.passes[0]][None]) for c in calls])
    return steps_of(calls)


def records(dump, folder):
    """[{"name": …, "output": …}, …]"""
    calls = hub_calls(dump.spec)
    save(f"{folder}/trace.pt", [
        {"name": c.path, "index": i, "cls": c.cls,
         "output": given_hub(dump, c)[0][dump.passes[0]][None]} for i, c in enumerate(calls)])
    return steps_of(calls)


def hdf5(dump, folder, flat=False):
    """A group for each layer, in the order of their names."""
    import h5py
    os.makedirs(folder, exist_ok=True)
    run, names = dump.runs[0], {}
    with h5py.File(f"{folder}/acts.h5", "w") as out:
        def put(path, tensor, key):
            out.create_dataset(path, data=batched(dump, tensor).numpy())
            names[path] = names[path.replace("/", ".")] = [key]
        put("embed", run[None, "embed"], (None, "embed"))
        for i in range(dump.spec.layers):
            for step, (nested, single) in PARTS.items():
                end = single if flat else nested.replace(".", "/")
                put(f"layer_{i:02d}/{end}", run[i, step], (i, step))
        put("final_norm", run[None, "norm"], (None, "norm"))
        put("logits", run[None, "logits"], (None, "logits"))
    return names


def statistics(dump, folder, form="csv"):
    """A table of statistics of what each module gave."""
    rows = []
    for c in hub_calls(dump.spec):
        x = given_hub(dump, c)[0][dump.passes[0]][None].double()
        rows.append({"name": c.path, "shape": "x".join(map(str, x.shape)), "dtype": "float32",
                     "mean": float(x.mean()), "std": float(x.std()), "min": float(x.min()),
                     "max": float(x.max()), "norm": float(x.norm())})
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/stats.{form}", "w") as out:
        if form == "csv":
            out.write(",".join(rows[0]) + "\n")
            for row in rows:
                out.write(",".join(str(v) for v in row.values()) + "\n")
        elif form == "jsonl":
            for row in rows:
                out.write(json.dumps({**row, "shape": [int(n) for n in row["shape"].split("x")]})
                          + "\n")
        else:
            numbers = ("mean", "std", "min", "max", "norm")
            json.dump({row["name"]: {k: row[k] for k in numbers} for row in rows}, out, indent=1)
    return steps_of(hub_calls(dump.spec))


def nnsight_cache(dump, folder, inputs=False):
    """What tracer.cache() of nnsight leaves: {path: Entry(output, inputs)}."""
    entry = in_module("nnsight.intervention.tracing.tracer", "Entry", ["output", "inputs"])
    content, rows, names = {}, dump.passes[0], steps_of(hub_calls(dump.spec))
    for c in hub_calls(dump.spec):
        out = given_hub(dump, c)[0][rows][None]
        whole = not c.leaf and c.path.split(".")[-1].isdigit()
        given = (out,) if whole or c.cls.endswith("Attention") else out
        read, held = input_of(dump.spec, c), None
        if inputs and read and (c.layer, read) in dump.runs[0]:
            held = ((dump.runs[0][c.layer, read][rows][None],),
                    {"position_ids": dump.positions[rows][None]})
            names[f"{c.path}.inputs.0.0"] = [step_read(dump.spec, c)]
        content[c.path] = entry(given, held)
    save(f"{folder}/cache.pt", content)
    return {**names, **{f"{k}.output": v for k, v in steps_of(hub_calls(dump.spec)).items()}}


def nnterp(dump, folder):
    """Lists by the names of nnterp's accessors."""
    run, names = dump.runs[0], {}
    kinds = {"layers_output": "out", "attentions_output": "o", "mlps_output": "mlp"}
    content = {}
    for kind, step in kinds.items():
        content[kind] = [batched(dump, run[i, step]) for i in range(dump.spec.layers)]
        for i in range(dump.spec.layers):
            names[f"layers.{i}.{kind}"] = [(i, step)]
    content["token_embeddings"] = batched(dump, run[None, "embed"])
    content["logits"] = batched(dump, run[None, "logits"])
    names["logits"], names["token_embeddings"] = [(None, "logits")], [(None, "embed")]
    save(f"{folder}/acts.pt", content)
    return names


def hub_debugger(dump, folder, model="LlamaForCausalLM"):
    """transformers' model_addition_debugger_context with use_repr=False: a file for each tensor."""
    from safetensors.torch import save_file
    os.makedirs(folder, exist_ok=True)

    def put(path, tensor):
        save_file({"data": tensor.contiguous()}, f"{folder}/{path}.safetensors")
        value = lambda t: f"tensor({float(t):.4e})"
        told = {"shape": f"torch.Size({list(tensor.shape)})", "dtype": str(tensor.dtype),
                "value": f"./{path}.safetensors"}
        if tensor.dtype == torch.float32:
            told.update(mean=value(tensor.mean()), std=value(tensor.std()), min=value(tensor.min()),
                        max=value(tensor.max()))
        return told

    ids = dump.ids[dump.passes[0]][None]
    tree = {"module_path": model, "inputs": {"args": [], "kwargs": {
        "input_ids": put(f"{model}_inputs_kwargs_input_ids", ids)}}, "children": []}
    before, names = ids, {}
    for c in hub_calls(dump.spec):
        if not c.leaf:
            continue
        out = given_hub(dump, c)[0][dump.passes[0]][None]
        tree["children"].append({
            "module_path": f"{model}.{c.path}",
            "inputs": {"args": [put(f"{model}.{c.path}_inputs_args_0", before)]},
            "outputs": put(f"{model}.{c.path}_outputs", out)})
        before = out
    put(f"{model}_outputs_logits", before)
    for end in ("FULL_TENSORS", "SUMMARY"):
        with open(f"{folder}/{model}_debug_tree_{end}.json", "w") as out:
            json.dump(tree, out, indent=2)
    leaves = [c for c in hub_calls(dump.spec) if c.leaf]
    return {k: v for name, v in steps_of(leaves).items()
            for k in (name, f"{model}.{name}_outputs.data", f"{model}_outputs_logits.data")
            if not k.startswith(f"{model}_") or name.endswith("lm_head")}


def model_output(dump, folder):
    """A ModelOutput of transformers as it is: logits, hidden_states, past_key_values."""
    run, layers = dump.runs[0], dump.spec.layers
    keys = [(None, "embed")] + [(i, "out") for i in range(layers - 1)] + [(None, "norm")]
    states = tuple(batched(dump, run[0, "in"] if i == 0 else run[key])
                   for i, key in enumerate(keys))
    heads = lambda t: batched(dump, t).unflatten(-1, (-1, dump.spec.size)).transpose(1, 2)
    cache = tuple((heads(run[i, "kr"]), heads(run[i, "v"])) for i in range(layers))
    save(f"{folder}/output.pt", collections.OrderedDict(
        logits=batched(dump, run[None, "logits"]), past_key_values=cache, hidden_states=states))
    names = {f"hidden_states.{i}": [key] for i, key in enumerate(keys)}
    for i in range(layers):
        names[f"past_key_values.{i}.0"] = [(i, "kr")]
        names[f"past_key_values.{i}.1"] = [(i, "v")]
    return {**names, "logits": [(None, "logits")]}


def workers(dump, folder):
    """Hooks that each worker of vLLM saves: one file a rank, projections fused on each."""
    from dump_layouts import facts, given
    calls = [c for c in engine_calls(dump.spec) if not c.path.endswith("rotary_emb")]
    form = dump.rng.choice(["worker_{}.pt", "hooks_tp{}.pt", "activations_rank{}.pt", "{}/acts.pt"])
    rows = dump.passes[0]
    for rank in range(dump.ranks):
        content = {}
        for c in calls:
            out = [t[rows] for t in given(dump, c, rank)]
            content[c.path] = tuple(out) if len(out) > 1 else out[0]
        content.update(facts(dump, rows, at=""))
        save(f"{folder}/{form.format(rank)}", content)
    return steps_of(calls)
