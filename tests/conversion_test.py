#!/usr/bin/env python3
"""tensordiff conversion -o python writes a script that makes B of A, bit for bit."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
PROGRAM = os.path.abspath(os.environ.get("TENSORDIFF", "build/tensordiff"))
NAMES = {"float32": "F32", "float16": "F16"}
LAYERS, HIDDEN, HEADS, KV_HEADS, INNER = 3, 32, 4, 2, 48
HEAD = HIDDEN // HEADS


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, value in tensors.items():
        raw = np.ascontiguousarray(value).tobytes()
        header[name] = {"dtype": NAMES[str(value.dtype)], "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)


def read_safetensors(path):
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    types = {short: name for name, short in NAMES.items()}
    tensors = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name != "__metadata__":
            first, last = entry["data_offsets"]
            values = np.frombuffer(raw[start + first:start + last], types[entry["dtype"]])
            tensors[name] = values.reshape(entry["shape"])
    return tensors


def model(seed):
    rng = np.random.default_rng(seed)
    noise = lambda *shape: rng.standard_normal(shape, dtype=np.float32)
    a = {"model.embed_tokens.weight": noise(64, HIDDEN), "model.norm.weight": noise(HIDDEN)}
    for i in range(LAYERS):
        at = f"model.layers.{i}."
        a[at + "input_layernorm.weight"] = noise(HIDDEN)
        a[at + "post_attention_layernorm.weight"] = noise(HIDDEN)
        a[at + "self_attn.q_proj.weight"] = noise(HIDDEN, HIDDEN)
        a[at + "self_attn.k_proj.weight"] = noise(KV_HEADS * HEAD, HIDDEN)
        a[at + "self_attn.v_proj.weight"] = noise(KV_HEADS * HEAD, HIDDEN)
        a[at + "self_attn.o_proj.weight"] = noise(HIDDEN, HIDDEN)
        a[at + "mlp.gate_proj.weight"] = noise(INNER, HIDDEN)
        a[at + "mlp.up_proj.weight"] = noise(INNER, HIDDEN)
        a[at + "mlp.down_proj.weight"] = noise(HIDDEN, INNER)
    return a


def transposed(a):
    """Kernels have inputs first, as in Flax."""
    return {name.replace(".weight", ".kernel") if value.ndim == 2 and "layers" in name else name:
            value.T if value.ndim == 2 and "layers" in name else value
            for name, value in a.items()}


def fused(a):
    """q, k, v in one tensor, gate and up in another, as servers have them."""
    b = {}
    for name, value in a.items():
        at = name.rsplit(".", 3)[0]
        if ".q_proj." in name:
            b[at + ".self_attn.qkv_proj.weight"] = np.concatenate(
                [a[f"{at}.self_attn.{x}_proj.weight"] for x in "qkv"])
        elif ".gate_proj." in name:
            b[at + ".mlp.gate_up_proj.weight"] = np.concatenate(
                [value, a[at + ".mlp.up_proj.weight"]])
        elif not any(x in name for x in (".k_proj.", ".v_proj.", ".up_proj.")):
            b[name] = value
    return b


def turned(a):
    """The rows of q and k as neighbours, as Meta has them."""
    def turn(value, heads):
        return value.reshape(heads, 2, -1, HIDDEN).swapaxes(1, 2).reshape(value.shape)
    return {name: turn(value, HEADS) if ".q_proj." in name
            else turn(value, KV_HEADS) if ".k_proj." in name else value
            for name, value in a.items()}


def exchanged(a):
    """The halves of some matrices the other way round, as diffusers has scale and shift."""
    return {name: np.roll(value, len(value) // 2, 0) if ".down_proj." in name else value
            for name, value in a.items()}


def smaller_norms(a):
    """Norms that store their weight less one, and all in half precision."""
    return {name: (value - 1 if "norm" in name else value).astype(np.float16)
            for name, value in a.items()}


class Conversion(unittest.TestCase):
    def check(self, convert, seed):
        a = model(seed)
        b = {name: np.ascontiguousarray(value) for name, value in convert(a).items()}
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write_safetensors(folder / "a.safetensors", a)
            write_safetensors(folder / "b.safetensors", b)
            self.check_files(folder / "a.safetensors", folder / "b.safetensors")

    def check_files(self, path_a, path_b):
        a, b = read_safetensors(path_a), read_safetensors(path_b)
        run = subprocess.run([PROGRAM, "conversion", path_a, path_b, "-o", "python"],
                             capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        scope = {}
        exec(compile(run.stdout, "conversion.py", "exec"), scope)
        made = scope["convert"](a)
        self.assertEqual(sorted(made), sorted(b))
        for name, value in b.items():
            self.assertEqual(made[name].dtype, value.dtype, name)
            self.assertEqual(made[name].tobytes(), value.tobytes(), name)

    def test_as_it_is(self):
        self.check(dict, 1)

    def test_transposed(self):
        self.check(transposed, 2)

    def test_fused(self):
        self.check(fused, 3)

    def test_turned(self):
        self.check(turned, 4)

    def test_exchanged_halves(self):
        self.check(exchanged, 8)

    def test_function_and_dtype(self):
        self.check(smaller_norms, 5)

    def test_several_steps(self):
        self.check(lambda a: transposed(turned(a)), 6)

    def test_experts_of_a_real_model(self):
        """Mixtral as transformers 4 stores it and as transformers 5 holds it: experts stacked."""
        folder = HERE / "data" / "conversions"
        self.check_files(folder / "mixtral.safetensors", folder / "mixtral_stacked.safetensors")


class MergedWeights(unittest.TestCase):
    """What A keeps in several tensors is computed as well."""

    def script(self, a, b):
        """convert() of the script that is written for two dicts."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write_safetensors(folder / "a.safetensors", a)
            write_safetensors(folder / "b.safetensors", b)
            run = subprocess.run([PROGRAM, "conversion", folder / "a.safetensors",
                                  folder / "b.safetensors", "-o", "python"],
                                 capture_output=True, text=True)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertNotIn("To do", run.stdout.split("def convert")[1])
        scope = {}
        exec(compile(run.stdout, "conversion.py", "exec"), scope)
        return scope["convert"](a)

    def equal(self, made, b):
        self.assertEqual(sorted(made), sorted(b))
        for name, value in b.items():
            self.assertEqual(made[name].tobytes(), value.tobytes(), name)

    def test_batch_norms_as_pytorch_folds_them(self):
        """Made by torch.nn.utils.fuse_conv_bn_eval: bit for bit."""
        folder = HERE / "data" / "conversions"
        a, b = (read_safetensors(folder / name) for name in ("norms.safetensors",
                                                             "norms_folded.safetensors"))
        floats = {name: value for name, value in a.items() if value.dtype == np.float32}
        self.equal(self.script(floats, b), b)

    def test_lora_updates_of_both_layouts(self):
        """Eighths, so that no order of adding rounds. `turn` is stored as [in, out]."""
        chance = np.random.default_rng(31)
        eighths = lambda *shape: chance.integers(-16, 17, shape).astype(np.float32) / 8
        a, b = {}, {}
        for i in range(3):
            for part, rows, columns in (("straight", 24, 16), ("turn", 16, 48), ("square", 16, 16)):
                stem, turned = f"h.{i}.{part}", part != "straight"
                weight = eighths(rows, columns)
                down = eighths(2, rows if turned else columns)
                up = eighths(columns if turned else rows, 2)
                a[stem + ".weight"] = weight
                a[stem + ".lora_A.weight"], a[stem + ".lora_B.weight"] = down, up
                update = up @ down
                b[stem + ".weight"] = weight + np.float32(0.5) * (update.T if turned else update)
        self.equal(self.script(a, b), b)

    def test_weight_norms(self):
        """Directions of a length that is a whole number: nothing rounds but the last step."""
        chance = np.random.default_rng(32)
        a, b = {}, {}
        for i in range(3):
            direction = np.zeros((6, 4, 3), np.float32)
            for row in range(6):
                where = chance.choice(12, 2, replace=False)
                direction[row].flat[where] = (3, 4)
            length = (chance.integers(1, 9, (6, 1, 1)) * 5 / 8).astype(np.float32)
            a[f"s.{i}.conv.weight_v"], a[f"s.{i}.conv.weight_g"] = direction, length
            a[f"s.{i}.conv.bias"] = b[f"s.{i}.conv.bias"] = np.float32(chance.random(6))
            b[f"s.{i}.conv.weight"] = direction * (length / np.float32(5))
        self.equal(self.script(a, b), b)


class Rules(unittest.TestCase):
    """--conversion FILE holds a converter to the rules of an earlier run."""

    def test_what_changed_is_told(self):
        a = model(7)
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            run = lambda *words: subprocess.run([PROGRAM, *words], cwd=folder,
                                                capture_output=True, text=True)
            write_safetensors(folder / "a.safetensors", a)
            write_safetensors(folder / "b.safetensors", transposed(a))
            write_safetensors(folder / "c.safetensors", transposed(turned(a)))
            kept = run("conversion", "a.safetensors", "b.safetensors", "-o", "json")
            self.assertEqual(kept.returncode, 0, kept.stderr)
            (folder / "rules.json").write_text(kept.stdout)
            rules = ("--conversion", "rules.json")
            same = run("conversion", "a.safetensors", "b.safetensors", *rules)
            self.assertEqual(same.returncode, 0, same.stdout + same.stderr)
            other = run("conversion", "a.safetensors", "c.safetensors", *rules)
            self.assertEqual(other.returncode, 1, other.stdout + other.stderr)
            self.assertIn("q_proj", other.stdout)


class Rules(unittest.TestCase):
    """Rules that only some tensors of a model follow."""

    def report(self, a, b):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            write_safetensors(folder / "a.safetensors", a)
            write_safetensors(folder / "b.safetensors", b)
            done = subprocess.run([PROGRAM, "a.safetensors", "b.safetensors", "-o", "report"],
                                  cwd=folder, capture_output=True, text=True)
            report = json.loads(done.stdout)
        different = {row["name_b"].split("[")[0] for row in report["pairs"]
                     if row["status"] not in ("identical", "equal", "close")}
        return report["summary"]["verdict"], different

    def test_q_and_k_turned_for_rope_before_they_are_fused(self):
        a = model(21)
        turn = lambda value, heads: value.reshape(heads, 2, HEAD // 2, -1).swapaxes(1, 2).reshape(
            value.shape)
        b, plain = dict(a), {}
        for i in range(LAYERS):
            at = f"model.layers.{i}.self_attn."
            q, k, v = (b.pop(f"{at}{each}_proj.weight") for each in "qkv")
            b[at + "qkv_proj.weight"] = np.concatenate([turn(q, HEADS), turn(k, KV_HEADS), v])
            plain[at + "qkv_proj.weight"] = np.concatenate([q, k, v])
        self.assertEqual(self.report(a, b), ("same", set()))
        guilty = "model.layers.1.self_attn.qkv_proj.weight"
        b[guilty] = plain[guilty]
        self.assertEqual(self.report(a, b), ("different", {guilty}))

    def test_projections_that_belong_to_no_module_have_their_inputs_first(self):
        a = model(22)
        noise = np.random.default_rng(23).standard_normal
        b = dict(a)
        for side, name in (("text_projection", "text_projection.weight"),
                           ("visual.proj", "visual_projection.weight")):
            a[side] = noise((HIDDEN, HIDDEN), dtype=np.float32)
            b[name] = a[side].T
        self.assertEqual(self.report(a, b), ("same", set()))
        b["visual_projection.weight"] = a["visual.proj"]
        self.assertEqual(self.report(a, b), ("different", {"visual_projection.weight"}))

    def test_a_last_block_of_another_size_may_do_what_other_kinds_do(self):
        noise = np.random.default_rng(24).standard_normal
        a, b = {}, {}
        swapped = lambda value: np.roll(value, len(value) // 2, 0)
        for i in range(6):
            rows = 16 if i == 5 else 48
            for leaf, shape in (("weight", (rows, 24)), ("bias", (rows,))):
                a[f"blocks.{i}.mod.1.{leaf}"] = noise(shape, dtype=np.float32)
                made = a[f"blocks.{i}.mod.1.{leaf}"]
                b[f"steps.{i}.norm.linear.{leaf}"] = swapped(made) if i == 5 else made
        for leaf, shape in (("weight", (32, 24)), ("bias", (32,))):
            a[f"last.mod.1.{leaf}"] = noise(shape, dtype=np.float32)
            b[f"norm_out.linear.{leaf}"] = swapped(a[f"last.mod.1.{leaf}"])
        self.assertEqual(self.report(a, b), ("same", set()))
        b["steps.1.norm.linear.weight"] = swapped(b["steps.1.norm.linear.weight"])
        self.assertEqual(self.report(a, b), ("different", {"steps.1.norm.linear.weight"}))

    def test_tensors_of_one_size_that_changed_places_in_one_layer(self):
        noise = np.random.default_rng(25).standard_normal
        a, b = {}, {}
        for i in range(3):
            for part, of_b in (("layer.0.SelfAttention.k", "attn.W_K"),
                               ("layer.1.EncDecAttention.k", "cross_attn.W_K")):
                value = noise((24, 24), dtype=np.float32)
                a[f"decoder.block.{i}.{part}.weight"] = value
                b[f"decoder.{i}.{of_b}"] = value.reshape(4, 6, 24).swapaxes(1, 2)
        self.assertEqual(self.report(a, b), ("same", set()))
        own, cross = "decoder.1.attn.W_K", "decoder.1.cross_attn.W_K"
        b[own], b[cross] = b[cross], b[own]
        self.assertEqual(self.report(a, b), ("different", {own, cross}))


class Merges(unittest.TestCase):
    """LoRA updates beside the weights, in one file or in a folder as peft leaves it."""

    def setUp(self):
        self.base = model(11)
        chance = np.random.default_rng(12)
        self.adapter, self.merged = {}, dict(self.base)
        self.updates = {}
        for name, value in self.base.items():
            if "q_proj" in name or "down_proj" in name:
                down = chance.standard_normal((4, value.shape[1]), dtype=np.float32)
                up = chance.standard_normal((value.shape[0], 4), dtype=np.float32) / 8
                stem = "base_model.model." + name.removesuffix(".weight")
                self.adapter[stem + ".lora_A.weight"] = down
                self.adapter[stem + ".lora_B.weight"] = up
                self.updates[name] = up @ down
                self.merged[name] = value + 2 * self.updates[name]
        self.guilty = next(iter(self.updates))

    def compare(self, b, config):
        """Exit status of `conversion`, and the report, of a folder with an adapter against b."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            (folder / "a").mkdir()
            write_safetensors(folder / "a" / "model.safetensors", self.base)
            write_safetensors(folder / "a" / "adapter_model.safetensors", self.adapter)
            if config:
                (folder / "a" / "adapter_config.json").write_text(json.dumps(config))
            write_safetensors(folder / "b.safetensors", b)
            run = lambda *words: subprocess.run([PROGRAM, *words], cwd=folder,
                                                capture_output=True, text=True)
            status = run("conversion", "a", "b.safetensors", "-q").returncode
            return status, json.loads(run("a", "b.safetensors", "-o", "report").stdout)

    def different(self, report):
        return {row["name_b"] for row in report["pairs"]
                if row["status"] not in ("identical", "equal", "close")}

    def test_a_sound_merge_is_close_with_and_without_a_configuration(self):
        for config in (None, {"peft_type": "LORA", "r": 4, "lora_alpha": 8}):
            status, report = self.compare(self.merged, config)
            self.assertEqual(status, 0)
            self.assertEqual(self.different(report), set())
            rules = {row["rule"] for row in report["conversion"]}
            self.assertIn("LoRA update of A merged (scale 2)", rules)

    def test_a_weight_that_was_left_out_and_a_scale_that_is_missing_are_told(self):
        left_out = dict(self.merged, **{self.guilty: self.base[self.guilty]})
        unscaled = dict(self.merged,
                        **{self.guilty: self.base[self.guilty] + self.updates[self.guilty]})
        for b, code in ((left_out, "not_merged"), (unscaled, "merge_scale")):
            status, report = self.compare(b, None)
            self.assertEqual(status, 1)
            self.assertEqual(self.different(report), {self.guilty})
            self.assertIn(code, {finding["code"] for finding in report["findings"]})

    def test_all_scaled_otherwise_than_the_configuration_says_is_different(self):
        status, report = self.compare(self.merged, {"r": 4, "lora_alpha": 16})
        self.assertEqual(status, 1)
        self.assertEqual(self.different(report), set(self.updates))
        self.assertEqual({finding["code"] for finding in report["findings"]}, {"merge_scale"})


if __name__ == "__main__":
    unittest.main()
