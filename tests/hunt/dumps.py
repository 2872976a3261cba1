"""Dumps as real stacks write them, with no mistake or one: quiet, located, named?

    python3 tests/hunt/dumps.py [--seed 0] [--cases 60] [--layout NAME,NAME] [--keep DIR] [--cross]
                                 [--wide] [-v]

Needs torch and transformers. A is a dump of forward hooks on a small model of Hugging Face, or a
dump in another layout; B is the same model computed by us (dump_runs.py), with no mistake or one,
in the layout of some stack. Where a mistake shows first is measured: it is the first step, of those
that both dumps hold, that it changes.
"""
import argparse
import collections
import dataclasses
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile

import torch

import dump_layouts
import dump_others
import dump_stacks
import dump_table
import dump_users
from dump_modules import hub_calls, steps_of
from dump_runs import build, compute, first_difference, random_spec, weights_of

PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")
LLAMAS = ["llama", "qwen2", "mistral"]
ALL = LLAMAS + ["mixtral", "gpt2", "neox", "gemma2"]

# name: (writer, options, families, what it can hold: ranks, passes, batches)
LAYOUTS = {
    "sglang-hook": (dump_layouts.forward_hook, {}, ALL, "ranks passes batch"),
    "vllm-hook": (dump_layouts.forward_hook, {"vllm": True}, ALL, "ranks passes batch dummy"),
    "vllm-padded": (dump_layouts.forward_hook, {"vllm": True, "padded": 5}, LLAMAS, "passes"),
    "dumper": (dump_layouts.dumper, {}, LLAMAS + ["mixtral", "gemma2"], "ranks passes batch"),
    "dumper-manual": (dump_layouts.dumper, {"manual": True}, LLAMAS, "ranks passes batch"),
    "engine-hooks": (dump_layouts.plain_hooks, {}, ALL, "batch"),
    "engine-leaves": (dump_layouts.plain_hooks, {"leaves": True}, ALL, "batch"),
    "debug-hook": (dump_layouts.debug_hook, {}, LLAMAS, "ranks passes batch"),
    "msprobe": (dump_layouts.msprobe, {}, ALL, "passes"),
    "msprobe-engine": (dump_layouts.msprobe, {"engine": True}, LLAMAS + ["gpt2"], ""),
    "msprobe-statistics": (dump_layouts.msprobe, {"statistics": True}, ALL, ""),
    "llama-cpp": (dump_layouts.llama_cpp, {}, LLAMAS + ["mixtral"], ""),
    "eval-callback": (dump_others.eval_callback, {}, LLAMAS, ""),
    "lens": (dump_layouts.lens, {}, LLAMAS + ["gpt2", "neox"], ""),
    "hidden-tuple": (dump_others.hidden_states, {}, ALL, ""),
    "hidden-stacked": (dump_others.hidden_states, {"stacked": True}, ALL, ""),
    "hidden-listed": (dump_others.hidden_states, {"listed": True}, ALL, ""),
    "connector": (dump_others.connector, {}, LLAMAS, ""),
    "onnx-npz": (dump_others.onnx_npz, {}, LLAMAS, ""),
    "onnx-nodes": (dump_others.onnx_nodes, {}, LLAMAS, ""),
    "polygraphy": (dump_others.polygraphy, {}, LLAMAS, ""),
    "flax-pickle": (dump_others.flax, {}, LLAMAS, ""),
    "flax-npz": (dump_others.flax, {"form": "npz"}, LLAMAS, ""),
    "flax-npz0": (dump_others.flax, {"form": "npz/0"}, LLAMAS, ""),
    "te": (dump_others.engine_dump, {}, LLAMAS, "ranks"),
    "te-folders": (dump_others.engine_dump, {"in_folders": True}, LLAMAS, "ranks"),
    "te-log": (dump_others.engine_log, {}, LLAMAS, "both"),
    "context-parallel": (dump_others.context_parallel, {}, LLAMAS, ""),
    "megatron": (dump_others.megatron_ranks, {}, LLAMAS, "ranks"),
    "nnsight": (dump_others.nnsight, {}, LLAMAS, ""),
    "stages": (dump_others.stages, {}, LLAMAS, ""),
    "step-files": (dump_users.step_files, {}, ALL, "passes"),
    "step-files-ids": (dump_users.step_files, {"ids": True}, ALL, "passes"),
    "step-list": (dump_users.step_files, {"listed": True}, ALL, "passes"),
    "generated": (dump_users.generated_states, {}, ALL, "passes"),
    "npz": (dump_users.containers, {}, ALL, ""),
    "safetensors-bf16": (dump_users.containers, {"form": "safetensors", "dtype": torch.bfloat16},
                         ALL, ""),
    "pt-f16": (dump_users.containers, {"form": "pt", "dtype": torch.float16}, ALL, ""),
    "pickle-turned": (dump_users.containers, {"form": "pickle", "batch_second": True}, ALL, ""),
    "npy-files": (dump_users.containers, {"form": "npy"}, ALL, ""),
    "lists": (dump_users.lists, {}, LLAMAS, ""),
    "stacks": (dump_users.lists, {"stacked": True}, LLAMAS, ""),
    "by-number": (dump_users.by_number, {}, ALL, ""),
    "user-files": (dump_users.user_files, {}, LLAMAS, ""),
    "tllm-debug": (dump_users.tllm_debug, {}, LLAMAS, "passes batch"),
    "dumper-outside": (dump_users.dumper_outside, {}, ALL, "passes"),
    "pipeline-hook": (dump_users.pipeline_hook, {}, LLAMAS, "passes batch"),
    "packed-list": (dump_users.packed_dict, {}, LLAMAS, "passes batch"),
    "expert-parallel": (dump_stacks.expert_parallel, {}, ["mixtral"], ""),
    "context-parallel-4": (dump_others.context_parallel, {"ranks": 4}, LLAMAS, ""),
    "vllm-graphs": (dump_layouts.forward_hook, {"vllm": True, "padded": "graph"}, ALL,
                    "passes batch"),
    "msprobe-steps": (dump_stacks.msprobe_steps, {}, ALL, "passes"),
    "appended": (dump_stacks.appended, {}, ALL, "passes"),
    "both-ends": (dump_stacks.both_ends, {}, ALL, ""),
    "layer-files": (dump_stacks.layer_files, {}, ALL, ""),
    "padded-right": (dump_stacks.padded_batch, {}, LLAMAS, "batch"),
    "padded-left": (dump_stacks.padded_batch, {"left": True}, LLAMAS, "batch"),
    "own-files": (dump_stacks.metadata_json, {}, LLAMAS, ""),
    **dump_table.MORE,
}

ATTENTION = ["attention_scale", "attention_mask", "region", "operator", "token_shift"]
MISTAKES = {  # kind: (parameters, codes that name it)
    "scale": (lambda s, r: {"factor": r.choice([s.size ** 0.5, s.size ** -0.5, 2, 0.125])},
              ["attention_scale", "operator"]),
    "bias": (lambda s, r: {"part": r.choice("qkv")}, ["offset", "operator"]),
    "add": (lambda s, r: {"part": r.choice("qkv"), "by": torch.randn(s.hidden) * 0.5}, ["offset",
            "operator"]),
    "theta": (lambda s, r: {"theta": r.choice([1e6, 5000.0, 100.0])}, ["rope_frequency",
            "operator"]),
    "shift": (lambda s, r: {"by_positions": r.choice([1, 2])}, ["rope_position", "operator"]),
    "eps": (lambda s, r: {"eps": r.choice([0.1, 0.03])}, ["norm_epsilon", "operator", "scale"]),
    "activation": (lambda s, r: {"to": r.choice(["relu",
            "quick_gelu" if s.activation != "silu" else "gelu"])},
                   ["activation", "operator", "mlp"]),
    "residual": (lambda s, r: {}, ["residual_missing", "operator",
            "other_tensor"]),
    "unweighted": (lambda s, r: {}, ["norm_weight", "operator", "scale"]),
    "constant": (lambda s, r: {"factor": r.choice([0.5, 2.0, 0.9, 1.1])}, ["scale", "operator"]),
    "window": (lambda s, r: {"size": r.choice([4, 6])}, ["attention_mask", "region", "operator"]),
    "heads": (lambda s, r: {}, ["head_mapping", "operator", "block_permutation",
            "axis_permutation"]),
    "experts": (lambda s, r: {"experts": r.sample(range(s.experts), 2)}, ["operator", "region",
            "experts_exchanged"]),
    "unnormalised": (lambda s, r: {}, ["operator", "scale", "region", "routing"]),
    "chunk_mask": (lambda s, r: {"pass": 1}, ["attention_mask", "region", "operator"]),
    "lost": (lambda s, r: {"pass": 1}, ["attention_mask", "region", "operator"]),
    "stale": (lambda s, r: {"pass": 1, "slot": 2}, ["attention_mask", "region", "operator",
            "token_shift"]),
    "leak": (lambda s, r: {}, ["attention_mask", "region", "operator"]),
    "reduce": (lambda s, r: {}, ["reduction", "operator"]),
}


def possible(spec, can, passes, lengths, ranks):
    kinds = ["scale", "eps", "residual", "unweighted", "constant", "window", "activation"]
    if spec.arch in ("qwen2", "gpt2", "neox"):
        kinds.append("bias")
    else:
        kinds.append("add")
    if not spec.learned:
        kinds += ["theta", "shift"]
    if spec.kv > 1:
        kinds.append("heads")
    if spec.parallel:
        kinds.remove("residual")
    if spec.experts:
        kinds = [k for k in kinds if k != "activation"] + ["experts", "experts", "unnormalised"]
    if len(passes) > 1:
        kinds += ["lost", "stale"] * 2
        kinds += ["chunk_mask"] * 2 if len(passes[1]) > 1 else []
    if len(lengths) > 1:
        kinds += ["leak"] * 3
    if ranks > 1:
        kinds += ["reduce"] * 3
    return kinds


def continuous(lengths, rng):
    """Continuous batching: prompts in chunks, beside single tokens of sequences that decode."""
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    prompts = [n - rng.randrange(1, 5) for n in lengths]
    done, passes = [0] * len(lengths), []
    while any(d < n for d, n in zip(done, lengths)):
        budget, rows = rng.randrange(7, 13), []
        for i, n in enumerate(lengths):
            count = min(budget, prompts[i] - done[i]) if done[i] < prompts[i] else done[i] < n
            rows += range(starts[i] + done[i], starts[i] + done[i] + count)
            done[i], budget = done[i] + count, budget - count
        passes.append(torch.tensor(rows))
    return passes


def passes_of(lengths, can, rng, wide=False):
    total = sum(lengths)
    rows = torch.arange(total)
    if wide and "passes" in can and rng.random() < 0.6:
        return continuous(lengths, rng)
    if "passes" not in can or rng.random() < 0.5 or len(lengths) > 1:
        return [rows]
    if rng.random() < 0.5:  # A prompt in chunks.
        cut = rng.randrange(6, total - 6)
        return [rows[:cut], rows[cut:]]
    cut = total - rng.randrange(2, 5)
    return [rows[:cut]] + [rows[i:i + 1] for i in range(cut, total)]


def hub_dump(model, ids, lengths, rng, path):
    """Forward hooks on all modules of the real model, and which steps they hold."""
    found = {}

    def hook(name):
        def keep(module, args, output):
            if isinstance(output, tuple):
                output = tuple(t for t in output if torch.is_tensor(t))
                output = output[0] if len(output) == 1 else output
            found[name] = output if torch.is_tensor(output) or isinstance(output, tuple) else None
        return keep

    handles = [m.register_forward_hook(hook(n)) for n, m in model.named_modules() if n]
    with torch.no_grad():
        if len(lengths) == 1:
            model(input_ids=ids[None], use_cache=False)
        else:
            longest, left = max(lengths), rng.random() < 0.5
            batch, mask = [], []
            for part in torch.split(ids, lengths):
                pad = torch.zeros(longest - len(part), dtype=part.dtype)
                batch.append(torch.cat([pad, part] if left else [part, pad]))
                mask.append(torch.cat([torch.zeros_like(pad), torch.ones_like(part)] if left
                                      else [torch.ones_like(part), torch.zeros_like(pad)]))
            mask = torch.stack(mask)
            positions = (mask.cumsum(-1) - 1).clamp(min=0)
            model(input_ids=torch.stack(batch), attention_mask=mask, position_ids=positions,
                  use_cache=False)
    for handle in handles:
        handle.remove()
    torch.save({k: v for k, v in found.items() if v is not None and ".experts." not in k
                or k.count(".experts.") and v is not None}, path)


class Case:
    def __init__(self, seed, layout, against=None, wide=False):
        self.rng = rng = random.Random(f"{seed} {layout}")
        self.layout, self.against = layout, against
        writer, options, families, can = LAYOUTS[layout]
        if against:
            families = [f for f in families if f in LAYOUTS[against][2]] or LLAMAS
        self.spec = spec = random_spec(rng.choice(families), rng)
        if wide:  # Other sizes than all others have.
            more = {"layers": rng.choice([2, 5, 6]), "inner": rng.choice([64, 136, 200])}
            if spec.experts:
                more.update(experts=8, chosen=rng.choice([2, 3]))
            self.spec = spec = dataclasses.replace(spec, **more)
        self.seed = seed
        model = build(spec, rng.randrange(1 << 30))
        torch.manual_seed(rng.randrange(1 << 30))
        lengths = [rng.randrange(18, 28)]
        if "batch" in can and rng.random() < (0.6 if wide else 0.3) and not spec.learned:
            lengths.append(rng.randrange(9, 17))
            if wide and rng.random() < 0.5:
                lengths.append(rng.randrange(5, 30))
        self.ids = ids = torch.randint(3, 96, (sum(lengths),))
        passes = passes_of(lengths, can, rng, wide)
        of = torch.zeros(len(ids), dtype=torch.int64)
        for i, rows in enumerate(passes):
            of[rows] = i
        ranks = 2 if "ranks" in can and rng.random() < 0.3 and spec.heads % 2 == 0 else 1
        if wide and ranks == 2 and spec.inner % 4 == 0:
            ranks = 4
        self.bug, self.codes = None, []
        if rng.random() < 0.65:
            kind = rng.choice(possible(spec, can, passes, lengths, ranks))
            make, self.codes = MISTAKES[kind]
            if kind == "constant" and ranks == 2:
                self.codes = self.codes + ["reduction"]
            self.bug = {"kind": kind, "layer": rng.randrange(spec.layers), **make(spec, rng)}
        weights = weights_of(model, spec)
        clean = compute(spec, weights, ids, lengths, None, of)
        runs = [compute(spec, weights, ids, lengths, self.bug, of, rank, ranks)
                for rank in range(ranks)]
        dummy = None
        if "dummy" in can and rng.random() < 0.5:
            dummy = (compute(spec, weights, torch.zeros(8, dtype=torch.int64), [8]), 8)
        self.dump = dump_layouts.Dumping(spec, runs, ids, lengths, passes, rng, dummy)
        self.plain = dump_layouts.Dumping(spec, [clean], ids, lengths, [torch.arange(len(ids))],
                rng)
        self.model, self.clean, self.lengths = model, clean, lengths
        # Same layout on both sides, now and then: another pid, another number of ranks.
        self.both = rng.random() < 0.15 or "both" in can
        self.wrong = runs[0]

    def write(self, folder):
        writer, options, _, _ = LAYOUTS[self.layout]
        names_b = writer(self.dump, f"{folder}/b", **options)
        if self.against or self.both:
            writer, options, _, _ = LAYOUTS[self.against or self.layout]
            options = {k: v for k, v in options.items() if k != "padded"}
            names_a = writer(self.plain, f"{folder}/a", **options)
            a = f"{folder}/a"
        else:
            a = f"{folder}/a.pt"
            hub_dump(self.model, self.ids, self.lengths, self.rng, a)
            names_a = steps_of(hub_calls(self.spec))
        b = f"{folder}/b"
        files = [f"{b}/{f}" for f in os.listdir(b)]
        if len(files) == 1 and os.path.isfile(files[0]):
            b = files[0]
        files = [f"{a}/{f}" for f in os.listdir(a)] if os.path.isdir(a) else []
        if len(files) == 1 and os.path.isfile(files[0]):
            a = files[0]
        held = lambda names: {key for keys in names.values() for key in keys}
        self.shown = held(names_a) & held(names_b)
        self.names_a, self.names_b = names_a, names_b
        self.first = first_difference(self.clean, self.wrong, self.shown) if self.bug else None
        return a, b

    def expected(self):
        """Names, of either side, of the step that differs first."""
        layer, step = self.first
        group = {"q": "qkv", "k": "qkv", "v": "qkv", "qr": ("qr", "kr"), "kr": ("qr", "kr"),
                 "gate": ("gate", "up"), "up": ("gate", "up")}.get(step, (step,))
        wanted = {(layer, s) for s in group}
        found = [n for names in (self.names_a, self.names_b) for n, keys in names.items()
                 if wanted & set(keys)]
        return found + [n[:-2] for n in found if n.endswith(".0")]


def compare(a, b):
    done = subprocess.run([PROGRAM, a, b, "-o", "report"], capture_output=True, text=True,
            timeout=300)
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError:
        return done.returncode, {"error": done.stderr[-300:]}


def judge(case, code, report):
    """(verdict right, located, named, words)"""
    first = report.get("first_divergence")
    codes = [f["code"] for f in report.get("findings", [])
             if first and f.get("pair") == first.get("pair")]
    where = first and f"{first.get('name_a')} | {first.get('name_b')}"
    pairs = report.get("summary", {}).get("pairs")
    if not case.bug or not case.first:
        words = f"rc {code} pairs {pairs} at {where} {codes} {report.get('error', '')}"
        return code == 0, True, True, words
    names = case.expected()
    ends = lambda name: any(name == n or name.endswith("." + n) or name.endswith("/" + n)
                            or n.endswith(name) and name.count(".") > 1 for n in names)
    located = code == 1 and bool(first) and any(
        ends(first.get(side) or "") for side in ("name_a", "name_b"))
    named = located and any(c in case.codes for c in codes)
    what = {k: v for k, v in case.bug.items() if k != "by"}
    return True, located, named, (f"rc {code} pairs {pairs} at {where} {codes} want {case.first} "
                                  f"{what} {report.get('error', '')}")


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--cases", type=int, default=len(LAYOUTS))
    options.add_argument("--layout")
    options.add_argument("--keep")
    options.add_argument("--cross", action="store_true", help="A in another layout, not hooks")
    options.add_argument("--wide", action="store_true",
                         help="other sizes, more ranks and experts, continuous batching")
    options.add_argument("-v", action="store_true")
    options = options.parse_args()
    torch.set_num_threads(1)
    table = collections.defaultdict(collections.Counter)
    layouts = options.layout.split(",") if options.layout else list(LAYOUTS)
    for number in range(options.cases):
        layout = layouts[number % len(layouts)]
        seed = options.seed * 1000 + number // len(layouts)
        against = None
        if options.cross:  # Statistics have nothing to say of a few tensors in other layouts.
            families = set(LAYOUTS[layout][2])
            others = [k for k in LAYOUTS if k not in (layout, "te-log", "msprobe-L1")
                      and families & set(LAYOUTS[k][2])]
            against = random.Random(f"{seed} {layout} against").choice(others)
        case = Case(seed, layout, against, options.wide)
        folder = tempfile.mkdtemp(prefix="dumps-")
        a, b = case.write(folder)
        is_bug = bool(case.bug and case.first)
        # Nothing in common, or a mistake that changes next to nothing: no telling.
        if not case.shown or case.bug and not is_bug:
            shutil.rmtree(folder)
            continue
        quiet, located, named, words = judge(case, *compare(a, b))
        row = table[layout]
        row["bugs" if is_bug else "clean"] += 1
        row["quiet"] += quiet and not is_bug
        row["located"] += located and is_bug
        row["named"] += named and is_bug
        if options.v or not (quiet and located and named):
            print(f"{layout} {against or ''} seed {seed} {case.spec.arch} L{case.spec.layers} "
                  f"ranks {case.dump.ranks} "
                  f"passes {len(case.dump.passes)} sequences {len(case.lengths)} both {case.both} "
                  f"{'ok' if quiet and located and named else 'WRONG'} {words}", flush=True)
        if options.keep and not (quiet and located and named):
            shutil.rmtree(f"{options.keep}/{layout}-{seed}", ignore_errors=True)
            shutil.move(folder, f"{options.keep}/{layout}-{seed}")
        else:
            shutil.rmtree(folder)
    total = collections.Counter()
    for layout, row in table.items():
        total.update(row)
        print(f"{layout:16} clean {row['quiet']}/{row['clean']} "
              f"located {row['located']}/{row['bugs']} "
              f"named {row['named']}/{row['bugs']}")
    print(f"all: clean without alarm {total['quiet']}/{total['clean']}, located "
          f"{total['located']}/{total['bugs']}, named {total['named']}/{total['bugs']}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
