"""More writers: MaxText, torchtitan, Megatron with shards of the sequence and stages, msprobe in
its other forms, sglang's dumper with inputs, llama.cpp's graph in full: see dump_layouts.py."""
import json
import os

import numpy
import torch

from dump_layouts import LLAMA_CPP, gguf_rows, given, given_hub, save
from dump_modules import (columns, engine_calls, hub_calls, input_of, step_read, steps_of,
                          value)
from dump_others import batched, megatron_qkv, megatron_steps

MAXTEXT = {"pre_self_attention_layer_norm": "ln1", "self_attention/query": "q",
           "self_attention/key": "k", "self_attention/value": "v", "self_attention/out": "o",
           "post_self_attention_layer_norm": "ln2", "mlp/wi_0": "gate", "mlp/wi_1": "up",
           "mlp/wo": "mlp", "mlp": "mlp"}


def maxtext(dump, folder, scanned=True):
    """flax intermediates of layers in a scan: one tensor for all layers, which come first."""
    run, flat, names = dump.runs[0], {}, {}
    heads = ("q", "k", "v")

    def shaped(i, step):
        x = batched(dump, run[i, step])
        return x.unflatten(-1, (-1, dump.spec.size)) if step in heads else x

    flat["token_embedder/__call__/0"] = batched(dump, run[None, "embed"])
    names["token_embedder"] = [(None, "embed")]
    for name, step in MAXTEXT.items():
        each = [shaped(i, step) for i in range(dump.spec.layers)]
        if scanned:
            flat[f"decoder/layers/{name}/__call__/0"] = torch.stack(each)
        for i, x in enumerate(each):
            if not scanned:
                flat[f"decoder/layers_{i}/{name}/__call__/0"] = x
            at = f"layers.{i}" if scanned else f"layers_{i}"
            names[f"decoder.{at}.{name.replace('/', '.')}"] = [(i, step)]
    flat["decoder/decoder_norm/__call__/0"] = batched(dump, run[None, "norm"])
    flat["decoder/logits_dense/__call__/0"] = batched(dump, run[None, "logits"])
    names["decoder.decoder_norm"] = [(None, "norm")]
    names["decoder.logits_dense"] = [(None, "logits")]
    os.makedirs(folder, exist_ok=True)
    numpy.savez(f"{folder}/intermediates.npz",
                **{f"intermediates/{k}": flat[k].numpy() for k in sorted(flat)})
    return names


TITAN = [("attention_norm", "ln1"), ("attention.wq", "q"), ("attention.wk", "k"),
         ("attention.wv", "v"), ("attention.wo", "o"), ("attention", "o"), ("ffn_norm", "ln2"),
         ("feed_forward.w1", "gate"), ("feed_forward.w3", "up"), ("feed_forward.w2", "mlp"),
         ("feed_forward", "mlp"), ("", "out")]


def torchtitan(dump, folder):
    """Hooks on a model of Meta's names, whose query and key have pairs side by side."""
    run, content, names = dump.runs[0], {}, {}
    content["tok_embeddings"] = batched(dump, run[None, "embed"])
    names["tok_embeddings"] = [(None, "embed")]
    for i in range(dump.spec.layers):
        for name, step in TITAN:
            x = run[i, step]
            if step in ("q", "k"):
                x = gguf_rows(x, dump.spec).flatten(1)
            path = f"layers.{i}.{name}".rstrip(".")
            content[path] = batched(dump, x)
            names[path] = [(i, step)]
    content["norm"] = batched(dump, run[None, "norm"])
    content["output"] = batched(dump, run[None, "logits"])
    save(f"{folder}/acts.pt", content)
    return {**names, "norm": [(None, "norm")], "output": [(None, "logits")]}


def megatron_local(dump, folder, shards=False, stages=1):
    """Hooks on Megatron-Core's modules, a file a rank; layers of a stage count from 0. Norms and
    outputs of row-parallel projections hold a part of the sequence where it is sharded."""
    names, rows = {}, dump.passes[0]
    count = len(rows) // dump.ranks * dump.ranks
    rows = rows[:count]
    per = dump.spec.layers // stages
    for rank in range(dump.ranks):
        mine = lambda t: t.chunk(dump.ranks)[rank] if shards else t
        run = dump.runs[rank]
        for stage in range(stages):
            content = {}
            last = stage + 1 == stages
            layers = range(stage * per, dump.spec.layers if last else (stage + 1) * per)
            if stage == 0:
                content["embedding"] = mine(run[None, "embed"][rows][:, None])
                names["embedding"] = [(None, "embed")]
            for i in layers:
                at, local = f"decoder.layers.{i - stage * per}", f"decoder.layers.{i}"
                parts = {m: t for m, what, t, _ in megatron_steps(dump, i, rank)
                         if what == "output"}
                put = {"input_layernorm": (mine(run[i, "ln1"][rows]), [(i, "ln1")]),
                       "self_attention.linear_qkv": (parts["self_attention.linear_qkv"][rows],
                                                     [(i, p) for p in "qkv"]),
                       "self_attention.core_attention": (columns(
                           run[i, "z"], rank, dump.ranks, dump.spec.size)[rows], [(i, "z")]),
                       "self_attention.linear_proj": (mine(run[i, "o"][rows]), [(i, "o")]),
                       "self_attention": (mine(run[i, "o"][rows]), [(i, "o")]),
                       "pre_mlp_layernorm": (mine(run[i, "ln2"][rows]), [(i, "ln2")]),
                       "mlp.linear_fc1": (parts["mlp.linear_fc1"][rows], [(i, "gate"), (i, "up")]),
                       "mlp.linear_fc2": (mine(run[i, "mlp"][rows]), [(i, "mlp")]),
                       "mlp": (mine(run[i, "mlp"][rows]), [(i, "mlp")])}
                for name, (tensor, steps) in put.items():
                    pair = name.split(".")[-1].startswith(("linear", "self", "mlp"))
                    tensor = tensor[:, None]
                    content[f"{at}.{name}"] = (tensor, None) if pair else tensor
                    names[f"{at}.{name}"] = names.get(f"{at}.{name}", []) + steps
                    names[f"{local}.{name}"] = steps
                content[at] = (mine(run[i, "out"][rows])[:, None], None)
                names[at] = names[local] = [(i, "out")]
            if last:
                content["decoder.final_layernorm"] = mine(run[None, "norm"][rows])[:, None]
                names["decoder.final_layernorm"] = [(None, "norm")]
            where = f"mp_rank_{rank:02d}" + (f"_{stage:03d}" if stages > 1 else "")
            save(f"{folder}/iter_0000001/{where}/acts.pt", content)
    return names


def msprobe_more(dump, folder, level="mix", crash=False, engine=False, mindspore=False, wrap=""):
    """msprobe with inputs, parameters, calls of APIs, backward; without the JSON of a crash."""
    calls = engine_calls(dump.spec) if engine else hub_calls(dump.spec)
    at, data, names, counts = f"{folder}/step0/rank0", {}, {}, {}
    rows = dump.passes[0]
    kind = "Cell" if mindspore else "Module"

    def put(file, tensor):
        os.makedirs(f"{at}/dump_tensor_data", exist_ok=True)
        if mindspore:
            numpy.save(f"{at}/dump_tensor_data/{file}.npy", tensor.numpy())
        else:
            save(f"{at}/dump_tensor_data/{file}.pt", tensor)
        return {"type": "torch.Tensor", "dtype": str(tensor.dtype), "shape": list(tensor.shape),
                "Max": float(tensor.max()), "Min": float(tensor.min()),
                "Mean": float(tensor.float().mean()), "Norm": float(tensor.float().norm()),
                "requires_grad": False, "data_name": f"{file}.pt", "md5": "0a1b2c3d"}

    def read(call):
        step = input_of(dump.spec, call)
        return dump.runs[0][call.layer, step][rows][None] if (call.layer, step) in dump.runs[0] \
            else dump.ids[rows][None]

    for call in calls:
        before = read(call)
        out = [t[rows] if engine else t[rows][None] for t in given_hub(dump, call)]
        if level in ("L1", "mix") and call.leaf:
            api = {"Linear": "Functional.linear", "Embedding": "Functional.embedding",
                   "SiLU": "Functional.silu"}.get(call.cls, "Tensor.mul")
            n = counts[api] = counts.get(api, -1) + 1
            entry = f"{api}.{n}.forward"
            data[entry] = {"input_args": [put(f"{entry}.input.0", before)], "input_kwargs": {},
                           "output": [put(f"{entry}.output.0", out[0])]}
            if level == "L1":
                names[f"{entry}.output.0"] = steps_of([call])[call.path]
                if before.is_floating_point():
                    names[f"{entry}.input.0"] = [step_read(dump.spec, call)]
        if level in ("L0", "mix"):
            path = f"{wrap}{call.path}"
            entry = f"{kind}.{path}.{call.cls}.forward.0"
            data[entry] = {"input_args": [put(f"{entry}.input.0", before)], "input_kwargs": {},
                           "output": [put(f"{entry}.output.{i}", t) for i, t in enumerate(out)],
                           "parameters": {}}
            if call.leaf and call.cls.endswith("Norm"):
                w = torch.ones(dump.spec.hidden)
                data[entry]["parameters"] = {"weight": put(f"{entry}.parameters.weight", w)}
            if before.is_floating_point():
                names[f"{call.path}.forward.input.0"] = [step_read(dump.spec, call)]
    if level in ("L0", "mix"):  # The backward pass, in its order.
        for call in reversed(calls):
            entry = f"{kind}.{wrap}{call.path}.{call.cls}.backward.0"
            grad = torch.randn(3, 5, generator=torch.Generator().manual_seed(len(data)))
            data[entry] = {"input": [put(f"{entry}.input.0", grad)], "output": [None]}
        names.update(steps_of(calls))
    if not crash:
        with open(f"{at}/dump.json", "w") as out:
            json.dump({"task": "tensor", "level": level, "framework": "pytorch",
                       "dump_data_dir": "/x/dump_tensor_data", "data": data}, out)
        with open(f"{at}/construct.json", "w") as out:
            json.dump({} if level == "L1" else {k: [None, 0] for k in data}, out)
        with open(f"{at}/stack.json", "w") as out:
            json.dump({"0": [list(data), ["File x.py, line 1"]]}, out)
    return names


def dumper_all(dump, folder, files=True):
    """sglang's dumper in the mode "all": inputs and keyword inputs of modules, parameters."""
    calls, names = engine_calls(dump.spec), {}
    for rank in range(dump.ranks):
        index, at = 0, f"{folder}/exp_{dump.pid}"
        for step, rows in enumerate(dump.passes):
            def put(name, thing, layer=None):
                nonlocal index
                index += 1
                tags = {"step": step, "rank": rank, "dump_index": index, "name": name,
                        "recompute_status": "disabled"}
                if layer is not None:
                    tags["layer_id"] = layer
                if files:
                    tags.update(pp_rank=0, tp_rank=rank, cp_rank=0, ep_rank=0, etp_rank=0)
                meta = {**tags, "world_rank": rank, "world_size": dump.ranks,
                        "tokenizer_path": "meta-llama/x", "sglang_parallel_info": {
                            "tp_rank": rank, "tp_size": dump.ranks, "pp_rank": 0, "pp_size": 1,
                            "attn_tp_rank": rank, "attn_tp_size": dump.ranks}}
                file = "___".join(f"{k}={v}" for k, v in tags.items())
                save(f"{at}/{file}.pt", {"value": thing, "meta": meta})

            put("non_intrusive__model.embed_tokens.inputs.0", dump.ids[rows])
            for name, thing in [("input_ids", dump.ids[rows]), ("positions", dump.positions[rows]),
                                ("seq_lens", dump.positions[dump.lasts(rows)] + 1),
                                ("req_pool_indices", torch.arange(1, 2)), ("rids", ["a"])]:
                put(name, thing)
            for call in calls:
                path = call.path
                if path.endswith("rotary_emb"):
                    path = path.replace(f"layers.{call.layer}.", "layers.0.")
                whole = not call.leaf and call.cls.endswith(("Layer", "Block"))
                layer = None if whole or call.layer is None or path.count(".") < 2 else call.layer
                for i, step_name in enumerate(call.inputs):
                    if (call.layer, step_name) in dump.runs[rank]:
                        put(f"non_intrusive__{path}.inputs.{i}",
                            value(dump.runs[rank], call.layer, step_name)[rows], layer)
                        names[f"{path}.inputs.{i}"] = names.get(f"{path}.inputs.{i}", []) + [
                            (call.layer - 1, "out") if step_name == "in"
                            else (call.layer, step_name)]
                if call.cls.endswith("Attention") and not call.leaf:
                    put("positions", dump.positions[rows], call.layer)
                out = [t[rows] for t in given(dump, call, rank)]
                for i, tensor in enumerate(out):
                    end = "output" if len(out) == 1 else f"output.{i}"
                    put(f"non_intrusive__{path}.{end}", tensor, layer)
                if call.cls.endswith("Norm") and step == 0:
                    put(f"param__{path}.weight", torch.ones(dump.spec.hidden), layer)
    names.update(steps_of(calls))
    return names


PARTIAL = {"attn_q": ("q", "t (nh*hd)[tp]"), "attn_k": ("k", "t (nkv*hd)[tp]"),
           "attn_v": ("v", "t (nkv*hd)[tp]"), "attn_core": ("z", "t (nh*hd)[tp]"),
           "attn_output": ("o", "t h[tp:partial]"), "mlp_input": ("ln2", "t h # tp:replicated"),
           "mlp_output": ("mlp", "t h[tp:partial]")}


def dumper_partial(dump, folder):
    """Manual fields with dims: shards of columns, and sums that are not made yet."""
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
                        "sglang_parallel_info": {"tp_rank": rank, "tp_size": dump.ranks}}
                if dims:
                    meta["dims"] = dims
                file = "___".join(f"{k}={v}" for k, v in tags.items())
                save(f"{folder}/run/{file}.pt", {"value": thing, "meta": meta})

            put("input_ids", dump.ids[rows], dims="t")
            put("positions", dump.positions[rows], dims="t")
            put("seq_lens", dump.positions[dump.lasts(rows)] + 1)
            for layer in range(dump.spec.layers):
                for name, (key, dims) in PARTIAL.items():
                    x = dump.runs[rank][layer, key]
                    if "[tp]" in dims and dump.ranks > 1:
                        x = columns(x, rank, dump.ranks, dump.spec.size)
                    if "partial" in dims and dump.ranks > 1:
                        noise = torch.Generator().manual_seed(layer)
                        parts = [torch.randn(x.shape, generator=noise)
                                 for _ in range(dump.ranks - 1)]
                        x = (parts + [x - sum(parts)])[rank]
                    put(name, x[rows], layer, dims.replace("(", "").replace(")", ""))
                    names[f"layers.{layer}.{name}"] = [(layer, key)]
    return names


def llama_graph(dump, folder):
    """All nodes of llama.cpp's graph: views, nodes without a name, each name as often as it is
    computed."""
    spec, run, names, rows = dump.spec, dump.runs[0], {}, dump.passes[0]
    os.makedirs(folder, exist_ok=True)
    count = 0

    def put(name, tensor, keys=()):
        nonlocal count
        file = name.replace("/", "_")
        numpy.save(f"{folder}/{file}.npy", tensor.contiguous().numpy())
        count += 1
        if keys:
            names[name] = list(keys)

    put("inp_embd", run[None, "embed"][rows], [(None, "embed")])
    order = [n for n, _ in LLAMA_CPP]
    for i in range(spec.layers):
        last = i + 1 == spec.layers
        put(f"norm-{i}", run[i, "in"][rows] / run[i, "in"][rows].norm(dim=-1, keepdim=True))
        for name, step in LLAMA_CPP:
            if (i, step) not in run or step == "moe":
                continue
            x = run[i, step][rows]
            heads = x.view(len(rows), -1, spec.size) if name in ("Qcur", "Kcur", "Vcur") else x
            if name in ("Qcur", "Kcur"):
                raw = run[i, "q" if name == "Qcur" else "k"][rows]
                turned = spec.arch in ("llama", "mistral", "mixtral")
                heads = gguf_rows(x, spec) if turned else heads
                raw = gguf_rows(raw, spec) if turned else raw.view(len(rows), -1, spec.size)
                put(f"{name}-{i} (reshaped)", raw, [(i, "q" if name == "Qcur" else "k")])
            if last and order.index(name) >= order.index("ffn_inp"):
                heads = heads[dump.lasts(rows)]
            put(f"{name}-{i}", heads, [(i, step)])
            if name == "Kcur":
                put(f"cache_k_l{i} (view)", heads.flatten(1).half())
                put(f"cache_v_l{i} (view)", run[i, "v"][rows].half())
            if name == "Qcur":
                put(f"Qcur-{i} (view) (permuted)", heads.transpose(0, 1))
        put(f"node_{count}", run[i, "mid"][rows])
    at = dump.lasts(rows)
    put("norm", run[None, "norm"][at])
    put("result_norm", run[None, "norm"][at], [(None, "norm")])
    put("result_output", run[None, "logits"][at], [(None, "logits")])
    return names
