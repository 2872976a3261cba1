"""More writers, of parallel runs and of what hooks collect in other shapes: see dump_layouts.py."""
import json
import os

import torch

from dump_layouts import MANUAL, given_hub, msprobe, save
from dump_modules import hub_calls, steps_of, value
from dump_users import hub_content


def expert_parallel(dump, folder):
    """sglang's dumper on ranks that share the experts, and nothing else."""
    spec, run = dump.spec, dump.runs[0]
    ranks, names = dump.rng.choice([2, 4]), {}
    order = dump.rng.random() < 0.5  # Of the experts of a token: by weight, or by number.
    for rank in range(ranks):
        index = 0

        def put(name, tensor, layer=None):
            nonlocal index
            index += 1
            tags = {"step": 0, "rank": rank, "dump_index": index, "name": name,
                    "recompute_status": "disabled"}
            if layer is not None:
                tags["layer_id"] = layer
            meta = {**tags, "world_rank": rank, "world_size": ranks,
                    "sglang_parallel_info": {"tp_rank": 0, "tp_size": 1, "ep_rank": rank,
                                             "ep_size": ranks, "pp_rank": 0, "pp_size": 1}}
            file = "___".join(f"{k}={v}" for k, v in tags.items())
            save(f"{folder}/dump_ep/{file}.pt", {"value": tensor, "meta": meta})

        put("input_ids", dump.ids)
        put("positions", dump.positions)
        put("embedding_output", run[None, "embed"])
        names["embedding_output"] = [(None, "embed")]
        own = spec.experts // ranks
        for layer in range(spec.layers):
            for name, (step, _) in MANUAL.items():
                if (layer, step) in run and step != "mlp":
                    put(name, run[layer, step], layer)
                    names[f"layers.{layer}.{name}"] = [
                        (layer - 1, "out") if step == "in" else (layer, step)]
            ids, weights = run[layer, "topk"].long(), run[layer, "weights"]
            if order:
                ids, by = ids.sort(-1)
                weights = weights.gather(-1, by)
            put("router_logits", run[layer, "router"], layer)
            put("topk_ids", ids, layer)
            put("topk_weights", weights, layer)
            part = run.by_expert[layer][rank * own:(rank + 1) * own].sum(0)
            put("moe_partial_output", part, layer)
            put("mlp_output", run[layer, "mlp"], layer)
            names[f"layers.{layer}.router_logits"] = [(layer, "router")]
            names[f"layers.{layer}.moe_partial_output"] = [(layer, "mlp")]
            names[f"layers.{layer}.mlp_output"] = [(layer, "mlp")]
    return names


def msprobe_steps(dump, folder):
    """msprobe where each pass is a step of its own: step0, step1 …"""
    passes, names = dump.passes, {}
    for number, rows in enumerate(passes):
        dump.passes = [rows]
        names = msprobe(dump, f"{folder}/{number}")
        os.rename(f"{folder}/{number}/step0", f"{folder}/step{number}")
        os.rmdir(f"{folder}/{number}")
    dump.passes = passes
    return names


def appended(dump, folder):
    """A hook that appends: {path: [output of each pass]}."""
    content = {}
    for rows in dump.passes:
        for path, tensor in hub_content(dump, rows).items():
            content.setdefault(path, []).append(tensor)
    save(f"{folder}/acts.pt", content)
    return steps_of(hub_calls(dump.spec))


def both_ends(dump, folder):
    """{path: {"input": …, "output": …}}."""
    content, before = {}, None
    for path, tensor in hub_content(dump, dump.passes[0]).items():
        content[path] = {"output": tensor}
        if before is not None:
            content[path]["input"] = before
        before = None
    save(f"{folder}/acts.pt", content)
    return {f"{k}.output": v for k, v in steps_of(hub_calls(dump.spec)).items()}


def layer_files(dump, folder):
    """A file for each layer with the parts of it: layer_3.pt {"self_attn.q_proj": …}."""
    files = {}
    for call in hub_calls(dump.spec):
        tensor = given_hub(dump, call)[0][dump.passes[0]][None]
        if call.layer is None or f".{call.layer}" not in call.path:
            files.setdefault("rest", {})[call.path] = tensor
            continue
        part = call.path.split(f".{call.layer}", 1)[1].lstrip(".") or "output"
        files.setdefault(f"layer_{call.layer}", {})[part] = tensor
    for name, content in files.items():
        save(f"{folder}/{name}.pt", content)
    names = steps_of(hub_calls(dump.spec))
    for path, steps in list(names.items()):  # As files and keys have them.
        if steps[0][0] is not None:
            part = path.split(f".{steps[0][0]}", 1)[-1].lstrip(".") or "output"
            names[f"layer_{steps[0][0]}.{part}"] = steps
    return names


def padded_batch(dump, folder, left=False):
    """Hooks on a padded batch of all sequences; what stands in the padding means nothing."""
    longest = max(dump.lengths)
    noise = torch.Generator().manual_seed(dump.pid)

    def batch(tensor):
        rows = []
        for part in torch.split(tensor, dump.lengths):
            shape = (longest - len(part), *part.shape[1:])
            pad = torch.randn(shape, generator=noise).to(part.dtype)
            rows.append(torch.cat([pad, part] if left else [part, pad]))
        return torch.stack(rows)

    save(f"{folder}/hooks.pt", {c.path: batch(given_hub(dump, c)[0]) for c in hub_calls(dump.spec)})
    return steps_of(hub_calls(dump.spec))


def metadata_json(dump, folder):
    """A raw file for each step beside an index, as home-made dumpers write."""
    os.makedirs(folder, exist_ok=True)
    names, index = {}, []
    for layer in range(dump.spec.layers):
        for step in ("ln1", "q", "k", "v", "o", "ln2", "mlp", "out"):
            name = {"ln1": "input_norm", "q": "q_proj", "k": "k_proj", "v": "v_proj",
                    "o": "attn_out", "ln2": "post_norm", "mlp": "mlp_out", "out": "hidden"}[step]
            file = f"layer{layer:02d}.{name}"
            save(f"{folder}/{file}.pt", value(dump.runs[0], layer, step)[dump.passes[0]])
            names[file] = [(layer, step)]
            index.append({"file": f"{file}.pt", "layer": layer})
    with open(f"{folder}/index.json", "w") as out:
        json.dump(index, out)
    return names
