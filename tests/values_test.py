#!/usr/bin/env python3
"""The values of a pair over HTTP: slices, tiles, profiles, histograms, searches."""

import math
import struct
import unittest

from serving import ServerTest, write_safetensors


class Values(ServerTest):
    def test_slices(self):
        path = self.pair("w", "/slice")
        answer = self.server.get(path + "?plane=abd&at=1,y,x&y=1:3&x=:2&as=f64")
        self.assertEqual(answer.headers["X-Shape"], "3,2,2")
        self.assertEqual(answer.headers["X-Planes"], "a,b,d")
        self.assertEqual(answer.headers["X-Offsets"], "0,32,64")
        self.assertEqual(answer.floats("d"), (16, 17, 20, 21, 16, 117, 20, 21, 0, 100, 0, 0))
        turned = self.server.get(path + "?plane=a&at=x,y,3")
        self.assertEqual((turned.headers["X-Shape"], turned.floats()),
                         ("1,3,2", (3, 15, 7, 19, 11, 23)))
        raw = self.server.get(path + "?plane=ab&at=0,0,1&as=raw")
        self.assertEqual((raw.headers["X-Dtype"], raw.headers["X-Offsets"]), ("f32,f32", "0,8"))
        self.assertEqual(raw.body, struct.pack("<f4xf4x", 1, 1))
        for wrong in ("?at=1,y", "?at=2,y,x", "?at=y,y,x", "?plane=z&at=0,y,x", "?at=0,y,x&y=2:1",
                      "?plane=d&at=0,0,0&as=raw", "?at=0,y,x&as=f16", "?at=-1,y,x",
                      "?at=0,y,x&x=a"):
            self.assertEqual(self.server.get(path + wrong).status, 400, wrong)

    def test_a_slice_is_not_sent_twice(self):
        path = self.pair("w", "/slice?at=0,y,x")
        tag = self.server.get(path).headers["ETag"]
        again = self.server.ask("GET", "/api/v1" + path, headers={"If-None-Match": tag})
        self.assertEqual((again.status, again.body), (304, b""))

    def test_scalars_and_empty_tensors(self):
        answer = self.server.get(self.pair("scalar", "/slice?at="))
        self.assertEqual((answer.headers["X-Shape"], answer.floats()), ("2,1,1", (7, 0, 7, 0)))
        answer = self.server.get(self.pair("empty", "/slice?at=y,x"))
        self.assertEqual((answer.headers["X-Shape"], answer.body), ("2,0,4", b""))
        self.assertEqual(self.server.get(self.pair("empty", "/pyramid?at=y,x")).status, 200)
        self.assertEqual(self.server.get(self.pair("scalar", "/pyramid?at=")).json()["levels"], 1)

    def test_one_element(self):
        element = self.server.get(self.pair("w", "/element?at=1,1,1")).json()
        self.assertEqual((element["flat"], element["a"]["text"], element["b"]["text"]),
                         ("17", "17", "117"))
        self.assertEqual((element["diff"], element["a"]["bits"]), (100, "41880000"))
        self.assertEqual(self.server.get(self.pair("w", "/element?flat=17")).json(), element)
        self.assertEqual(self.server.get(self.pair("w", "/element?flat=24")).status, 400)

    def test_profile_and_axes(self):
        answer = self.server.get(self.pair("w", "/profile?plane=ad&at=1,1,*"))
        self.assertEqual((answer.headers["X-Shape"], answer.floats()),
                         ("2,2,4", (16, 17, 18, 19) * 2 + (0, 100, 0, 0) * 2))
        axes = self.server.get(self.pair("w", "/axes")).json()["axes"]
        self.assertEqual([axis["maxAbs"] for axis in axes],
                         [[0, 100], [0, 100, 0], [0, 100, 0, 0]])

    def test_pyramid_and_tiles(self):
        side = 600
        values = [0.0] * (side * side)
        values[599 * side + 598] = 5.0
        values[10] = math.nan
        write_safetensors(self.files / "m.safetensors", {"m": ([side, side], [1.0] * side * side)})
        write_safetensors(self.files / "n.safetensors", {"m": ([side, side], values)})
        session = self.server.compare(self.files / "m.safetensors", self.files / "n.safetensors")
        pyramid = self.server.get(self.pair("m", "/pyramid?at=y,x", session)).json()
        self.assertEqual((pyramid["w"], pyramid["h"], pyramid["levels"]), (side, side, 3))
        self.assertEqual(pyramid["domain"]["d"]["max"], 4)
        tile = self.server.get(self.pair("m", f"/tile/d/2/0/0?at=y,x&v={pyramid['v']}", session))
        self.assertEqual(tile.headers["X-Shape"], "150,150")
        self.assertIn("immutable", tile.headers["Cache-Control"])
        cells = tile.floats()
        self.assertEqual((cells[-1], tile.headers["X-Nan"]), (4, "1"))
        self.assertTrue(math.isnan(cells[2]))
        edge = self.server.get(self.pair("m", "/tile/b/0/2/2?at=y,x", session))
        self.assertEqual((edge.headers["X-Shape"], edge.floats()[-2]), ("88,88", 5))
        for wrong in ("/tile/d/3/0/0?at=y,x", "/tile/d/0/3/0?at=y,x", "/tile/q/0/0/0?at=y,x"):
            self.assertEqual(self.server.get(self.pair("m", wrong, session)).status, 400)
        old = self.server.get(self.pair("m", "/tile/d/0/0/0?at=y,x&v=old", session))
        self.assertEqual(old.status, 409)

    def test_a_tile_that_cannot_wait_is_rough_until_all_was_seen(self):
        values = [0.0] * 20_000
        values[130] = 3.0
        for name, line in (("p", [1.0] * 20_000), ("q", values)):
            write_safetensors(self.files / f"{name}.safetensors", {"line": ([20_000], line)})
        session = self.server.compare(self.files / "p.safetensors", self.files / "q.safetensors")
        path = self.pair("line", "/tile/b/7/0/0?at=x", session)
        first = self.server.get(path + "&rough=1")
        self.assertEqual((first.headers["X-Rough"], first.floats()[1]), ("1", 0))
        self.assertNotIn("immutable", first.headers["Cache-Control"])
        exact = self.server.get(path)
        self.assertEqual((exact.headers["X-Rough"], exact.floats()[1]), (None, 3))
        again = self.server.get(path + "&rough=1")
        self.assertEqual((again.headers["X-Rough"], again.floats()[1]), (None, 3))
        mean = self.server.get(path + "&agg=mean")
        self.assertEqual(mean.floats()[1], 3 / 128)

    def test_histograms(self):
        spread = self.server.get(self.pair("w", "/histogram?of=d")).json()
        self.assertEqual((spread["edges"], spread["counts"], spread["zero"]), ([64, 128], [1], 23))
        values = self.server.get(self.pair("w", "/histogram?of=a&bins=2&lo=4&hi=8")).json()
        self.assertEqual((values["edges"], values["counts"], values["under"], values["over"]),
                         ([4, 6, 8], [2, 3], 4, 15))

    def test_worst_elements(self):
        worst = self.server.get(self.pair("w", "/worst?count=3")).json()["worst"]
        self.assertEqual(worst, [{"flat": "17", "at": [1, 1, 1], "a": 17, "b": 117,
                                  "distance": 100}])

    def test_find(self):
        def find(name="w", **query):
            return self.server.post(self.pair(name, "/find"), query).json()
        self.assertEqual([hit["flat"] for hit in find(**{"in": "tol"})["hits"]], ["17"])
        found = find(**{"in": "a", "op": "range", "lo": 5, "hi": 7, "limit": 10})
        self.assertEqual([hit["flat"] for hit in found["hits"]], ["5", "6", "7"])
        self.assertTrue(found["done"])
        last = find(**{"in": "a", "op": "range", "hi": 7, "dir": -1, "from": "6"})
        self.assertEqual((last["hits"][0]["flat"], last["next"]), ("6", "5"))
        self.assertEqual(find("nan", **{"in": "a", "op": "nan"})["hits"][0]["at"], [1])
        self.assertEqual(find("empty", **{"in": "a", "op": "nan"})["hits"], [])
        wrong = self.server.post(self.pair("w", "/find"), {"in": "c", "op": "eq"})
        self.assertEqual(wrong.status, 400)

    def test_what_is_not_there(self):
        session = self.session()
        for path in (f"/sessions/{session}/pairs/99", f"/sessions/{session}/pairs/x",
                     "/sessions/none", "/sources/none", "/jobs/none", "/exports/none", "/none",
                     "/uploads/none"):
            self.assertEqual(self.server.get(path).status, 404, path)


if __name__ == "__main__":
    unittest.main()
