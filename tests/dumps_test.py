#!/usr/bin/env python3
"""Every layout of dumps, written from a table: recognised, quiet, located, cut off without harm.

One small run is written as each stack names its steps and compared with the same run in the names
of Hugging Face. $TENSORDIFF says where the program is.
"""
import json
import math
import os
import pathlib
import random
import sqlite3
import struct
import subprocess
import tempfile
import unittest
import zipfile

PROGRAM = str(pathlib.Path(os.environ.get("TENSORDIFF", "build/tensordiff")).resolve())
LAYERS, TOKENS, HIDDEN = 3, 7, 16


def tensordiff(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=120)


def npy(rows, kind="<f4", shape=None):
    shape = shape or ((len(rows), len(rows[0])) if isinstance(rows[0], list) else (len(rows),))
    flat = [x for row in rows for x in row] if isinstance(rows[0], list) else rows
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    data = struct.pack(f"<{len(flat)}{'f' if kind == '<f4' else 'q'}", *flat)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data


def add(x, y):
    return [[a + b for a, b in zip(p, q)] for p, q in zip(x, y)]


def normed(x):
    size = lambda row: math.sqrt(sum(v * v for v in row) / len(row) + 1e-6)
    return [[v / size(row) for v in row] for row in x]


def a_run(wrong=None, rank=None):
    """{(layer, step): rows}. `wrong` is one that is half as large again, with what follows. A rank
    of two has its part of what the MLP of layer 1 gives, and nobody adds them up."""
    draw = random.Random(5)
    noise = lambda: [[draw.gauss(0, 1) for _ in range(HIDDEN)] for _ in range(TOKENS)]
    run = {(None, "embed"): noise()}
    x = run[None, "embed"]

    def keep(layer, step, rows):
        grown = [[1.5 * v for v in row] for row in rows] if (layer, step) == wrong else rows
        run[layer, step] = grown
        return grown

    for i in range(LAYERS):
        keep(i, "ln1", normed(x))
        for step in ("q", "k", "v", "z"):
            keep(i, step, noise())
        middle = keep(i, "mid", add(x, keep(i, "o", noise())))
        keep(i, "ln2", normed(middle))
        mlp = noise()
        if rank is not None and i == 1:
            parts = random.Random(6)
            first = [[parts.gauss(0, 1) for _ in row] for row in mlp]
            mlp = first if rank == 0 else [[a - b for a, b in zip(*rows)]
                                           for rows in zip(mlp, first)]
        keep(i, "down", mlp)
        x = keep(i, "out", add(middle, keep(i, "mlp", mlp)))
    keep(None, "norm", normed(x))
    return run


HOOKS = {"embed": "model.embed_tokens", "ln1": "model.layers.{}.input_layernorm",
         "q": "model.layers.{}.self_attn.q_proj", "k": "model.layers.{}.self_attn.k_proj",
         "v": "model.layers.{}.self_attn.v_proj", "o": "model.layers.{}.self_attn.o_proj",
         "ln2": "model.layers.{}.post_attention_layernorm", "mlp": "model.layers.{}.mlp",
         "out": "model.layers.{}", "norm": "model.norm"}
ENGINE = {"embed": "transformer.vocab_embedding.output",
          "ln1": "transformer.layers.{}.input_layernorm.output",
          "o": "transformer.layers.{}.attention.dense.output",
          "ln2": "transformer.layers.{}.post_layernorm.output",
          "mlp": "transformer.layers.{}.mlp.proj.output", "out": "transformer.layers.{}.output",
          "norm": "transformer.ln_f.output"}
MEGATRON = "tensor_dumps/rank_0/iter_000002/decoder_layers_{}_"
TABLE = {  # layout: {step: name of the file}
    "forward-hook": {k: f"TP0_PP0_Rank0_pid31/Pass00000.{v}" for k, v in HOOKS.items()
                     if k not in ("out", "mlp")},
    "sglang-dumper": {k: "step=0___rank=0___dump_index=#___name=non_intrusive__" + v + ".output"
                      "___recompute_status=disabled" for k, v in HOOKS.items()},
    "tensorrt-engine": {k: f"PP_1/TP_1/iteration_4/{v}" for k, v in ENGINE.items()},
    "module-folders": {k: f"step_0/{v}/outputs_cuda_0" for k, v in HOOKS.items()},
    "msprobe": {k: f"step0/rank0/dump_tensor_data/Module.{v}.Class.forward.0.output.0"
                for k, v in HOOKS.items()},
    "transformer-lens": {"embed": "hook_embed", "q": "blocks.{}.attn.hook_q",
                         "k": "blocks.{}.attn.hook_k", "v": "blocks.{}.attn.hook_v",
                         "o": "blocks.{}.hook_attn_out", "mlp": "blocks.{}.hook_mlp_out",
                         "out": "blocks.{}.hook_resid_post"},
    "llama-cpp": {"embed": "embd", "ln1": "attn_norm-{}", "o": "attn_out-{}", "mid": "ffn_inp-{}",
                  "ln2": "ffn_norm-{}", "mlp": "ffn_out-{}", "out": "l_out-{}",
                  "norm": "result_norm"},
    "transformer-engine": {
        "ln1": MEGATRON + "self_attention_linear_qkv_activation.high_precision",
        "o": MEGATRON + "self_attention_linear_proj_output.high_precision",
        "ln2": MEGATRON + "mlp_linear_fc1_activation.high_precision",
        "mlp": MEGATRON + "mlp_linear_fc2_output.high_precision"},
    "layer-lists": {"ln1": "ln1.{}", "o": "attn_out.{}", "ln2": "ln2.{}", "mlp": "mlp_out.{}",
                    "out": "resid.{}"},
    "module-hooks": {k: f"step_3/{v}" for k, v in HOOKS.items()},
    "nnsight": {k: f"{v}.output" for k, v in HOOKS.items()},
    "megatron": {k: f"rank_0/{v}.0" for k, v in HOOKS.items() if k not in ("embed", "norm")},
    "": {"ln1": "{}_post_ln_pre_attn", "q": "{}_query", "k": "{}_key", "v": "{}_value",
         "o": "{}_post_attn_pre_resid", "ln2": "{}_pre_mlp", "mlp": "{}_post_mlp"},
}
ZIPPED = {  # Keys of an npz.
    "flax": {k: v.replace(".", "/") + "/__call__" for k, v in HOOKS.items()},
    "onnx-values": {"embed": "/model/embed_tokens/Gather_output_0",
                    "ln1": "/model/layers.{}/input_layernorm/Mul_1_output_0",
                    "q": "/model/layers.{}/self_attn/q_proj/MatMul_output_0",
                    "o": "/model/layers.{}/self_attn/o_proj/MatMul_output_0",
                    "mid": "/model/layers.{}/Add_output_0",
                    "mlp": "/model/layers.{}/mlp/down_proj/MatMul_output_0",
                    "out": "/model/layers.{}/Add_1_output_0"},
}
BESIDE = {"tensorrt-engine": "PP_1/TP_1/iteration_5/request_ids",  # A fact of another pass.
          "module-hooks": "step_4/request_ids"}
SAME_AS = {"nnsight": "module-hooks", "megatron": "module-hooks"}


def named(run, table):
    """[(name, bytes)], in order of computing."""
    found = []
    for number, ((layer, step), rows) in enumerate(run.items()):
        if step in table:
            name = table[step].replace("{}", str(layer)).replace("#", str(number + 1))
            found.append((name, npy(rows)))
    return found


def write_folder(folder, files):
    for name, data in files:
        path = folder / f"{name}.npy"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def write_npz(path, files):
    with zipfile.ZipFile(path, "w") as out:
        for name, data in files:
            out.writestr(f"{name}.npy", data)
    return path


def tensor_proto(name, rows):
    """dims, float32, name, raw data: in fields that are shorter than 2^14 bytes."""
    field = lambda tag, data: bytes([tag, len(data) & 127 | 128, len(data) >> 7]) + data
    raw = b"".join(struct.pack(f"<{len(row)}f", *row) for row in rows)
    return (bytes([8, len(rows), 8, len(rows[0]), 16, 1]) + field(66, name.encode()) +
            field(74, raw))


def write_database(path, runs):
    """As ONNX Runtime creates its table; a step for each run."""
    tables = sqlite3.connect(path)
    tables.execute("Create table Tensors (Step int not null, Name text not null, "
                   "Value TensorProto, DeviceType text, primary key (Step, Name))")
    for step, run in enumerate(runs):
        for (layer, key), rows in run.items():
            if key in ZIPPED["onnx-values"]:
                name = ZIPPED["onnx-values"][key].format(layer)
                tables.execute("insert into Tensors values (?, ?, ?, 'CPU')",
                               (step, name, tensor_proto(name, rows)))
    tables.commit()
    tables.close()
    return path


class Dumps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.reference = write_npz(self.folder / "reference.npz", named(a_run(), HOOKS))

    def write(self, layout, run, place):
        if layout in ZIPPED:
            return write_npz(self.folder / f"{place}.npz", named(run, ZIPPED[layout]))
        beside = [(BESIDE[layout], npy([1], "<i8"))] if layout in BESIDE else []
        return write_folder(self.folder / place, named(run, TABLE[layout]) + beside)

    def each(self, check):
        for number, layout in enumerate([*TABLE, *ZIPPED]):
            with self.subTest(layout=layout):
                check(number, layout, (ZIPPED if layout in ZIPPED else TABLE)[layout])

    def test_is_recognised_and_named_by_show(self):
        def check(number, layout, table):
            shown = tensordiff("show", self.write(layout, a_run(), f"show{number}")).stdout
            expected = SAME_AS.get(layout, layout)
            self.assertEqual(f"layout  {expected}:" in shown, bool(layout), shown[:600])

        self.each(check)

    def test_is_quiet_where_it_is_the_same_run(self):
        def check(number, layout, table):
            done = tensordiff(self.reference, self.write(layout, a_run(), f"same{number}"),
                              "-o", "report")
            report = json.loads(done.stdout)
            self.assertEqual(done.returncode, 0, tensordiff(self.reference, self.folder /
                                                            f"same{number}").stdout[:2000])
            self.assertGreaterEqual(report["summary"]["pairs"], 2 * LAYERS, layout)

        self.each(check)

    def test_tells_the_step_that_is_wrong(self):
        def check(number, layout, table):
            step = "mlp" if "mlp" in table else "o"
            dump = self.write(layout, a_run((1, step)), f"wrong{number}")
            done = tensordiff(self.reference, dump, "-o", "report")
            first = json.loads(done.stdout)["first_divergence"]
            self.assertEqual(done.returncode, 1)
            self.assertIn(first["name_a"], (HOOKS[step].format(1),
                                            HOOKS[step].format(1).rsplit(".", 1)[0]), first)

        self.each(check)

    def test_can_be_cut_off_and_changed_anywhere(self):
        draw = random.Random(3)
        def check(number, layout, table):
            path = self.write(layout, a_run(), f"cut{number}")
            for file in [path] if path.is_file() else sorted(path.rglob("*.npy"))[:2]:
                whole = file.read_bytes()
                for _ in range(6):
                    broken = bytearray(whole[:draw.randrange(len(whole))] if draw.random() < 0.5
                                       else whole)
                    if broken:
                        broken[draw.randrange(min(len(broken), 128))] ^= 1 << draw.randrange(8)
                    file.write_bytes(broken)
                    done = tensordiff(self.reference, path)
                    self.assertIn(done.returncode, (0, 1, 2), done.stderr[:500])
                file.write_bytes(whole)

        self.each(check)

    def test_layout_can_be_set(self):
        dump = self.write("tensorrt-engine", a_run(), "set")
        shown = tensordiff("show", dump, "--layout", "none").stdout
        self.assertNotIn("layout  ", shown)
        self.assertIn("layout  module-hooks:",
                      tensordiff("show", dump, "--layout", "module-hooks").stdout)
        done = tensordiff("show", dump, "--layout", "nosuch")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no layout 'nosuch'; known are forward-hook", done.stderr)

    def test_what_one_side_has_is_coverage_unless_all_is_required(self):
        dump = self.write("layer-lists", a_run(), "part")
        done = tensordiff(self.reference, dump)
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"coverage +15 of 26 steps compared")
        self.assertEqual(tensordiff(self.reference, dump, "--require-all").returncode, 1)

    def test_passes_are_joined_and_the_second_chunk_is_told(self):
        run, wrong = a_run(), a_run((1, "o"))
        for step, rows in wrong.items():  # Only from position 4 on.
            wrong[step] = run[step][:4] + rows[4:]
        for number, rows in enumerate((slice(0, 4), slice(4, TOKENS))):
            part = {key: value[rows] for key, value in wrong.items()}
            folder = write_folder(self.folder / "passes" / f"iteration_{number}",
                                  named(part, ENGINE))
            positions = list(range(TOKENS))[rows]
            (folder / "position_ids.npy").write_bytes(npy(positions, "<i8"))
        text = tensordiff(self.reference, self.folder / "passes").stdout
        self.assertIn("only tokens from position 4 on differ, in every layer from 1 on", text)
        self.assertIn("they start at positions 0, 4", text)

    def test_a_missing_sum_over_ranks_is_told_of_the_module_that_left_it_out(self):
        names = {"down": "model.layers.{}.mlp.down_proj", **HOOKS}
        whole = write_npz(self.folder / "whole.npz", named(a_run(), names))
        for rank in range(2):
            write_folder(self.folder / "ranks" / f"rank_{rank}", named(a_run(rank=rank), names))
        done = tensordiff(whole, self.folder / "ranks", "-o", "report")
        report = json.loads(done.stdout)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(report["first_divergence"]["name_a"], "model.layers.1.mlp.down_proj")
        self.assertIn("reduction", [f["code"] for f in report["findings"]])

    def test_node_outputs_in_sqlite(self):
        same = write_database(self.folder / "same-pid7.db", [a_run()])
        self.assertIn("layout  onnx-values:", tensordiff("show", same).stdout)
        done = tensordiff(self.reference, same, "-o", "report")
        self.assertEqual(done.returncode, 0, done.stdout[:2000])
        self.assertGreaterEqual(json.loads(done.stdout)["summary"]["pairs"], 5 * LAYERS)
        wrong = write_database(self.folder / "wrong-pid8.db", [a_run((1, "mlp"))])
        first = json.loads(tensordiff(self.reference, wrong, "-o", "report").stdout)
        self.assertEqual(first["first_divergence"]["name_a"], "model.layers.1.mlp")
        rows = lambda part: {key: value[part] for key, value in a_run().items()}
        steps = write_database(self.folder / "steps-pid9.db",
                               [rows(slice(0, 4)), rows(slice(4, TOKENS))])
        done = tensordiff(self.reference, steps)
        self.assertEqual(done.returncode, 0, done.stdout[:2000])
        self.assertIn("2 passes", done.stdout)

    def test_runs_are_put_into_classes(self):
        dumps = [self.write("tensorrt-engine", run, f"run{i}")
                 for i, run in enumerate((a_run(), a_run(), a_run((1, "mlp"))))]
        noise = self.folder / "noise.json"
        done = tensordiff("runs", *dumps, "--save-noise", noise)
        self.assertEqual(done.returncode, 1)
        self.assertIn("3 runs, 2 bitwise classes", done.stdout)
        self.assertRegex(done.stdout, r"first split +transformer\.layers\.1\.mlp\.proj")
        self.assertIn("transformer.layers.1.mlp.proj", noise.read_text())
        self.assertEqual(tensordiff("runs", *dumps[:2]).returncode, 0)


if __name__ == "__main__":
    unittest.main()
