"""The command that people type: what the default costs, many small files, and the start.

CPU time (user and system) stands beside wall time, since it does not depend on what else runs.
"""
import json
import os
import shutil
import struct
import subprocess
import sys
import time
import zlib

import numpy as np

import data

HERE = os.path.dirname(os.path.abspath(__file__))
LAYERS, WIDTH, INNER = 12, 1024, 4096
STAGES = ["query", "key", "value", "post_attn", "pre_mlp", "post_mlp", "post_ln_pre_attn",
          "scaling", "sliding", "query_final"]


def weights():
    """Twelve weights for each of twelve layers, 744 MiB in float32."""
    square, tall, wide = (WIDTH, WIDTH), (INNER, WIDTH), (WIDTH, INNER)
    parts = [("input_layernorm.weight", (WIDTH,)), ("input_layernorm.bias", (WIDTH,)),
             ("post_attention_layernorm.weight", (WIDTH,)),
             ("post_attention_layernorm.bias", (WIDTH,)), ("self_attn.q_norm.weight", (64,)),
             ("mlp.gate_proj.weight", tall), ("mlp.up_proj.weight", tall),
             ("mlp.down_proj.weight", wide)]
    parts += [(f"self_attn.{part}_proj.weight", square) for part in "qkvo"]
    return [(f"model.layers.{layer}.{name}", shape)
            for layer in range(LAYERS) for name, shape in parts]


def checkpoint(path, trained=0.0):
    """Random weights; with `trained`, moved by as much, as fine-tuning moves them."""
    header, end = {}, 0
    for name, shape in weights():
        size = 4 * int(np.prod(shape))
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header)
    text += " " * (-len(text) % 8)
    random, other = np.random.default_rng(1), np.random.default_rng(2)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text.encode())
        for _, shape in weights():
            values = 0.02 * random.standard_normal(int(np.prod(shape)), dtype=np.float32)
            if trained:
                values += trained * other.standard_normal(values.size, dtype=np.float32)
            file.write(values.tobytes())


def pickled(shape):
    """data.pkl of torch.save for one contiguous float32 tensor, in protocol 2."""
    def number(value):
        return (b"K" + bytes([value]) if value < 256 else b"M" + struct.pack("<H", value))

    def text(value):
        return b"X" + struct.pack("<I", len(value)) + value

    strides = [int(np.prod(shape[axis + 1:])) for axis in range(len(shape))]
    storage = (b"((" + text(b"storage") + b"ctorch\nFloatStorage\n" + text(b"0") + text(b"cpu")
               + number(int(np.prod(shape))) + b"tQ")
    return (b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n" + storage + b"K\x00("
            + b"".join(map(number, shape)) + b"t(" + b"".join(map(number, strides))
            + b"t\x89ccollections\nOrderedDict\n)RtR.")


def torch_file(path, values):
    """What torch.save writes of one tensor: a zip whose members are stored."""
    root = os.path.basename(path).removesuffix(".pt")
    body, directory = b"", b""
    members = [("data.pkl", pickled(values.shape)), ("byteorder", b"little"),
               ("data/0", values.tobytes()), ("version", b"3\n")]
    for member, content in members:
        name = f"{root}/{member}".encode()
        sizes = struct.pack("<IIIHH", zlib.crc32(content), len(content), len(content), len(name), 0)
        directory += (struct.pack("<IHHHHHH", 0x02014B50, 0, 0, 0, 0, 0, 0) + sizes
                      + struct.pack("<HHHII", 0, 0, 0, 0, len(body)) + name)
        body += struct.pack("<IHHHHH", 0x04034B50, 0, 0, 0, 0, 0) + sizes + name + content
    end = struct.pack("<IHHHHIIH", 0x06054B50, 0, 0, len(members), len(members), len(directory),
                      len(body), 0)
    with open(path, "wb") as file:
        file.write(body + directory + end)


def dump(path, ranks, files=800):
    """A folder of small .pt files for each rank, or of one where there is one."""
    for rank in range(ranks):
        folder = f"{path}/rank_{rank}" if ranks > 1 else path
        os.makedirs(folder)
        for i in range(files):
            values = np.random.default_rng(i).standard_normal((16, 64), dtype=np.float32)
            if ranks > 1:
                values *= 1 + np.float32(1e-7) * (rank % 3)
            torch_file(f"{folder}/{i // 10}_{STAGES[i % 10]}.pt", values)


def cost(command):
    """Seconds of the CPU and of the clock."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, time.perf_counter() - start


def least(repeat, command):
    costs = [cost(command) for _ in range(repeat)]
    return min(cpu for cpu, _ in costs), min(clock for _, clock in costs)


def the_default(bench):
    a = bench.file("tuned-a.safetensors", checkpoint)
    b = bench.file("tuned-b.safetensors", checkpoint, 2e-4)
    repeat = bench.options.repeat
    plain = least(repeat, [bench.program, a, b, "--no-diagnose"])
    ours = least(repeat, [bench.program, a, b])
    bench.row("default: 144 tensors that differ / --no-diagnose", ours[1] / plain[1], "x",
              f"{ours[1]:.2f} s; {ours[0] / plain[0]:.2f} by CPU")
    peers = [("diffai", [shutil.which("diffai") or "", a, b, "--stats"])]
    if subprocess.run([sys.executable, "-c", "import torch, safetensors"], capture_output=True,
                      check=False).returncode == 0:
        script = os.path.join(HERE, "torch_metrics.py")
        peers.append(("torch script", [sys.executable, script, a, b]))
    for name, command in peers:
        if command[0]:
            bench.row(f"default: {name} / ours", least(1, command)[1] / ours[1], "x faster")


def many_files(bench):
    """Growth from 1,000 files to 50,000: each is opened once."""
    one = bench.file("rank", dump, 1)
    for ranks in (1, 8, 64):
        b = one if ranks == 1 else bench.file(f"ranks-{ranks}", dump, ranks)
        files = 800 * ranks
        cpu, clock = least(min(3, bench.options.repeat), [bench.program, one, b])
        bench.row(f"files: {files:,} small .pt against 800", clock, "s",
                  f"{cpu / (files + 800) * 1e6:.0f} us of CPU a file")


def start(bench):
    a = bench.file("small-a.safetensors", data.many_tensors, 10, 1000)
    b = bench.file("small-b.safetensors", data.many_tensors, 10, 1000, 1e-3)
    for name, command in [("--version", ["--version"]), ("two files of 40 kB", [a, b]),
                          ("two files of 40 kB, --no-diagnose", [a, b, "--no-diagnose"])]:
        cpu, clock = least(10 * bench.options.repeat, [bench.program, *command])
        bench.row(f"start: {name}", cpu * 1e3, "ms CPU", f"{clock * 1e3:.1f} ms")


def digests(bench):
    """Reading a model once, against nothing but reading it; raw_read reads it as both sides."""
    model = bench.file("tuned-a.safetensors", checkpoint)
    data.warm(model)
    raw = min(bench.raw_seconds(model, model, bench.cores) for _ in range(bench.options.repeat))
    cpu, clock = least(bench.options.repeat, [bench.program, "digest", model, "--out",
                                              bench.path("tuned-a.digest")])
    size = os.path.getsize(model)
    bench.row("digest: 744 MiB / raw read", clock / (raw / 2), "x",
              f"{size / clock / 1e9:.2f} GB/s; {size / cpu / 1e9:.2f} GB/s for each core")


def plans(bench):
    """What bench/plan_scale.cpp simulates: comparisons that fit on no machine here."""
    out = subprocess.run([os.path.join(bench.tools, "plan_scale")], capture_output=True, text=True,
                         check=True).stdout
    for plan in map(json.loads, out.splitlines()):
        bench.row(f"plan: {plan['job']}, {plan['parts']} parts", plan["plan_seconds"], "s",
                  f"the largest part has {plan['largest_over_mean']:.4f} of the mean bytes")


def run(bench):
    for name, part in [("default", the_default), ("files", many_files), ("start", start),
                       ("digest", digests), ("plan", plans)]:
        if bench.wanted(name):
            part(bench)
