#!/usr/bin/env python3
"""What lasts: uploads and sessions over restarts, also after kill -9, and the earlier debugger's
five routes."""

import json
import pathlib
import resource
import tempfile
import time
import unittest
import uuid

from serving import DEMO, Server, write_safetensors

A, B = DEMO / "reference.zip", DEMO / "constant_scale.tgz"
CHUNK = 32 << 20


def write_large(path, elements):
    """A safetensors file of one f32 tensor; nearly all of it is a hole that takes no disk."""
    header = json.dumps({"w": {"dtype": "F32", "shape": [elements],
                               "data_offsets": [0, 4 * elements]}}).encode()
    with open(path, "wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 4 * elements)


def upload(server, path):
    data = pathlib.Path(path).read_bytes()
    begun = server.post("/uploads", {"name": pathlib.Path(path).name, "size": len(data)})
    assert begun.status == 201, begun.body
    begun = begun.json()
    for k in range(begun["chunks"]):
        answer = server.put(f"/uploads/{begun['id']}/{k}", data[k * CHUNK:(k + 1) * CHUNK])
        assert answer.status == 204, answer.body
    return server.post(f"/uploads/{begun['id']}/complete")


def form(files, fields=()):
    """A multipart body as browsers make it, and its type."""
    mark = uuid.uuid4().hex
    body = b""
    for name, path in files:
        body += (f'--{mark}\r\nContent-Disposition: form-data; name="{name}"; '
                 f'filename="{pathlib.Path(path).name}"\r\n'
                 "Content-Type: application/octet-stream\r\n\r\n").encode()
        body += pathlib.Path(path).read_bytes() + b"\r\n"
    for name, value in fields:
        body += (f'--{mark}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
                 f"{value}\r\n").encode()
    return body + f"--{mark}--\r\n".encode(), f"multipart/form-data; boundary={mark}"


class StateTest(unittest.TestCase):
    """A folder for what lasts, and servers that start on it again and again."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name).resolve()
        self.state = self.folder / "state"

    def start(self, *arguments):
        server = Server(self.state, "--root", DEMO, "--root", self.folder, *arguments)
        self.addCleanup(server.stop)
        return server

    def uploads_on_disk(self):
        folder = self.state / "uploads"
        return [path for path in folder.rglob("*") if path.is_file()] if folder.exists() else []


class Lasting(StateTest):
    def test_an_upload_is_compared_and_goes_with_its_session(self):
        server = self.start()
        sources = []
        for path in (A, B):
            answer = upload(server, path)
            self.assertEqual(answer.status, 201, answer.body)
            source = answer.json()
            self.assertEqual((source["name"], source["kind"], source["path"]),
                             (path.name, "upload", None))
            sources.append(source["id"])
        session = server.post("/sessions", {"a": sources[:1], "b": sources[1:]}).json()["id"]
        self.assertEqual(server.wait(session)["summary"]["verdict"], "different")
        self.assertEqual(len(self.uploads_on_disk()), 2)
        self.assertEqual(server.ask("DELETE", f"/api/v1/sessions/{session}").status, 204)
        self.assertEqual(self.uploads_on_disk(), [])
        self.assertEqual(server.get(f"/sources/{sources[0]}").status, 404)

    def test_a_later_start_with_other_roots_reads_nothing_outside_them(self):
        for name in ("first", "second"):
            (self.folder / name).mkdir()
        path = self.folder / "first" / "w.safetensors"
        write_safetensors(path, {"w": ([1], [1])})
        first = Server(self.state, "--root", self.folder / "first")
        self.addCleanup(first.stop)
        session = first.compare(path, path)
        source = first.source(path)
        first.stop()
        second = Server(self.state, "--root", self.folder / "second")
        self.addCleanup(second.stop)
        facts = second.get(f"/sources/{source}").json()
        self.assertEqual((facts["state"], facts["tensors"]), ("gone", None))
        self.assertIn("outside the folders that may be read", facts["problems"][0]["message"])
        self.assertEqual(second.get(f"/sources/{source}/tensors").status, 422)
        second.post(f"/sessions/{session}/reload")
        self.assertIn("outside the folders", json.dumps(second.get(f"/sources/{source}").json()))

    def test_limits_of_uploads(self):
        server = self.start("--upload-limit", "1MB")
        answer = server.post("/uploads", {"name": "x.zip", "size": 1_000_001})
        self.assertEqual(answer.status, 413)
        self.assertIn("--upload-limit", answer.json()["hint"])
        for body in ({"name": "x", "size": 0}, {"name": "x", "size": -1}, {"size": 1}, {}):
            self.assertEqual(server.post("/uploads", body).status, 400, body)
        begun = server.post("/uploads", {"name": "x", "size": 10}).json()["id"]
        self.assertEqual(server.put(f"/uploads/{begun}/0", b"x" * 11).status, 413)
        self.assertEqual(server.put(f"/uploads/{begun}/0", b"x" * 9).status, 400)
        self.assertEqual(server.put(f"/uploads/{begun}/1", b"x").status, 404)
        self.assertEqual(server.post(f"/uploads/{begun}/complete").status, 409)
        self.assertEqual(server.put(f"/uploads/{begun}/0", b"x" * 10).status, 204)
        junk = server.post(f"/uploads/{begun}/complete")
        self.assertEqual(junk.status, 422)
        self.assertNotIn(str(self.state), junk.json()["detail"])
        self.assertEqual(self.uploads_on_disk(), [])

    def test_a_disk_without_room_is_said_so(self):
        server = self.start("--upload-limit", "1000000GB")
        answer = server.post("/uploads", {"name": "x.zip", "size": 10 ** 15})
        self.assertEqual(answer.status, 507)

    def test_a_disk_that_fills_up_in_the_middle_of_a_chunk_is_said_so(self):
        # No file may grow beyond 2 MiB: the write itself fails, as on a full disk.
        def no_large_files():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))
        server = Server(self.state, "--root", DEMO, preexec_fn=no_large_files,
                        restore_signals=False)
        self.addCleanup(server.stop)
        begun = server.post("/uploads", {"name": "x.zip", "size": 5 << 20}).json()["id"]
        answer = server.put(f"/uploads/{begun}/0", b"x" * (5 << 20))
        self.assertEqual(answer.status, 507)
        self.assertIn("cannot keep the upload", answer.json()["detail"])
        self.assertIn("open the file by its path", answer.json()["hint"])
        self.assertEqual(server.get(f"/uploads/{begun}").json()["received"], [])
        self.assertEqual(server.ask("DELETE", f"/api/v1/uploads/{begun}").status, 204)
        self.assertEqual(self.uploads_on_disk(), [])
        self.assertEqual(upload(server, A).status, 201)  # What fits is taken all the same.

    def test_an_upload_goes_on_after_kill_9(self):
        path = self.folder / "big.safetensors"
        write_large(path, (2 * CHUNK + 1000) // 4)
        data = path.read_bytes()
        server = self.start()
        begun = server.post("/uploads", {"name": "big.safetensors", "size": len(data)}).json()
        self.assertEqual(begun["chunks"], 3)
        self.assertEqual(server.put(f"/uploads/{begun['id']}/1", data[CHUNK:2 * CHUNK]).status, 204)
        # In the middle of another chunk.
        connection = server.connect()
        connection.putrequest("PUT", f"/api/v1/uploads/{begun['id']}/0")
        connection.putheader("X-Token", server.token)
        connection.putheader("Content-Length", str(CHUNK))
        connection.endheaders()
        connection.send(data[:1 << 20])
        time.sleep(0.1)
        server.kill()
        connection.close()

        server = self.start()
        again = server.get(f"/uploads/{begun['id']}").json()
        self.assertEqual(again["received"], [[1, 2]])
        for k in (0, 2):
            answer = server.put(f"/uploads/{begun['id']}/{k}", data[k * CHUNK:(k + 1) * CHUNK])
            self.assertEqual(answer.status, 204)
        self.assertEqual(server.post(f"/uploads/{begun['id']}/complete").json()["tensors"], 1)
        self.assertEqual(self.uploads_on_disk()[0].read_bytes(), data)

    def test_a_session_opens_again_after_kill_9(self):
        server = self.start()
        session = server.compare(A, B, name="mine", policy={"atol": 1e-3, "rtol": 0})
        rows = server.rows(session)["rows"]
        server.put(f"/sessions/{session}/pairs/3/note", {"text": "look here"})
        server.put(f"/sessions/{session}/order", {"ids": [5, 4]})
        before = server.get(f"/sessions/{session}").json()
        slice_before = server.get(f"/sessions/{session}/pairs/3/slice?at=0,y,x").body
        server.kill()

        server = self.start()
        listed = server.get("/sessions").json()["sessions"]
        self.assertEqual([(each["id"], each["name"], each["verdict"], each["pairs"])
                          for each in listed], [(session, "mine", "different", 39)])
        after = server.get(f"/sessions/{session}").json()
        for key in ("name", "mode", "state", "policy", "summary", "firstDivergence", "findings",
                    "fingerprint", "notes"):
            self.assertEqual(after[key], before[key], key)
        self.assertIsNone(after["job"])  # Nothing was computed again.
        again = server.rows(session)["rows"]
        self.assertEqual(again[3]["note"], 1)
        self.assertEqual((again[5]["order"], again[4]["order"]), (0, 1))
        for row, same in zip(rows, again):
            for key in ("nameA", "status", "maxAbs", "relL2", "ratio", "verdict"):
                self.assertEqual(row[key], same[key])
        self.assertEqual(server.get(f"/sessions/{session}/pairs/3/slice?at=0,y,x").body,
                         slice_before)

    def test_pairs_by_hand_are_there_after_a_restart(self):
        for name, tensors in (("x", {"p": ([2], [1, 2])}), ("y", {"q": ([2], [5, 9])})):
            write_safetensors(self.folder / f"{name}.safetensors", tensors)
        server = self.start()
        session = server.compare(self.folder / "x.safetensors", self.folder / "y.safetensors",
                                 match={"strategies": ["exact"]})
        self.assertEqual(server.get(f"/sessions/{session}").json()["summary"]["pairs"], 0)
        server.put(f"/sessions/{session}/pairings", {"pairs": [{"a": "p", "b": "q"}]})
        server.wait(session)
        server.stop()
        server = self.start()
        rows = server.rows(session)["rows"]
        self.assertEqual([(row["nameA"], row["nameB"], row["matchedBy"]) for row in rows],
                         [("p", "q", "manual")])
        pairings = server.get(f"/sessions/{session}/pairings").json()
        self.assertEqual(pairings["pairs"], [{"a": "p", "b": "q", "by": "hand"}])

    def test_a_comparison_that_was_killed_is_done_again(self):
        for name in "ab":
            write_large(self.folder / f"{name}.safetensors", 256 << 20)  # 1 GiB of nothing.
        server = self.start()
        sources = [server.source(self.folder / f"{name}.safetensors") for name in "ab"]
        session = server.post("/sessions", {"a": sources[:1], "b": sources[1:]}).json()["id"]
        server.kill()
        server = self.start()
        state = server.get(f"/sessions/{session}").json()
        self.assertIsNotNone(state["job"])
        self.assertEqual(server.wait(session, 300)["summary"]["identical"], 1)

    def test_settings_changed_meanwhile_compare_again_without_a_stop(self):
        for name in "ab":
            write_large(self.folder / f"{name}.safetensors", 256 << 20)
        server = self.start()
        sources = [server.source(self.folder / f"{name}.safetensors") for name in "ab"]
        session = server.post("/sessions", {"a": sources[:1], "b": sources[1:]}).json()["id"]
        server.ask("PATCH", f"/api/v1/sessions/{session}", {"policy": {"atol": 1}})
        state = server.wait(session)
        self.assertEqual((state["state"], state["policy"]["atol"]), ("done", 1))
        # Results of other settings do not come back after a crash.
        server.ask("PATCH", f"/api/v1/sessions/{session}", {"policy": {"atol": 2}})
        server.kill()
        server = self.start()
        self.assertIsNotNone(server.get(f"/sessions/{session}").json()["job"])

    def test_a_job_is_cancelled(self):
        for name in "ab":
            write_large(self.folder / f"{name}.safetensors", 1 << 30)  # 4 GiB of nothing.
        server = self.start()
        sources = [server.source(self.folder / f"{name}.safetensors") for name in "ab"]
        begun = server.post("/sessions", {"a": sources[:1], "b": sources[1:]}).json()
        self.assertEqual(server.get(f"/jobs/{begun['job']}").json()["state"], "running")
        while not server.rows(begun["id"])["rows"]:
            time.sleep(0.01)
        # What is not compared yet is looked at in the layout that it will be compared in.
        pair = server.get(f"/sessions/{begun['id']}/pairs/0").json()
        self.assertEqual((pair["status"], pair["shape"], pair["metrics"]),
                         ("pending", [1 << 30], None))
        self.assertEqual(server.ask("DELETE", f"/api/v1/jobs/{begun['job']}").status, 202)
        self.assertEqual(server.wait(begun["id"])["state"], "cancelled")
        self.assertEqual(server.get(f"/jobs/{begun['job']}").json()["state"], "cancelled")

    def test_a_file_that_changed_while_nobody_looked(self):
        path = self.folder / "x.safetensors"
        write_safetensors(path, {"p": ([2], [1, 2])})
        server = self.start()
        session = server.compare(path, path)
        server.stop()
        write_safetensors(path, {"p": ([3], [1, 2, 3])})
        server = self.start()
        self.assertEqual(server.get(f"/sessions/{session}").json()["state"], "stale")
        answer = server.get(f"/sessions/{session}/pairs/0/slice?at=x")
        self.assertEqual(answer.status, 409)
        path.unlink()
        time.sleep(1.1)
        state = server.get(f"/sessions/{session}").json()
        self.assertEqual((state["state"], state["a"][0]["state"]), ("stale", "gone"))
        self.assertEqual(len(server.rows(session)["rows"]), 1)

    def test_a_second_server_has_its_own_sessions(self):
        first = self.start()
        first.compare(A, A)
        second = self.start()
        self.assertEqual(second.get("/sessions").json()["sessions"], [])
        self.assertEqual(len(first.get("/sessions").json()["sessions"]), 1)


class EarlierRoutes(StateTest):
    def start(self, *arguments):
        return super().start("--legacy-open", *arguments)

    def ask(self, server, path, **body):
        return server.ask("POST", path, body, headers={"X-Token": ""})

    def test_two_archives(self):
        server = self.start()
        body, kind = form([("model1", A), ("model2", B)], [("upload_mode", "dual_archive")])
        answer = server.ask("POST", "/upload", body, {"X-Token": "", "Content-Type": kind})
        self.assertEqual(answer.status, 200, answer.body)
        matches = answer.json()["matches"]
        self.assertEqual(len(matches), 39)
        query = next(i for i, match in enumerate(matches)
                     if (match["layer_num"], match["stage"]) == (0, "query"))
        match = matches[query]
        self.assertEqual((match["model1_file"], match["match_type"]), ("0_query", "layer-stage"))
        self.assertEqual(set(match["diff_stats"]), {
            "shape_match", "original_shape1", "original_shape2", "final_shape", "reshaped",
            "abs_diff_mean", "abs_diff_max", "rel_diff_mean", "mse", "cosine_sim"})
        shape = match["diff_stats"]["final_shape"]
        values = self.ask(server, "/get_tensor_values", match_index=query, count=4,
                          dimension_indices=[0] * len(shape), get_argmax=True).json()
        self.assertEqual(values["tensor_shape"], shape)
        self.assertEqual((len(values["tensor1_values"]), len(values["tensor2_values"])), (4, 4))
        self.assertEqual(len(values["argmax_coordinates"]), len(shape))
        shapes = self.ask(server, "/get_tensor_values", match_index=query, get_final_shape=True)
        self.assertEqual(shapes.json()["tensor_shape"], shape)

        moved = self.ask(server, "/reorder_matches", old_index=0, new_index=2).json()["matches"]
        self.assertEqual(moved[2]["model1_file"], matches[0]["model1_file"])
        grouped = self.ask(server, "/regroup_matches", group_by="layer",
                           sort_by="difference").json()
        self.assertIn("layer 0", grouped["groups"])
        worst = [match["diff_stats"]["abs_diff_max"] for match in grouped["matches"]]
        self.assertEqual(worst, sorted(worst, reverse=True))
        paired = self.ask(server, "/manual_pair", model1_file="0_query", model2_file="0_key").json()
        made = paired["matches"][paired["match_index"]]
        self.assertEqual((made["model1_file"], made["model2_file"], made["match_type"]),
                         ("0_query", "0_key", "manual"))

    def test_one_file(self):
        path = self.folder / "one.safetensors"
        write_safetensors(path, {name: ([2], [1, 2]) for name in "abc"})
        server = self.start()
        body, kind = form([("single_file", path)])
        answer = server.ask("POST", "/upload", body, {"X-Token": "", "Content-Type": kind}).json()
        self.assertEqual((answer["upload_mode"], len(answer["matches"])), ("single_file", 3))

    def test_errors(self):
        server = self.start()
        self.assertIn("error", self.ask(server, "/get_tensor_values", match_index=0).json())
        junk = self.folder / "junk.zip"
        junk.write_bytes(b"PK nonsense")
        body, kind = form([("model1", junk), ("model2", junk)])
        answer = server.ask("POST", "/upload", body, {"X-Token": "", "Content-Type": kind})
        self.assertEqual(answer.status, 400)
        self.assertIn("junk.zip", answer.json()["error"])
        self.assertEqual(self.uploads_on_disk(), [])


if __name__ == "__main__":
    unittest.main()
