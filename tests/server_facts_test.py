#!/usr/bin/env python3
"""A session tells what the command line tells, of inputs that are more than a file of tensors."""

import json
import random
import struct
import subprocess
import unittest

from serving import PROGRAM, ServerTest, write_safetensors

ROWS, COLUMNS = 6, 8


def numbers(seed, count=ROWS * COLUMNS):
    rng = random.Random(seed)
    return [rng.gauss(0, 1) for _ in range(count)]


def write_npy(path, values):
    head = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({ROWS}, {COLUMNS}), }}"
    head = head.ljust(117) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() +
                     struct.pack(f"<{len(values)}f", *values))


class Facts(ServerTest):
    def test_what_a_dump_says_beside_its_tensors_counts(self):
        """msprobe lists in dump.json what was computed when; names alone tell another order."""
        names = ["zeta", "middle", "alpha"]  # In the order of computing.
        sides = [self.files / "a", self.files / "b"]
        for side, factor in zip(sides, (1, 2)):
            folder = side / "step0/rank0/dump_tensor_data"
            folder.mkdir(parents=True)
            calls = [f"Module.model.layers.0.{name}.Linear.forward.0" for name in names]
            (folder.parent / "dump.json").write_text(json.dumps({"data": dict.fromkeys(calls, {})}))
            for i, call in enumerate(calls):
                write_npy(folder / f"{call}.output.0.npy",
                          [value * (factor if i > 0 else 1) for value in numbers(i)])
        told = subprocess.run([PROGRAM, *sides, "-o", "report"], capture_output=True,
                              check=False).stdout
        first = json.loads(told)["first_divergence"]
        self.assertEqual(first["name_a"], "model.layers.0.middle")
        session = self.server.get(f"/sessions/{self.server.compare(*sides)}").json()
        self.assertEqual(session["firstDivergence"]["nameA"], first["name_a"])

    def test_parts_of_a_fused_tensor_have_values_on_either_side(self):
        parts = {name: numbers(name) for name in "qkv"}
        place = "model.layers.0.self_attn."
        split = {f"{place}{name}_proj.weight": ([ROWS, COLUMNS], parts[name]) for name in "qkv"}
        fused = {f"{place}qkv_proj.weight": ([3 * ROWS, COLUMNS], sum(parts.values(), []))}
        for file, tensors in (("split", split), ("fused", fused)):
            write_safetensors(self.files / f"{file}.safetensors", tensors)
        for a, b in (("split", "fused"), ("fused", "split")):
            session = self.server.compare(*(self.files / f"{x}.safetensors" for x in (a, b)))
            rows = self.server.rows(session)["rows"]
            self.assertEqual(len(rows), 3)
            for row, part in zip(rows, "qkv"):
                answer = self.server.get(f"/sessions/{session}/pairs/{row['id']}/slice?plane=a"
                                         f"&at=y,x&y=0:{ROWS}&x=0:{COLUMNS}&as=f32")
                self.assertEqual(answer.status, 200, answer.body)
                for found, wanted in zip(answer.floats(), parts[part]):
                    self.assertAlmostEqual(found, wanted, places=5)


if __name__ == "__main__":
    unittest.main()
