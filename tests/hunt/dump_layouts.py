"""Writes runs in the layouts of real stacks, faithful to what each of them does to names, order,
tuples, tokens and ranks. Each writer returns {name in the dump: [(layer, step) …]}."""
import json
import os

import numpy
import torch

from dump_modules import engine_calls, hub_calls, on_rank, steps_of, value


class Dumping:
    """What a writer gets: a Run for each rank, and which tokens each pass has."""

    def __init__(self, spec, runs, ids, lengths, passes, rng, dummy=None):
        self.spec, self.runs, self.ids, self.lengths = spec, runs, ids, lengths
        self.positions = torch.cat([torch.arange(n) for n in lengths])
        self.sequence = torch.cat([torch.full((n,), i) for i, n in enumerate(lengths)])
        self.passes = passes  # Rows of the packed tokens, a list for each pass.
        self.rng, self.dummy = rng, dummy
        self.pid = rng.randrange(100, 99999)

    @property
    def ranks(self):
        return len(self.runs)

    def lasts(self, rows):
        """The last row of each sequence of a pass."""
        return torch.tensor([r for i, r in enumerate(rows.tolist())
                             if i + 1 == len(rows)
                             or self.sequence[r] != self.sequence[rows[i + 1]]])


def save(path, thing):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    torch.save(thing, path)


def partial(dump, call, rank):
    """What the experts of a rank add to the sum."""
    whole = value(dump.runs[rank], call.layer, "mlp")
    if dump.ranks == 1:
        return whole
    noise = torch.Generator().manual_seed(call.layer)
    parts = [torch.randn(whole.shape, generator=noise) for _ in range(dump.ranks - 1)]
    return (parts + [whole - sum(parts)])[rank]


def given(dump, call, rank, run=None):
    if call.shard == "partial":
        return [partial(dump, call, rank)]
    return [on_rank(run or dump.runs[rank], dump.spec, call, n, rank, dump.ranks)
            for n in call.outputs]


def facts(dump, rows, at="model.forward_batch_info.", lengths=True):
    found = {at + "input_ids": dump.ids[rows], at + "positions": dump.positions[rows]}
    if lengths:
        found[at + "seq_lens"] = dump.positions[dump.lasts(rows)] + 1
    return found


def forward_hook(dump, folder, vllm=False, padded=0):
    calls = [c for c in engine_calls(dump.spec) if c.leaf]
    rotary = [c for c in calls if c.path.endswith("rotary_emb")]
    for rank in range(dump.ranks):
        at = f"{folder}/TP{rank}_PP0_Rank{rank}_pid{dump.pid + rank}"
        late = {}
        number = 0
        if dump.dummy is not None:
            run, count = dump.dummy
            content = {}
            for call in calls:
                out = given(dump, call, rank, run) if call.shard != "partial" else [
                    value(run, call.layer, "mlp")]
                content[call.path] = out if len(out) > 1 else out[0]
                if call in rotary:
                    for each in rotary:
                        content[each.path] = given(dump, rotary[-1], rank, run)
            content.update({"model.forward_batch_info.input_ids": torch.zeros(count,
                    dtype=torch.int64),
                            "model.forward_batch_info.positions": torch.arange(count)})
            save(f"{at}/Pass{number:05d}.pt", content)
            number += 1
        for rows in dump.passes:
            content = dict(late)
            for call in calls:
                if call in rotary:
                    if call is rotary[0]:  # One module: each call writes the names of all layers.
                        for each in rotary:
                            content[each.path] = [t[rows] for t in given(dump, rotary[-1], rank)]
                    continue
                out = [t[rows] for t in given(dump, call, rank)]
                content[call.path] = out if len(out) > 1 else out[0]
            content.update(facts(dump, rows, lengths=not vllm))
            if padded == "graph":  # The next size that a graph was captured for.
                sizes = [n for n in (1, 2, 4, 8, 16, 24, 32, 48, 64) if n >= len(rows)]
            if padded:
                more = sizes[0] - len(rows) if padded == "graph" else padded
                content = {k: pad_rows(v, len(rows), more, k) for k, v in content.items()}
            save(f"{at}/Pass{number:05d}.pt", content)
            number += 1
            late = {"model": value(dump.runs[rank], None, "norm")[rows],
                    "logits_processor": value(dump.runs[rank], None, "logits")[dump.lasts(rows)]}
    names = steps_of(calls)
    if rotary:
        for each in rotary[:-1]:
            for i in (0, 1):
                names.pop(f"{each.path}.{i}", None)
    return names


def pad_rows(thing, count, padded, name):
    """As CUDA graphs do: rows behind the tokens mean nothing; their positions are 0."""
    if isinstance(thing, list):
        return [pad_rows(t, count, padded, name) for t in thing]
    if thing.shape[0] != count or name.endswith("seq_lens"):
        return thing
    if thing.dtype == torch.int64:
        rest = torch.zeros(padded, dtype=torch.int64)
    else:
        rest = torch.randn(padded, *thing.shape[1:], generator=torch.Generator().manual_seed(7))
    return torch.cat([thing, rest])


def dumper(dump, folder, manual=False):
    stamp = f"dump_202608{dump.pid % 19 + 10}_1012{dump.pid % 50 + 10}_{100000 + dump.pid}"
    names = {}
    for rank in range(dump.ranks):
        index = 0
        for step, rows in enumerate(dump.passes):
            def put(name, thing, layer=None, dims=None):
                nonlocal index
                index += 1
                tags = {"step": step, "rank": rank, "dump_index": index, "name": name,
                        "recompute_status": "disabled"}
                if layer is not None:
                    tags["layer_id"] = layer
                meta = {**tags, "world_rank": rank, "world_size": dump.ranks,
                        "sglang_parallel_info": {"tp_rank": rank, "tp_size": dump.ranks,
                                                 "pp_rank": 0, "pp_size": 1}}
                if dims:
                    meta["dims"] = dims
                file = "___".join(f"{k}={v}" for k, v in tags.items())
                save(f"{folder}/{stamp}/{file}.pt", {"value": thing, "meta": meta})

            put("input_ids", dump.ids[rows])
            put("positions", dump.positions[rows])
            put("seq_lens", dump.positions[dump.lasts(rows)] + 1)
            put("rids", [f"r{i}" for i in range(len(dump.lasts(rows)))])
            if manual:
                manual_steps(dump, rank, rows, put, names)
                continue
            for call in engine_calls(dump.spec):
                shared = call.path.endswith("rotary_emb")
                path = call.path
                if shared:  # named_modules() lists a shared module once, under layer 0.
                    path = path.replace(f"layers.{call.layer}.", "layers.0.")
                whole_layer = not call.leaf and call.cls.endswith(("Layer", "Block"))
                outside = whole_layer or call.layer is None or call.path.count(".") < 2
                layer = None if outside else call.layer
                out = [t[rows] for t in given(dump, call, rank)]
                for i, tensor in enumerate(out):
                    end = "output" if len(out) == 1 else f"output.{i}"
                    put(f"non_intrusive__{path}.{end}", tensor, layer)
    return names if manual else steps_of(engine_calls(dump.spec))


MANUAL = {"layer_input": ("in", "t h"), "attn_q": ("q", "t (nh*hd)[tp]"), "attn_k": ("k",
        "t (nkv*hd)[tp]"),
          "attn_v": ("v", "t (nkv*hd)[tp]"), "attn_q_rope": ("qr", "t (nh*hd)[tp]"),
          "attn_k_rope": ("kr", "t (nkv*hd)[tp]"), "attn_core": ("z", "t (nh*hd)[tp]"),
          "attn_output": ("o", "t h"), "mlp_input": ("ln2", "t h"), "mlp_output": ("mlp", "t h")}


def manual_steps(dump, rank, rows, put, names):
    from dump_modules import columns
    for layer in range(dump.spec.layers):
        for name, (step, dims) in MANUAL.items():
            if (layer, step) not in dump.runs[rank]:
                continue
            tensor = dump.runs[rank][layer, step]
            if "[tp]" in dims and dump.ranks > 1:
                tensor = columns(tensor, rank, dump.ranks, dump.spec.size)
            put(name, tensor[rows], layer, dims.replace("(", "").replace(")", ""))
            names[f"layers.{layer}.{name}"] = [(layer - 1, "out") if step == "in" else (layer,
                    step)]


def plain_hooks(dump, folder, engine=True, leaves=False):
    """One dict of the outputs of modules; an engine's are packed and may be tuples."""
    calls = engine_calls(dump.spec) if engine else hub_calls(dump.spec)
    calls = [c for c in calls if not (engine and c.path.endswith("rotary_emb"))]
    if leaves:
        calls = [c for c in calls if c.leaf]
    content = {}
    for call in calls:
        out = [t[dump.passes[0]] for t in given(dump, call, 0)]
        content[call.path] = tuple(out) if len(out) > 1 else out[0]
    if dump.rng.random() < 0.5:
        content["input_ids"] = dump.ids[dump.passes[0]]
    save(f"{folder}/hooks.pt", content)
    return steps_of(calls)


def debug_hook(dump, folder):
    """TensorRT-LLM: calls are numbered, outputs stand under the names of arguments."""
    spec, names = dump.spec, {}
    for rank, run in enumerate(dump.runs):
        at = f"{folder}/rank{rank}/"

        def put(path, way, argument, tensor, steps=()):
            save(f"{at}{path}-{way}.{argument}.pt", tensor)
            if steps:
                names[f"{path.split('.', 1)[1]}-{way}.{argument}"] = list(steps)

        for number, rows in enumerate(dump.passes, 1):
            top = f"{number}.LlamaModel"
            get = lambda layer, step: value(run, layer, step)[rows]
            put(f"{top}-1.Embedding", "input", "input", dump.ids[rows])
            put(f"{top}-1.Embedding", "output", "input", dump.ids[rows])
            put(f"{top}-1.Embedding", "output", "1", get(0, "embed"), [(None, "embed")])

            def linear(path, x, y, steps, read=()):
                put(path, "input", "input", x, read), put(path, "output", "input", x)
                put(path, "output", "1", y, steps)

            def normed(path, hidden, residual, y, stream, steps):
                for way in ("input", "output"):
                    put(path, way, "hidden_states", hidden)
                    put(path, way, "residual", residual)
                put(path, "output", "2", y, steps[0]), put(path, "output", "3", stream, steps[1])

            for i in range(spec.layers):
                layer, n = f"{top}-{i + 2}.LlamaDecoderLayer", 1
                if i == 0:
                    path = f"{layer}-{n}.RMSNorm"
                    put(path, "input", "hidden_states", get(0, "in"))
                    put(path, "output", "hidden_states", get(0, "in"))
                    put(path, "output", "residual", get(0, "ln1"), [(0, "ln1")])
                    n += 1
                path = f"{layer}-{n}.LlamaAttention"
                fused = [c for c in engine_calls(spec) if c.layer == i]
                by = {c.path.rsplit(".", 1)[-1]: c for c in fused}
                part = lambda name: given(dump, by[name], rank)[0][rows]
                linear(f"{path}-1.Linear", get(i, "ln1"), part("qkv_proj"), [(i, p) for p in "qkv"])
                linear(f"{path}-2.Linear", part("attn"), get(i, "o"), [(i, "o")], [(i, "z")])
                put(path, "output", "position_ids", get(i, "o"), [(i, "o")])
                normed(f"{layer}-{n + 1}.RMSNorm", get(i, "o"), get(i, "in"), get(i, "ln2"),
                       get(i, "mid"), ([(i, "ln2")], [(i, "mid")]))
                path = f"{layer}-{n + 2}.GatedMLP"
                linear(f"{path}-1.Linear", get(i, "ln2"), part("gate_up_proj"), [(i, "gate"), (i,
                        "up")])
                linear(f"{path}-2.Linear", part("act_fn"), get(i, "mlp"), [(i, "mlp")], [(i,
                        "gated")])
                put(path, "input", "x", get(i, "ln2")), put(path, "output", "x", get(i, "ln2"))
                put(path, "output", "all_rank_num_tokens", get(i, "mlp"), [(i, "mlp")])
                last = i + 1 == spec.layers
                after = get(None, "norm") if last else get(i + 1, "ln1")
                normed(f"{layer}-{n + 3}.RMSNorm", get(i, "mlp"), get(i, "mid"), after, get(i,
                        "out"),
                       ([(None, "norm")] if last else [(i + 1, "ln1")], [(i, "out")]))
                put(layer, "output", "position_ids", after)
                put(layer, "output", "hidden_states", get(i, "out"))
    return names


def msprobe(dump, folder, engine=False, statistics=False):
    """Level L0: modules, with dump.json in the order in which calls ended."""
    calls = engine_calls(dump.spec) if engine else hub_calls(dump.spec)
    process = "rank0" if dump.pid % 10 < 6 else f"proc{dump.pid}"
    at = f"{folder}/step0/{process}"
    data, construct = {}, {}
    for number, rows in enumerate(dump.passes):
        for call in calls:
            out = [t[rows] if engine else t[rows][None] for t in given_hub(dump, call)]
            entry = f"Module.{call.path}.{call.cls}.forward.{number}"
            outputs = []
            for i, tensor in enumerate(out):
                file = f"{entry}.output.{i}.pt"
                if not statistics:
                    save(f"{at}/dump_tensor_data/{file}", tensor)
                outputs.append({"type": "torch.Tensor", "dtype": str(tensor.dtype),
                                "shape": list(tensor.shape), "Max": float(tensor.max()),
                                "Min": float(tensor.min()), "Mean": float(tensor.mean()),
                                "Norm": float(tensor.norm()), "requires_grad": False,
                                "data_name": file})
            data[entry] = {"input_args": [], "input_kwargs": {}, "output": outputs}
            construct[entry] = None
    os.makedirs(at, exist_ok=True)
    task = "statistics" if statistics else "tensor"
    json.dump({"task": task, "level": "L0", "framework": "pytorch",
               "dump_data_dir": f"/old/place/{process}/dump_tensor_data", "data": data},
              open(f"{at}/dump.json", "w"))
    json.dump(construct, open(f"{at}/construct.json", "w"))
    json.dump({"0": [list(data), ["File x.py, line 1"]]}, open(f"{at}/stack.json", "w"))
    return steps_of(calls)


def given_hub(dump, call):
    if call.outputs == ["qkv_by_head"]:
        spec, run = dump.spec, dump.runs[0]
        parts = [run[call.layer, p].view(-1, spec.heads, spec.size) for p in "qkv"]
        return [torch.stack(parts, 2).flatten(1)]
    return given(dump, call, 0)


LLAMA_CPP = [("attn_norm", "ln1"), ("Qcur", "qr"), ("Kcur", "kr"), ("Vcur", "v"), ("kqv_out", "z"),
             ("attn_out", "o"), ("ffn_inp", "mid"), ("ffn_norm", "ln2"), ("ffn_up", "up"),
             ("ffn_gate", "gate"), ("ffn_swiglu", "gated"), ("ffn_moe_logits", "router"),
             ("ffn_moe_topk", "topk"), ("ffn_moe_weights", "weights"), ("ffn_moe_out", "moe"),
             ("ffn_out", "mlp"), ("l_out", "out")]


def gguf_rows(x, spec):
    """Pairs that are rotated together stand side by side."""
    heads = x.view(x.shape[0], -1, 2, spec.size // 2)
    return heads.transpose(2, 3).reshape(x.shape[0], -1, spec.size)


def llama_cpp(dump, folder):
    spec, run, names = dump.spec, dump.runs[0], {}
    rows = dump.passes[0]
    os.makedirs(folder, exist_ok=True)

    def put(name, tensor, key):
        numpy.save(f"{folder}/{name}.npy", tensor.contiguous().numpy())
        names[name] = [key]

    put("embd", run[None, "embed"][rows], (None, "embed"))
    for i in range(spec.layers):
        last = i + 1 == spec.layers
        for name, step in LLAMA_CPP:
            if step == "moe":
                step = "mlp" if spec.experts else "none"
            elif step == "mlp" and spec.experts:
                continue
            if (i, step) not in run:
                continue
            x = run[i, step][rows]
            if name in ("Qcur", "Kcur"):
                x = gguf_rows(x, spec) if spec.arch in ("llama", "mistral", "mixtral") else x.view(
                    len(rows), -1, spec.size)
            if name == "Vcur":
                x = x.view(len(rows), -1, spec.size)
            order = [n for n, _ in LLAMA_CPP]
            from_mid = order.index(name) >= order.index("ffn_inp")
            if last and from_mid:
                x = x[dump.lasts(rows)]
            put(f"{name}-{i}", x, (i, step))
    at = dump.lasts(rows)
    put("result_norm", run[None, "norm"][at], (None, "norm"))
    put("result_output", run[None, "logits"][at], (None, "logits"))
    return names


def lens(dump, folder):
    """A cache of TransformerLens without folding."""
    spec, run, rows = dump.spec, dump.runs[0], dump.passes[0]
    cache, names = {}, {}

    def put(name, tensor, key=None):
        cache[name] = tensor[rows][None]
        if key:
            names[name] = [key]

    def norm(at, x, weighted):
        centred = x - x.mean(-1, keepdim=True) if spec.layer_norm else x
        size = (centred.pow(2).mean(-1, keepdim=True) + spec.eps).sqrt()
        put(f"{at}.hook_scale", size)
        put(f"{at}.hook_normalized", centred / size)

    put("hook_embed", run[None, "embed"], (None, "embed"))
    heads = lambda t: t.view(t.shape[0], -1, spec.size)
    for i in range(spec.layers):
        at = f"blocks.{i}"
        put(f"{at}.hook_resid_pre", run[i, "in"], (i - 1, "out") if i else None)
        norm(f"{at}.ln1", run[i, "in"], run[i, "ln1"])
        for p in "qkv":
            put(f"{at}.attn.hook_{p}", heads(run[i, p]), (i, p))
        if (i, "qr") in run:
            put(f"{at}.attn.hook_rot_q", heads(run[i, "qr"]), (i, "qr"))
            put(f"{at}.attn.hook_rot_k", heads(run[i, "kr"]), (i, "kr"))
        put(f"{at}.attn.hook_z", heads(run[i, "z"]), (i, "z"))
        put(f"{at}.hook_attn_out", run[i, "o"], (i, "o"))
        if not spec.parallel:
            put(f"{at}.hook_resid_mid", run[i, "mid"], (i, "mid"))
        norm(f"{at}.ln2", run[i, "mid"], run[i, "ln2"])
        if spec.gated:
            put(f"{at}.mlp.hook_pre", run[i, "gate"], (i, "gate"))
            put(f"{at}.mlp.hook_pre_linear", run[i, "up"], (i, "up"))
            put(f"{at}.mlp.hook_post", run[i, "gated"], (i, "gated"))
        else:
            put(f"{at}.mlp.hook_pre", run[i, "up"], (i, "up"))
            put(f"{at}.mlp.hook_post", run[i, "act"], (i, "act"))
        put(f"{at}.hook_mlp_out", run[i, "mlp"], (i, "mlp"))
        put(f"{at}.hook_resid_post", run[i, "out"], (i, "out"))
    norm("ln_final", run[spec.layers - 1, "out"], None)
    save(f"{folder}/cache.pt", cache)
    return names
