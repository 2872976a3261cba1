"""More writers, of stacks that are no inference engines: see dump_layouts.py."""
import base64
import io
import json
import os
import pickle

import numpy
import torch

from dump_layouts import save


def batched(dump, tensor):
    """[1, T, …] of the first pass."""
    return tensor[dump.passes[0]][None]


def hidden_states(dump, folder, stacked=False, listed=False):
    run, layers = dump.runs[0], dump.spec.layers
    keys = [(None, "embed")] + [(i, "out") for i in range(layers - 1)] + [(None, "norm")]
    states = tuple(batched(dump, run[0, "in"] if i == 0 else run[key])
                   for i, key in enumerate(keys))
    os.makedirs(folder, exist_ok=True)
    if stacked:
        torch.save({"hidden_states": torch.stack(states)}, f"{folder}/hidden.pt")
    elif listed:
        torch.save({"hidden_states": states, "input_ids": dump.ids[dump.passes[0]][None]},
                   f"{folder}/hidden.pt")
    else:
        torch.save(states, f"{folder}/hidden.pt")
    return {f"hidden_states.{i}": [key] for i, key in enumerate(keys)}


def connector(dump, folder):
    """vLLM's hidden-states connector: streams of some layers, the last one not normed."""
    from safetensors.torch import save_file
    run, layers = dump.runs[0], dump.spec.layers
    rows = dump.passes[0]
    os.makedirs(folder, exist_ok=True)
    states = torch.stack([run[i, "out"][rows] for i in range(layers)], 1).contiguous()
    save_file({"hidden_states": states, "token_ids": dump.ids[rows].contiguous()},
              f"{folder}/cmpl-{dump.pid:06x}.safetensors")
    return {f"hidden_states.{i}": [(i, "out")] for i in range(layers)}


ONNX = [("input_layernorm/Mul_1", "ln1"), ("self_attn/q_proj/MatMul", "q"),
        ("self_attn/k_proj/MatMul", "k"), ("self_attn/v_proj/MatMul", "v"),
        ("self_attn/Reshape_7", "z"), ("self_attn/o_proj/MatMul", "o"), ("Add", "mid"),
        ("post_attention_layernorm/Mul_1", "ln2"), ("mlp/gate_proj/MatMul", "gate"),
        ("mlp/up_proj/MatMul", "up"), ("mlp/act_fn/Mul", "act"), ("mlp/Mul", "gated"),
        ("mlp/down_proj/MatMul", "mlp"), ("Add_1", "out")]


def onnx_values(dump):
    """{name of the value: (tensor, step)} as the exporter of torch names them."""
    run, found = dump.runs[0], {}
    found["/model/embed_tokens/Gather_output_0"] = (batched(dump, run[None, "embed"]), (None,
            "embed"))
    for i in range(dump.spec.layers):
        for name, step in ONNX:
            if dump.spec.arch == "qwen2" and step in "qkv":
                name = name.replace("MatMul", "Add")  # Behind the bias.
            found[f"/model/layers.{i}/{name}_output_0"] = (batched(dump, run[i, step]), (i, step))
    found["/model/norm/Mul_1_output_0"] = (batched(dump, run[None, "norm"]), (None, "norm"))
    found["logits"] = (batched(dump, run[None, "logits"]), (None, "logits"))
    return found


def onnx_npz(dump, folder):
    os.makedirs(folder, exist_ok=True)
    found = onnx_values(dump)
    numpy.savez(f"{folder}/outputs.npz", **{k: v.numpy() for k, (v, _) in found.items()})
    return {k: [step] for k, (_, step) in found.items()}


def tensorproto(name, array):
    """A serialized TensorProto: dims, data_type 1 (float), name, raw_data."""
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])
    field = lambda number, data: varint(number << 3 | 2) + varint(len(data)) + data
    dims = b"".join(varint(1 << 3) + varint(n) for n in array.shape)
    raw = array.astype("<f4").tobytes()
    return dims + varint(2 << 3) + varint(1) + field(8, name.encode()) + field(9, raw)


def onnx_nodes(dump, folder):
    """The node dumps of ONNX Runtime: a file for each value, with a name of letters and digits."""
    os.makedirs(folder, exist_ok=True)
    found = onnx_values(dump)
    for name, (tensor, _) in found.items():
        file = "".join(c if c.isalnum() else "_" for c in name)
        with open(f"{folder}/{file}_default_rank_0.tensorproto", "wb") as out:
            out.write(tensorproto(name, tensor.numpy()))
    return {k: [step] for k, (_, step) in found.items()}


def polygraphy(dump, folder):
    os.makedirs(folder, exist_ok=True)
    found = onnx_values(dump)

    def coded(array):
        file = io.BytesIO()
        numpy.save(file, array)
        return {"polygraphy_class": "LazyArray", "values": {
            "polygraphy_class": "ndarray", "array": base64.b64encode(file.getvalue()).decode()}}

    day, minute = dump.rng.randrange(10, 29), dump.rng.randrange(10, 59)
    runner = f"onnxrt-runner-N0-11/{day}/26-10:{minute}:01"
    outputs = {k: coded(v.numpy()) for k, (v, _) in found.items()}
    json.dump({"polygraphy_class": "RunResults", "lst": [[runner, [
        {"polygraphy_class": "IterationResult", "outputs": outputs, "runtime": 0.1,
         "runner_name": runner}]]]}, open(f"{folder}/outputs.json", "w"))
    return {k: [step] for k, (_, step) in found.items()}


FLAX = [("input_layernorm", "ln1"), ("self_attn/q_proj", "q"), ("self_attn/k_proj", "k"),
        ("self_attn/v_proj", "v"), ("self_attn/o_proj", "o"), ("self_attn", "o"),
        ("post_attention_layernorm", "ln2"), ("mlp/gate_proj", "gate"), ("mlp/up_proj", "up"),
        ("mlp/down_proj", "mlp"), ("mlp", "mlp"), ("", "out")]


def flax(dump, folder, form="pickle"):
    """capture_intermediates of a model of Hugging Face's kind; keys come sorted."""
    run, tree, names = dump.runs[0], {}, {}

    def put(path, tensor, key):
        at = tree
        for part in path.split("/"):
            at = at.setdefault(part, {})
        at["__call__"] = (batched(dump, tensor).numpy(),)
        names[path.replace("/", ".")] = [key]

    put("model/embed_tokens", run[None, "embed"], (None, "embed"))
    for i in range(dump.spec.layers):
        for name, step in FLAX:
            put(f"model/layers/{i}/{name}".rstrip("/"), run[i, step], (i, step))
    put("model/norm", run[None, "norm"], (None, "norm"))
    put("lm_head", run[None, "logits"], (None, "logits"))
    in_order = lambda t: {k: in_order(t[k]) for k in sorted(t)} if isinstance(t, dict) else t
    tree = in_order(tree)
    os.makedirs(folder, exist_ok=True)
    if form == "pickle":
        pickle.dump({"intermediates": tree}, open(f"{folder}/state.pkl", "wb"))
    else:
        flat = {}

        def walk(t, path):
            for k, v in t.items():
                if isinstance(v, dict):
                    walk(v, path + [k])
                else:
                    flat["/".join(path + [k]) + ("/0" if form == "npz/0" else "")] = v[0]
        walk(tree, [] if dump.rng.random() < 0.5 else ["intermediates"])
        numpy.savez(f"{folder}/state.npz", **flat)
    return names


def megatron_qkv(dump, layer, rank=0):
    """[T, …]: for each group of queries its queries, its key, its value."""
    spec, run = dump.spec, dump.runs[rank]
    q = run[layer, "q"].view(-1, spec.kv, spec.heads // spec.kv, spec.size)
    k, v = (run[layer, p].view(-1, spec.kv, 1, spec.size) for p in "kv")
    fused = torch.cat([q, k, v], 2)
    groups = spec.kv // dump.ranks
    return fused[:, rank * groups:(rank + 1) * groups].flatten(1)


def megatron_steps(dump, layer, rank):
    """(module, tensor in [T, …], which of a multiplication, steps), tensor parallel."""
    run, spec = dump.runs[rank], dump.spec
    cut = lambda t: t[:, rank * t.shape[1] // dump.ranks:(rank + 1) * t.shape[1] // dump.ranks]
    both = torch.cat([cut(run[layer, "gate"]), cut(run[layer, "up"])], -1)
    return [("self_attention.linear_qkv", "activation", run[layer, "ln1"], [(layer, "ln1")]),
            ("self_attention.linear_qkv", "output", megatron_qkv(dump, layer, rank),
             [(layer, p) for p in "qkv"]),
            ("self_attention.linear_proj", "activation", cut(run[layer, "z"]), [(layer, "z")]),
            ("self_attention.linear_proj", "output", run[layer, "o"], [(layer, "o")]),
            ("mlp.linear_fc1", "activation", run[layer, "ln2"], [(layer, "ln2")]),
            ("mlp.linear_fc1", "output", both, [(layer, "gate"), (layer, "up")]),
            ("mlp.linear_fc2", "activation", cut(run[layer, "gated"]), [(layer, "gated")]),
            ("mlp.linear_fc2", "output", run[layer, "mlp"], [(layer, "mlp")])]


def engine_dump(dump, folder, in_folders=False):
    """TransformerEngine's DumpTensors; tensors are [S, B, H]."""
    names, iteration = {}, dump.rng.randrange(0, 500)
    rows = dump.passes[0]
    for rank in range(dump.ranks):
        for layer in range(dump.spec.layers):
            for module, what, tensor, steps in megatron_steps(dump, layer, rank):
                name = f"decoder_layers_{layer}_{module.replace('.', '_')}_{what}"
                names[name] = steps
                at = f"{folder}/tensor_dumps/rank_{rank}/"
                path = (f"{at}iter_{iteration:06d}/{name}.pt" if in_folders
                        else f"{at}{name}_iter_{iteration:06d}.pt")
                save(path, {"high_precision": tensor[rows][:, None]})
    return names


def engine_log(dump, folder):
    """TransformerEngine's LogTensorStats: statistics of tensors, a line each."""
    names, lines, rows = {}, ["INFO - Default logging to file enabled"], dump.passes[0]
    for layer in range(dump.spec.layers):
        for module, what, tensor, steps in megatron_steps(dump, layer, 0):
            name, tensor = f"decoder.layers.{layer}.{module}_{what}", tensor[rows].double()
            told = {"max": tensor.max(), "min": tensor.min(), "mean": tensor.mean(),
                    "std": tensor.std(), "l1_norm": tensor.abs().sum(), "l2_norm": tensor.norm()}
            lines += [f"INFO - {name}_{k}{' ' * 12}iteration=000002{' ' * 12}value={float(v)}"
                      for k, v in told.items()]
            names[f"{name}"] = steps
    at = f"{folder}/nvdlfw_inspect_statistics_logs"
    os.makedirs(at, exist_ok=True)
    with open(f"{at}/nvdlfw_inspect_globalrank-0.log", "w") as out:
        out.write("\n".join(lines) + "\n")
    return names


def megatron_ranks(dump, folder):
    """Hooks on modules of Megatron, a file for each rank."""
    names = {}
    rows = dump.passes[0]
    for rank in range(dump.ranks):
        run, content = dump.runs[rank], {}
        content["embedding.word_embeddings"] = run[None, "embed"][rows][:, None]
        names["embedding.word_embeddings"] = [(None, "embed")]
        for layer in range(dump.spec.layers):
            at = f"decoder.layers.{layer}"
            for module, what, tensor, steps in megatron_steps(dump, layer, rank):
                if what == "output":
                    # A linear of Megatron gives (output, bias or None).
                    content[f"{at}.{module}"] = (tensor[rows][:, None], None)
                    names[f"{at}.{module}"] = steps
            content[at] = run[layer, "out"][rows][:, None]
            names[at] = [(layer, "out")]
        content["decoder.final_layernorm"] = run[None, "norm"][rows][:, None]
        names["decoder.final_layernorm"] = [(None, "norm")]
        form = "mp_rank_{:02d}/activations.pt" if dump.pid % 2 else "rank_{}.pt"
        save(f"{folder}/{form.format(rank)}", content)
    return names


def nnsight(dump, folder):
    """What users save from a trace: module paths with .output or .input."""
    run, content, names = dump.runs[0], {}, {}

    def put(name, tensor, key):
        content[name] = batched(dump, tensor)
        names[name] = [key]

    put("model.embed_tokens.output", run[None, "embed"], (None, "embed"))
    for i in range(dump.spec.layers):
        put(f"model.layers.{i}.self_attn.output", run[i, "o"], (i, "o"))
        put(f"model.layers.{i}.mlp.output", run[i, "mlp"], (i, "mlp"))
        put(f"model.layers.{i}.output", run[i, "out"], (i, "out"))
    put("model.norm.output", run[None, "norm"], (None, "norm"))
    put("lm_head.output", run[None, "logits"], (None, "logits"))
    save(f"{folder}/trace.pt", content)
    return names


STAGES = {"post_ln_pre_attn": "ln1", "query": "q", "key": "k", "value": "v", "query_final": "qr",
          "key_final": "kr", "post_attn": "z", "post_attn_pre_resid": "o", "pre_mlp": "ln2",
          "post_mlp": "mlp"}


def stages(dump, folder):
    run, names = dump.runs[0], {}
    for i in range(dump.spec.layers):
        for name, step in STAGES.items():
            if (i, step) in run:
                save(f"{folder}/{i}_{name}.pth", batched(dump, run[i, step]))
                names[f"{i}_{name}"] = [(i, step)]
    return names


def eval_callback(dump, folder):
    """The text of llama.cpp's llama-eval-callback: a few values of each tensor, and its sum."""
    from dump_layouts import llama_cpp
    import tempfile
    lines = []
    with tempfile.TemporaryDirectory() as plain:
        names = llama_cpp(dump, plain)
        order = [n for n in names]
        for name in order:
            array = numpy.load(f"{plain}/{name}.npy")
            lines += printed(name, array)
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/eval.log", "w") as out:
        out.write("llama_model_loader: loaded meta data\n" + "\n".join(lines) + "\n")
    return names


def printed(name, array):
    ne = list(array.shape[::-1]) + [1] * (4 - array.ndim)
    head = ", ".join(map(str, ne))
    lines = [f"common_debug_cb_eval: {name:>24} = (f32) {'MUL_MAT':>10}(blk.0.weight{{{head}}}, "
             f"x{{{head}}}}}) = {{{head}}}"]
    full = array.reshape(ne[::-1])
    shown = lambda n: list(range(n)) if n <= 6 else [0, 1, 2, None, n - 3, n - 2, n - 1]
    for i3 in shown(ne[3]):
        lines.append(" " * 5 * 4 + "[")
        for i2 in shown(ne[2]):
            if i2 is None:
                lines.append(" " * 24 + "..., ")
                continue
            lines.append(" " * 24 + "[")
            for i1 in shown(ne[1]):
                if i1 is None:
                    lines.append(" " * 28 + "..., ")
                    continue
                row = []
                for i0 in shown(ne[0]):
                    row.append("..." if i0 is None else f"{full[i3, i2, i1, i0]:12.4f}")
                lines.append(" " * 28 + "[" + ", ".join(row) + "],")
            lines.append(" " * 24 + "],")
        lines.append(" " * 20 + "]")
        lines.append(" " * 20 + f"sum = {float(full.astype(numpy.float64).sum()):f}")
    return lines


def context_parallel(dump, folder, ranks=2):
    """sglang's dumper on processes that share the tokens in zigzag order."""
    from dump_layouts import MANUAL

    run, names, total = dump.runs[0], {}, len(dump.ids) // (2 * ranks) * 2 * ranks
    own_positions = dump.rng.random() < 0.5  # Else all of them, on each process.
    for rank in range(ranks):
        pieces = torch.arange(total).split(total // (2 * ranks))
        rows = torch.cat([pieces[i] for i in (rank, 2 * ranks - 1 - rank)])
        index = 0

        def put(name, thing, layer=None):
            nonlocal index
            index += 1
            tags = {
                "step": 0,
                "rank": rank,
                "dump_index": index,
                "name": name,
                "recompute_status": "disabled",
            }
            if layer is not None:
                tags["layer_id"] = layer
            meta = {
                **tags,
                "world_rank": rank,
                "world_size": ranks,
                "megatron_parallel_info": {
                    "tp_rank": 0,
                    "tp_size": 1,
                    "cp_rank": rank,
                    "cp_size": ranks,
                },
            }
            file = "___".join(f"{k}={v}" for k, v in tags.items())
            save(f"{folder}/dump_x/{file}.pt", {"value": thing, "meta": meta})

        known = rows if own_positions else torch.arange(total)
        put("input_ids", dump.ids[known])
        put("positions", dump.positions[known])
        put("embedding_output", run[None, "embed"][rows])
        names["embedding_output"] = [(None, "embed")]
        for layer in range(dump.spec.layers):
            for name, (step, _) in MANUAL.items():
                put(name, run[layer, step][rows], layer)
                names[f"layers.{layer}.{name}"] = [
                    (layer - 1, "out") if step == "in" else (layer, step)
                ]
    return names
