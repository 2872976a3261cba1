#!/usr/bin/env python3
"""Every type of element through every view of the server: each pair of one file's tensors, which
mixes the types, and a file of complex numbers. Nothing may fail but what the request got wrong."""

import struct
import unittest

from serving import ROOT, ServerTest

VIEWS = ("", "/slice?plane=abd&at={at}&as=f64", "/slice?plane=ab&at={at}&as=raw",
         "/slice?at={at}&as=f32", "/element?flat=0", "/profile?plane=abd&at={line}", "/axes",
         "/pyramid?at={at}", "/tile/a/0/0/0?at={at}", "/tile/b/0/0/0?at={at}",
         "/tile/d/0/0/0?at={at}", "/histogram?of=a", "/histogram?of=b&bins=7", "/histogram?of=d",
         "/worst?count=5")
SEARCHES = ({"in": "tol"}, {"in": "a", "op": "nan"}, {"in": "b", "op": "range", "lo": -1, "hi": 1},
            {"in": "d", "op": "range", "lo": 0.5, "dir": -1})


def complex_npy(values):
    header = ("{'descr': '<c16', 'fortran_order': False, 'shape': (%d, 4), }" % (len(values) // 8))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
            struct.pack(f"<{len(values)}d", *values))


class DTypes(ServerTest):
    def look(self, session, row):
        rank = len(row["shape"].split(",")) if row["shape"] else 0
        at = ",".join({rank - 2: "y", rank - 1: "x"}.get(i, "0") for i in range(rank))
        line = ",".join("*" if i == rank - 1 else "0" for i in range(rank))
        path = f"/sessions/{session}/pairs/{row['id']}"
        refused = []
        for view in VIEWS:
            answer = self.server.get(path + view.format(at=at, line=line))
            self.assertIn(answer.status, (200, 400, 422), f"{view}: {row}: {answer.body[:300]}")
            if answer.status != 200:
                refused.append((view, answer.json()["detail"]))
        for search in SEARCHES:
            answer = self.server.post(path + "/find", search)
            self.assertIn(answer.status, (200, 400, 422), f"{search}: {row}: {answer.body[:300]}")
        return refused

    def look_at_all(self, session, most):
        rows = self.server.rows(session)["rows"]
        self.assertTrue(rows)
        comparable = [row for row in rows if row["compared"]]
        for row in comparable[:most]:
            self.assertEqual(self.look(session, row), [], row)
        for row in [row for row in rows if not row["compared"]][:20]:
            self.look(session, row)
        return comparable

    def test_each_type_with_each(self):
        for name in ("formats/all_dtypes.safetensors", "formats/all_dtypes.pth"):
            (self.files / "one").write_bytes((ROOT / "tests/data" / name).read_bytes())
            comparable = self.look_at_all(self.server.compare(self.files / "one"), 60)
            self.assertGreater(len(comparable), 20)

    def test_complex_numbers(self):
        values = [float(i) for i in range(256)]
        (self.files / "c.npy").write_bytes(complex_npy(values))
        values[9] += 0.5
        (self.files / "d.npy").write_bytes(complex_npy(values))
        session = self.server.compare(self.files / "c.npy", self.files / "d.npy")
        row = self.server.rows(session)["rows"][0]
        self.assertEqual((row["status"], self.look(session, row)), ("different", []))
        worst = self.server.get(f"/sessions/{session}/pairs/{row['id']}/worst?count=1").json()
        self.assertEqual((worst["worst"][0]["at"], worst["worst"][0]["distance"]), ([1, 0], 0.5))

    def test_quantised_blocks(self):
        for path in sorted((ROOT / "tests/data/gguf").glob("*.gguf")):
            (self.files / path.name).write_bytes(path.read_bytes())
            session = self.server.compare(self.files / path.name, self.files / path.name)
            self.look_at_all(session, 40)


if __name__ == "__main__":
    unittest.main()
