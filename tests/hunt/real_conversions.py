#!/usr/bin/env python3
"""Models of many architectures, converted as programs do, whole or with one mistake.

A clean case is right where every tensor of B is paired with what it was made of and nothing is
different; one with a mistake where just the tensors of B that hold it are different, and a finding
names it. $TENSORDIFF says where the program is.

    real_conversions.py [--seed N] [--rounds N] [--only WORD] [--keep FOLDER] [-v]
"""

import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

import conversion_kit as kit
import conversion_language as language
import conversion_later as late
import conversion_models as models
import conversion_mistakes as mistakes
import conversion_scripts as scripts
import conversion_vision as vision

PROGRAM = os.path.abspath(os.environ.get("TENSORDIFF", "build/release/tensordiff"))


def qwen2(s):
    models.llama(s, qkv_bias=True)


def mixtral(s):
    models.llama(s, experts=4)


# Architecture, converter, format of B.
CONVERSIONS = [
    (models.llama, scripts.llama_gguf, "gguf:llama"),
    (mixtral, scripts.llama_gguf, "gguf:llama"),
    (qwen2, scripts.qwen2_gguf, "gguf:qwen2"),
    (models.gemma2, scripts.gemma2_gguf, "gguf:gemma2"),
    (models.phi3, scripts.phi3_gguf, "gguf:phi3"),
    (models.phi3, scripts.phi3_llama, ""),
    (models.llama, scripts.llama_meta, ""),
    (qwen2, scripts.llama_megatron, ""),
    (models.llama, scripts.llama_megatron, ""),
    (models.llama, scripts.llama_trtllm, ""),
    (models.llama, scripts.llama_maxtext, ""),
    (models.llama, scripts.llama_keras, ""),
    (models.gemma2, scripts.gemma_flax, "npz"),
    (models.falcon, language.falcon_gguf, "gguf:falcon"),
    (models.bloom, language.bloom_megatron, ""),
    (models.opt, language.opt_flax, "msgpack"),
    (models.gptj, language.gptj_gguf, "gguf:gptj"),
    (models.gptj, language.gptj_mesh, "npz"),
    (models.deepseek, language.deepseek_gguf, "gguf:deepseek2"),
    (models.t5, language.t5_t5x, "msgpack"),
    (models.t5, language.t5_optimizer, "msgpack"),
    (models.bart, language.bart_fairseq, ""),
    (models.bart, vision.plain_flax, "msgpack"),
    (models.mamba, language.mamba_original, ""),
    (models.mamba, language.mamba_gguf, "gguf:mamba"),
    (models.vit, vision.vit_bigvision, "npz"),
    (models.vit, vision.patches("cpp"), ""),
    (models.vit, vision.patches("ppc"), ""),
    (models.vit, vision.patches("pcp"), ""),
    (models.vit, vision.patches_first, ""),
    (models.vit, vision.vit_mlx, ""),
    (models.vit, vision.vit_from_one, ""),
    (models.clip, vision.clip_openai, ""),
    (models.clip, vision.plain_flax, "msgpack"),
    (models.convnext, vision.convnext_facebook, ""),
    (models.convnext, vision.convnext_flat, ""),
    (models.swin, vision.swin_flat, ""),
    (models.resnet, vision.resnet_huggingface, ""),
    (models.resnet, vision.resnet_keras, ""),
    (models.resnet, vision.resnet_detectron, ""),
    (models.wav2vec2, vision.wav2vec2_fairseq, ""),
    (models.wav2vec2, vision.wav2vec2_merged, ""),
]


def write(folder, form, a, b):
    kit.write_safetensors(folder / "a.safetensors", a)
    form, _, argument = form.partition(":")
    values = {name: made.value for name, made in b.items()}
    path = folder / f"b.{form or 'safetensors'}"
    if form == "gguf":
        kit.write_gguf(path, values, argument)
    elif form == "msgpack":
        kit.write_msgpack(path, values)
    elif form == "npz":
        kit.write_npz(path, values)
    else:
        kit.write_safetensors(path, values)
    return path


def plain(name):
    return name.split("[")[0].replace("/", ".").removeprefix("params.").strip(".")


def faults_of(report, b, guilty, codes):
    """What is wrong with a report, as sentences; the worst first."""
    bad, right, faults = set(), set(), []
    partner = {plain(name): {plain(each) for each in made.sources} for name, made in b.items()}
    # Readers drop folders that all names share.
    shorter = {
        name[at + 1 :]: name
        for name in partner
        for at in range(len(name))
        if name[at] == "." and sum(other.endswith(name[at:]) for other in partner) == 1
    }
    for row in report["pairs"]:
        name = plain(row["name_b"])
        name = name if name in partner else shorter.get(name, name)
        if row["status"] not in ("identical", "equal", "close"):
            bad.add(name)
        if plain(row["name_a"]) in partner.get(name, ()):
            right.add(name)
        elif name in partner:
            faults.append(f"wrong pair: {row['name_a']} with {name} ({row['matched_by']})")
    guilty = {plain(name) for name in guilty}
    merged = report["only_a"] + report["only_b"]
    faults = [f"hidden: {name}" for name in sorted(guilty - bad)] + faults
    faults += [f"falsely different: {name}" for name in sorted(bad - guilty)]
    # One value all over, or counters: nothing that has to be paired.
    faults += [
        f"missing: {name}"
        for name in sorted(set(partner) - right)
        if not name.endswith("num_batches_tracked")
    ]
    verdict = report["summary"]["verdict"]
    if (verdict in ("same", "close")) == bool(guilty):
        left = [row["name"] for row in merged if not row.get("auxiliary")]
        faults.append(f"verdict {verdict}, unpaired {left[:4]}")
    told = {finding["code"] for finding in report["findings"]}
    if guilty and codes and not told & codes:
        faults.append(f"finding: {sorted(told)} and not {sorted(codes)}")
    return faults


def run(folder, a, b):
    done = subprocess.run(
        [PROGRAM, str(a), str(b), "-o", "report"], cwd=folder, capture_output=True, timeout=600
    )
    return json.loads(done.stdout)


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rounds", type=int, default=3, help="cases for each converter")
    options.add_argument("--only", default="", help="cases with this in their line")
    options.add_argument("--set", default="first", help="first or late: other architectures")
    options.add_argument("--keep", help="keep the files of wrong cases here")
    options.add_argument("-v", action="store_true")
    options = options.parse_args()
    count = collections.Counter()
    with tempfile.TemporaryDirectory() as temporary:
        sets = {"first": CONVERSIONS, "late": late.CONVERSIONS}
        for index, (architecture, script, form) in enumerate(sets[options.set]):
            for turn in range(options.rounds):
                rng = np.random.default_rng([options.seed, index, turn])
                name = f"{architecture.__name__} {script.__name__} {options.seed}.{index}.{turn}"
                source = models.Source(rng)
                architecture(source)
                clean = kit.Kit(source.tensors)
                script(clean, source)
                # The first of each is clean, the others have one mistake.
                kind = mistakes.choose(rng, clean) if turn else ""
                if options.only not in f"{name} {kind}":
                    continue
                b, guilty, codes = mistakes.plant(rng, kind, clean, source, script)
                if form != "msgpack" and rng.random() < 0.3:
                    b = kit.in_half(b)
                folder = pathlib.Path(temporary)
                if options.keep:
                    folder = pathlib.Path(options.keep) / name.replace(" ", "_")
                    folder.mkdir(parents=True, exist_ok=True)
                path = write(folder, form, source.tensors, b)
                faults = faults_of(run(folder, folder / "a.safetensors", path), b, guilty, codes)
                count[kind or "clean"] += 1
                count["right " + (kind or "clean")] += not faults
                count["hidden"] += any(fault.startswith("hidden") for fault in faults)
                count["false"] += any(fault.startswith("falsely") for fault in faults)
                count["all"] += 1
                count["right"] += not faults
                if faults or options.v:
                    print(
                        f"{'wrong' if faults else 'right'} {name}: {kind or 'clean'} "
                        f"{sorted(guilty)[:2]}"
                    )
                    for fault in faults[:4]:
                        print("     ", fault)
                    if len(faults) > 4:
                        print(f"      … {len(faults)} in all")
    for kind in sorted(
        each for each in count if "right" not in each and each not in ("all", "hidden", "false")
    ):
        print(f"{kind:12} {count['right ' + kind]:3} of {count[kind]}")
    print(
        f"{count['right']} of {count['all']} right, mistakes hidden in {count['hidden']}, "
        f"falsely different in {count['false']} (seed {options.seed})"
    )
    return 0 if count["right"] == count["all"] else 1


if __name__ == "__main__":
    sys.exit(main())
