#!/usr/bin/env python3
"""What `check` says of files and how it exits, and which shards are missing. $TENSORDIFF says where
the program is."""

import json
import os
import pathlib
import pickle
import resource
import shutil
import struct
import subprocess
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
DATA = ROOT / "tests/data"
PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")


def tensordiff(*arguments, memory=None):
    def limit_memory():
        if memory:
            resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))

    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          timeout=600, preexec_fn=limit_memory)


def safetensors(values, name="w"):
    header = json.dumps({name: {"dtype": "F32", "shape": [len(values)],
                                "data_offsets": [0, 4 * len(values)]}}).encode()
    return struct.pack("<Q", len(header)) + header + struct.pack(f"<{len(values)}f", *values)


def global_call(module, name, argument):
    """A pickle that calls module.name(argument) when somebody loads it. We never do."""
    return (b"\x80\x02c" + f"{module}\n{name}\n".encode() + b"X" + struct.pack("<I", len(argument))
            + argument.encode() + b"\x85R.")


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def write(self, name, data):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path


class Check(Folder):
    def level(self, path, *options):
        """The level, the exit status, and what was said."""
        run = tensordiff("check", path, "-o", "json", *options)
        file = json.loads(run.stdout)["files"][0]
        problems = [f"{found['severity']}: {found['message']}" for found in file["problems"]]
        return file["level"], run.returncode, " | ".join(problems)

    def test_levels(self):
        good = self.write("good.safetensors", safetensors([1, 2]))
        self.assertEqual(self.level(good), ("ok", 0, ""))
        nan = self.write("nan.safetensors", safetensors([1, float("nan")]))
        self.assertEqual(self.level(nan), ("suspicious", 1, ""))
        cut = self.write("cut.safetensors", safetensors([1, 2])[:-1])
        self.assertEqual(self.level(cut)[:2], ("unreadable", 2))
        acts = self.write("acts.pkl", global_call("os", "system", "id"))
        self.assertEqual(self.level(acts), (
            "dangerous", 1, "dangerous: holds a reference to 'os.system', which was not run"))
        odd = self.write("odd.pkl", global_call("their.code", "Thing", "id"))
        self.assertEqual(self.level(odd), (
            "suspicious", 1,
            "suspicious: holds a reference to 'their.code.Thing', which was not run"))
        trailing = self.write("trailing.pkl", pickle.dumps({"w": 1.0}, 2) + b"more")
        self.assertIn(self.level(trailing)[0], ("suspicious", "unreadable"))

    def test_harmless_names_are_no_problem(self):
        for name in ("whole_module.pt", "numpy_inside.pth"):
            self.assertEqual(self.level(DATA / "formats" / name)[:2], ("ok", 0), name)

    def test_fail_on(self):
        odd = self.write("odd.pkl", global_call("their.code", "Thing", "id"))
        acts = self.write("acts.pkl", global_call("os", "system", "id"))
        cut = self.write("cut.safetensors", safetensors([1, 2])[:-1])
        for level, of_odd, of_acts in (("suspicious", 1, 1), ("dangerous", 0, 1),
                                       ("unreadable", 0, 0)):
            self.assertEqual(self.level(odd, "--fail-on", level)[1], of_odd)
            self.assertEqual(self.level(acts, "--fail-on", level)[1], of_acts)
            self.assertEqual(self.level(cut, "--fail-on", level)[1], 2)
        self.assertEqual(tensordiff("check", odd, "--fail-on", "sometimes").returncode, 2)

    def test_a_file_that_is_not_there(self):
        good = self.write("good.safetensors", safetensors([1, 2]))
        run = tensordiff("check", self.folder / "none", good)
        self.assertEqual(run.returncode, 2)
        self.assertEqual(run.stdout.splitlines()[0], f"not found  {self.folder}/none")
        self.assertIn(f"ok  {good}", run.stdout)

    def test_code_in_the_configuration_of_keras(self):
        config = {"class_name": "Lambda", "config": {"name": "evil", "function": ["4wE=", None]}}
        path = self.folder / "model.keras"
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("config.json", json.dumps(config))
            file.writestr("metadata.json", "{}")
            file.writestr("model.weights.h5", (DATA / "hdf5/small.h5").read_bytes())
        said = "dangerous: 'evil' is a Lambda of marshalled Python code, which was not run"
        self.assertEqual(self.level(path), ("dangerous", 1, said))
        self.assertEqual(self.level(DATA / "hdf5/lambda.h5"), ("dangerous", 1, said))


class Shards(Folder):
    def missing(self, path):
        check = tensordiff("check", path)
        self.assertEqual(check.returncode, 2, check.stdout)
        self.assertTrue(check.stdout.startswith("unreadable"), check.stdout)
        compare = tensordiff(path, path)
        self.assertEqual(compare.returncode, 2, compare.stdout)
        said = [line for line in compare.stdout.splitlines() if "missing: " in line]
        self.assertEqual(len(said), 2, compare.stdout)
        return said[0].partition(": ")[2]

    def test_without_an_index(self):
        for number in (1, 3):
            self.write(f"m/model-0000{number}-of-00003.safetensors",
                       safetensors([number], f"w{number}"))
        said = "1 of 3 files of the model is missing: 'model-00002-of-00003.safetensors'"
        self.assertEqual(self.missing(self.folder / "m"), said)
        self.assertEqual(self.missing(self.folder / "m/model-00001-of-00003.safetensors"), said)
        self.write("m/model-00002-of-00003.safetensors", safetensors([2], "w2"))
        self.assertEqual(tensordiff("check", self.folder / "m").returncode, 0)
        self.assertEqual(tensordiff(self.folder / "m", self.folder / "m").returncode, 0)

    def test_of_ranks(self):
        self.write("r/tp_rank_1_of_2.safetensors", safetensors([1]))
        self.assertEqual(self.missing(self.folder / "r"),
                         "1 of 2 files of the model is missing: 'tp_rank_0_of_2.safetensors'")
        self.write("f/rank-0-of-2/w.safetensors", safetensors([1]))
        self.assertEqual(self.missing(self.folder / "f"),
                         "1 of 2 files of the model is missing: 'rank-1-of-2'")

    def test_layers_are_no_shards(self):
        self.write("d/layer_3_of_12.safetensors", safetensors([1]))
        self.assertEqual(tensordiff("check", self.folder / "d").returncode, 0)


# Sanitizers need memory of their own.
@unittest.skipIf(os.environ.get("TENSORDIFF_SANITIZE"), "the limit is on memory")
class Bombs(Folder):
    def test_a_pickle_that_holds_itself_a_thousand_million_times(self):
        value = [7] * 10
        for _ in range(9):
            value = [value] * 10
        path = self.write("laughs.pkl", pickle.dumps(value, 2))
        self.assertLess(path.stat().st_size, 2000)
        run = tensordiff("check", path, memory=256 << 20)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertIn("--limit repeats=N raises it", run.stdout)

    def many(self, count):
        path = self.folder / "many.zip"
        data = npy()
        with zipfile.ZipFile(path, "w") as file:
            for i in range(count):
                file.writestr(zipfile.ZipInfo(f"d/{i:07}.npy"), data)
        return path

    def test_a_zip_of_a_million_members(self):
        run = tensordiff("show", self.many(1_000_001), memory=512 << 20)
        self.assertEqual(run.returncode, 2)
        self.assertIn("--limit members=N raises it", run.stderr)

    def test_as_many_members_as_are_allowed(self):
        run = tensordiff("show", self.many(200_000), "-o", "json", memory=512 << 20)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.count('"shape"'), 200_000)


def npy():
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }"
    header += b" " * (117 - len(header)) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + struct.pack("<f", 1)


if __name__ == "__main__":
    unittest.main()
