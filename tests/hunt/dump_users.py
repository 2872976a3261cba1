"""More writers, of what users save by themselves: see dump_layouts.py."""
import os
import pickle

import numpy
import torch

from dump_layouts import facts, given, given_hub, save
from dump_modules import engine_calls, hub_calls, steps_of
from dump_others import batched


def hub_content(dump, rows, shape=lambda t: t[None]):
    """{path: output} as hooks on a model of Hugging Face collect them."""
    return {c.path: shape(given_hub(dump, c)[0][rows]) for c in hub_calls(dump.spec)}


def step_files(dump, folder, listed=False, ids=False):
    """Hooks on a model that generates: a dict for each pass, in a file each or in one list."""
    steps = []
    for rows in dump.passes:
        steps.append(hub_content(dump, rows))
        if ids:
            steps[-1]["input_ids"] = dump.ids[rows][None]
    if listed:
        save(f"{folder}/steps.pt", steps)
    else:
        for i, content in enumerate(steps):
            save(f"{folder}/step_{i}.pt", content)
    return steps_of(hub_calls(dump.spec))


def generated_states(dump, folder):
    """generate(output_hidden_states=True): a tuple for each pass, of a tensor for each layer."""
    run, layers = dump.runs[0], dump.spec.layers
    keys = [(None, "embed")] + [(i, "out") for i in range(layers - 1)] + [(None, "norm")]
    save(f"{folder}/hidden.pt", tuple(
        tuple((run[0, "in"] if i == 0 else run[key])[rows][None] for i, key in enumerate(keys))
        for rows in dump.passes))
    return {f"hidden_states.{i}": [key] for i, key in enumerate(keys)}


def containers(dump, folder, form="npz", dtype=torch.float32, batch_second=False):
    """Hooks in other files than torch's, in fewer bits, or with the batch behind the tokens."""
    shape = lambda t: (t[:, None] if batch_second else t[None]).to(dtype).contiguous()
    content = hub_content(dump, dump.passes[0], shape)
    os.makedirs(folder, exist_ok=True)
    if form == "safetensors":
        from safetensors.torch import save_file
        save_file(content, f"{folder}/hooks.safetensors")
    elif form == "npz":
        numpy.savez(f"{folder}/hooks.npz", **{k: v.numpy() for k, v in content.items()})
    elif form == "pickle":
        with open(f"{folder}/hooks.pkl", "wb") as out:
            pickle.dump({k: v.numpy() for k, v in content.items()}, out)
    elif form == "pt":
        save(f"{folder}/hooks.pt", content)
    else:
        for name, tensor in content.items():
            numpy.save(f"{folder}/{name}.npy", tensor.numpy())
    return steps_of(hub_calls(dump.spec))


LISTS = {"resid": "out", "attn_out": "o", "mlp_out": "mlp", "ln1": "ln1", "ln2": "ln2"}


def lists(dump, folder, stacked=False):
    """What many notebooks collect: one list, or one stack, over the layers for each kind."""
    run, content, names = dump.runs[0], {}, {}
    for name, step in LISTS.items():
        tensors = [batched(dump, run[i, step]) for i in range(dump.spec.layers)]
        content[name] = torch.stack(tensors) if stacked else tensors
        for i in range(dump.spec.layers):
            names[f"layers.{i}.{name}"] = [(i, step)]
    content["logits"] = batched(dump, run[None, "logits"])
    names["logits"] = [(None, "logits")]
    save(f"{folder}/acts.pt", content)
    return names


def by_number(dump, folder):
    """{layer: its output}: integers for keys."""
    run = dump.runs[0]
    save(f"{folder}/acts.pt", {i: batched(dump, run[i, "out"]) for i in range(dump.spec.layers)})
    return {f"hidden_states.{i}": [(i, "out")] for i in range(dump.spec.layers)}


USER = {"layer_{}_attn_out": "o", "layer_{}_mlp_out": "mlp", "layer_{}_resid": "out",
        "layer_{}_ln1": "ln1", "layer_{}_ln2": "ln2", "layer_{}_q": "q", "layer_{}_k": "k",
        "layer_{}_v": "v"}


def user_files(dump, folder):
    """layer_0_attn_out.npy"""
    names = {}
    os.makedirs(folder, exist_ok=True)
    for i in range(dump.spec.layers):
        for form, step in USER.items():
            name = form.format(i)
            numpy.save(f"{folder}/{name}.npy", batched(dump, dump.runs[0][i, step]).numpy())
            names[name] = [(i, step)]
    numpy.save(f"{folder}/embed.npy", batched(dump, dump.runs[0][None, "embed"]).numpy())
    numpy.save(f"{folder}/logits.npy", batched(dump, dump.runs[0][None, "logits"]).numpy())
    return {**names, "embed": [(None, "embed")], "logits": [(None, "logits")]}


TLLM = [("input_layernorm.output", ["ln1"]), ("attention.qkv.output", ["q", "k", "v"]),
        ("attention.dense.output", ["o"]), ("post_layernorm.output", ["ln2"]),
        ("mlp.fc.output", ["gate"]), ("mlp.gate.output", ["up"]), ("mlp.proj.output", ["mlp"]),
        ("output", ["out"])]


def tllm_debug(dump, folder):
    """The C++ executor of TensorRT-LLM: npy files, a folder for each iteration."""
    run, names = dump.runs[0], {}
    for n, rows in enumerate(dump.passes):
        at = f"{folder}/tllm_debug/PP_1/TP_1/iteration_{n + 3}"
        os.makedirs(at, exist_ok=True)

        def put(name, tensor, keys=()):
            numpy.save(f"{at}/{name}.npy", tensor.numpy())
            if keys:
                names[name] = list(keys)

        count = len(dump.lasts(rows))
        put("request_ids", torch.arange(1, count + 1))
        put("input_ids", dump.ids[rows].int())
        put("position_ids", dump.positions[rows].int())
        put("host_request_types", torch.zeros(count, dtype=torch.int32))
        put("context_lengths", torch.tensor(dump.lengths, dtype=torch.int32))
        put("sequence_length", (dump.positions[dump.lasts(rows)] + 1).int())
        put("transformer.vocab_embedding.output", run[None, "embed"][rows], [(None, "embed")])
        for i in range(dump.spec.layers):
            for name, steps in TLLM:
                tensor = torch.cat([run[i, s][rows] for s in steps], -1)
                put(f"transformer.layers.{i}.{name}", tensor, [(i, s) for s in steps])
        put("transformer.ln_f.output", run[None, "norm"][rows], [(None, "norm")])
        put("logits", run[None, "logits"][dump.lasts(rows)])
    return names


def dumper_outside(dump, folder):
    """sglang's dumper on a model of Hugging Face: batches, ranks in the names, no facts but ids."""
    index = 0
    for step, rows in enumerate(dump.passes):
        def put(name, tensor):
            nonlocal index
            index += 1
            tags = {"step": step, "rank": 0, "dump_index": index, "name": name,
                    "recompute_status": "disabled", "pp_rank": 0, "tp_rank": 0}
            file = "___".join(f"{k}={v}" for k, v in tags.items())
            save(f"{folder}/hf_{dump.pid}/{file}.pt",
                 {"value": tensor, "meta": {**tags, "world_rank": 0, "world_size": 1}})

        put("input_ids", dump.ids[rows][None])
        for call in hub_calls(dump.spec):
            put(f"non_intrusive__{call.path}.output", given_hub(dump, call)[0][rows][None])
    return steps_of(hub_calls(dump.spec))


def pipeline_hook(dump, folder):
    """sglang's hook with two pipeline stages of one rank each."""
    half = dump.spec.layers // 2
    calls = [c for c in engine_calls(dump.spec) if c.leaf]
    rotary = [c for c in calls if c.path.endswith("rotary_emb")]
    run, kept = dump.runs[0], []
    for stage in (0, 1):
        at = f"{folder}/TP0_PP{stage}_Rank{stage}_pid{dump.pid + stage}"
        first = lambda c: (c.layer or 0) < half and not c.path.endswith(".norm")
        mine = [c for c in calls if first(c) == (stage == 0)]
        own = [c for c in mine if c in rotary]
        for number, rows in enumerate(dump.passes):
            content = {}
            for call in mine:
                if call in rotary:
                    if call is own[0]:
                        for each in own:
                            content[each.path] = [t[rows] for t in given(dump, own[-1], 0)]
                    continue
                out = [t[rows] for t in given(dump, call, 0)]
                content[call.path] = out if len(out) > 1 else out[0]
            if stage == 0:
                content["model.pp_proxy_tensors.hidden_states"] = run[half - 1, "hidden"][rows]
                content["model.pp_proxy_tensors.residual"] = run[half - 1, "mid"][rows]
            content.update(facts(dump, rows))
            save(f"{at}/Pass{number:05d}.pt", content)
        kept += [c for c in mine if c not in own[:-1]]
    return steps_of(kept)


def packed_dict(dump, folder):
    """An engine's modules in one list, a dict for each pass, with CUDA-graph padding."""
    calls = [c for c in engine_calls(dump.spec) if not c.path.endswith("rotary_emb")]
    steps = []
    for rows in dump.passes:
        more = -len(rows) % 8
        pad = lambda t: torch.cat([t, t.new_zeros(more, *t.shape[1:]) + t[:1]])
        content = {"input_ids": torch.cat([dump.ids[rows], torch.zeros(more, dtype=torch.int64)]),
                   "positions": torch.cat([dump.positions[rows],
                                           torch.zeros(more, dtype=torch.int64)])}
        for call in calls:
            out = [pad(t[rows]) for t in given(dump, call, 0)]
            content[call.path] = tuple(out) if len(out) > 1 else out[0]
        steps.append(content)
    save(f"{folder}/passes.pt", steps)
    return steps_of(calls)
