#!/usr/bin/env python3
"""What tensordiff.capture() costs: CPU time over a plain forward, and peak memory.

    ./dev bench capture [ARCHITECTURE ...]

Exit status 1 if a bar is missed. Needs torch and transformers. CPU time of one thread, the least of
9, hidden size 512, 8 layers, 256 tokens; files go to a temporary folder. Memory is the peak of a
process of its own, with glibc's threshold for mmap fixed: otherwise it is what malloc does not give
back that is measured.
"""

import contextlib
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time

MODES = {
    "hooks": {"ops": "none", "include": "nothing"},
    "functions": {"include": "nothing"},
    "stats": {"mode": "stats"},
    "sample": {"mode": "sample"},
    "full": {},
    "full, all functions": {"values": "all"},
}

# What a mode may cost at most, times a plain forward, on an idle machine.
BARS = {"hooks": 1.15, "functions": 1.3, "full": 2.0}
MEMORY_BAR = 1.05
ROUNDS = 9


def build(name):
    """A model and its inputs."""
    import torch
    import transformers
    transformers.logging.set_verbosity_error()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    wide = {"hidden_size": 512, "intermediate_size": 1024, "num_hidden_layers": 8,
            "num_attention_heads": 8, "vocab_size": 1000}
    tokens = {"input_ids": torch.randint(0, 1000, (1, 256))}
    made = {
        "llama": lambda: (transformers.LlamaForCausalLM(transformers.LlamaConfig(**wide)), tokens),
        "gpt2": lambda: (transformers.GPT2LMHeadModel(transformers.GPT2Config(
            n_embd=512, n_layer=8, n_head=8, vocab_size=1000)), tokens),
        "bert": lambda: (transformers.BertModel(transformers.BertConfig(**wide)), tokens),
        "mixtral": lambda: (transformers.MixtralForCausalLM(transformers.MixtralConfig(
            **wide, num_local_experts=4)), tokens),
        "vit": lambda: (transformers.ViTModel(transformers.ViTConfig(
            **{k: v for k, v in wide.items() if k != "vocab_size"})),
            {"pixel_values": torch.randn(1, 3, 224, 224)}),
    }
    model, inputs = made[name]()
    return model.eval(), inputs


def seconds(model, inputs, options):
    import torch

    import tensordiff
    folder = tempfile.mkdtemp()
    context = contextlib.nullcontext() if options is None \
        else tensordiff.capture(model, folder, **options)
    with torch.no_grad(), context:
        begin = time.process_time()
        model(**inputs)
        took = time.process_time() - begin
    shutil.rmtree(folder)
    return took


def costs(model, inputs):
    """The least of several runs of each mode, taken in turn: what else the machine does changes."""
    modes = {"plain": None, **MODES}
    best = dict.fromkeys(modes, float("inf"))
    for _ in range(ROUNDS):
        for mode, options in modes.items():
            best[mode] = min(best[mode], seconds(model, inputs, options))
    return best


def peak(captured):
    """Megabytes at the peak of a forward of GPT-2 with a batch of 32; run in its own process."""
    import torch

    import tensordiff
    model, inputs = build("gpt2")
    inputs = {"input_ids": inputs["input_ids"].expand(32, -1)}
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        with tensordiff.capture(model, folder) if captured else contextlib.nullcontext() as run:
            model(**inputs)
        print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
                          "written": run.bytes_written / 1e6 if captured else 0}))


def peaks():
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "1048576"}
    return {mode: json.loads(subprocess.run(
        [sys.executable, __file__, "--peak", mode], env=environment, check=True,
        capture_output=True, text=True).stdout) for mode in ("plain", "full")}


def main():
    if sys.argv[1:2] == ["--peak"]:
        return peak(sys.argv[2] == "full")
    missed = []
    for name in sys.argv[1:] or ["llama", "gpt2", "bert", "mixtral", "vit"]:
        model, inputs = build(name)
        least = costs(model, inputs)
        plain = least.pop("plain")
        ratios = {mode: took / plain for mode, took in least.items()}
        print(f"{name}: plain {plain * 1e3:.0f} ms; "
              + ", ".join(f"{mode} {ratio:.2f}" for mode, ratio in ratios.items()), flush=True)
        missed += [f"{name}, {mode}: {ratios[mode]:.2f}, bar {bar}" for mode, bar in BARS.items()
                   if ratios[mode] > bar]
    runs = peaks()
    plain, full = runs["plain"]["peak"], runs["full"]["peak"]
    print(f"peak memory: plain {plain:.0f} MB, full {full:.0f} MB, "
          f"{runs['full']['written']:.0f} MB written")
    if full > MEMORY_BAR * plain:
        missed.append(f"memory: {full / plain:.2f}, bar {MEMORY_BAR}")
    for line in missed:
        print(f"missed: {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
