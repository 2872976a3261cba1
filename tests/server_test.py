#!/usr/bin/env python3
"""Runs the server as a browser does: every route, on the real program. $TENSORDIFF says where."""

import concurrent.futures
import json
import math
import subprocess
import time
import unittest

from serving import DEMO, PROGRAM, ServerTest, columns, write_safetensors

A, B = DEMO / "reference.zip", DEMO / "constant_scale.tgz"


class Files(ServerTest):
    def test_says_what_it_is(self):
        health = self.server.get("/health").json()
        self.assertRegex(health["version"], r"^\d+\.\d+")
        self.assertEqual(health["limits"]["upload"], 500_000_000)
        self.assertIn("safetensors", [each["name"] for each in health["formats"]])
        self.assertEqual(len(health["stages"]), 13)
        self.assertGreater(health["memory"]["rss"], 0)
        self.assertIn("json", health["exports"])
        self.assertIsNone(health["open"])

    def test_lists_what_is_beneath_the_roots_and_nothing_else(self):
        roots = self.server.get("/fs").json()["entries"]
        self.assertEqual([entry["path"] for entry in roots], [str(self.files), str(DEMO)])
        listing = self.server.get(f"/fs?dir={self.files}&prefix=a").json()
        self.assertEqual([entry["name"] for entry in listing["entries"]], ["a.safetensors"])
        self.assertEqual(listing["entries"][0]["format"], "safetensors")
        self.assertIsNone(listing["parent"])
        for outside in ("/", "/etc", self.folder, f"{self.files}/..", f"{self.files}/../state"):
            self.assertEqual(self.server.get(f"/fs?dir={outside}").status, 403, outside)
        self.assertEqual(self.server.get(f"/fs?dir={self.files}/none").status, 404)

    def test_opens_a_path_once(self):
        first = self.server.post("/sources", {"path": str(A)})
        self.assertEqual(first.status, 201)
        source = first.json()
        self.assertEqual((source["name"], source["state"]), ("reference.zip", "ready"))
        self.assertEqual(self.server.post("/sources", {"path": str(A)}).json(), source)
        self.assertEqual(self.server.get(f"/sources/{source['id']}").json(), source)
        self.assertIn(source, self.server.get("/sources").json()["sources"])
        _, table = columns(self.server.get(f"/sources/{source['id']}/tensors").body)
        self.assertEqual(len(table["name"]), source["tensors"])
        self.assertIn("0_query", table["name"])
        self.assertEqual(dict(zip(table["name"], table["dtype"]))["0_query"], "f32")

    def test_refuses_paths_outside(self):
        (self.files / "link.safetensors").unlink(missing_ok=True)
        secret = self.folder / "secret.safetensors"
        write_safetensors(secret, {"w": ([1], [1])})
        (self.files / "link.safetensors").symlink_to(secret)
        linked = self.files / "linked"
        linked.mkdir(exist_ok=True)
        if not (linked / "x.safetensors").exists():
            (linked / "x.safetensors").symlink_to(secret)
        try:
            for path in (secret, "/etc/passwd", f"{self.files}/../secret.safetensors",
                         self.files / "link.safetensors", "/proc/self/environ"):
                answer = self.server.post("/sources", {"path": str(path)})
                self.assertEqual(answer.status, 403, path)
            # A folder may be read, but not what a link in it leads to.
            answer = self.server.post("/sources", {"path": str(linked)})
            self.assertEqual(answer.status, 422)
            self.assertIn("outside the folders that may be read", answer.json()["detail"])
        finally:
            (self.files / "link.safetensors").unlink()
            (linked / "x.safetensors").unlink()
        self.assertEqual(self.server.post("/sources", {"path": f"{self.files}/no"}).status, 404)

    def test_a_file_that_becomes_a_link_outside_is_not_read_again(self):
        secret, path = self.folder / "other.safetensors", self.files / "swapped.safetensors"
        write_safetensors(secret, {"secret": ([1], [1])})
        write_safetensors(path, {"w": ([1], [1])})
        session = self.server.compare(path, path)
        path.unlink()
        path.symlink_to(secret)
        try:
            self.server.post(f"/sessions/{session}/reload")
            state = self.server.wait(session)
            while state["state"] == "stale":
                state = self.server.wait(session)
            self.assertEqual(state["state"], "failed")
            self.assertIn("outside the folders that may be read", state["error"])
        finally:
            path.unlink()

    def test_says_why_a_file_cannot_be_read(self):
        (self.files / "junk.bin").write_bytes(b"no tensors here")
        answer = self.server.post("/sources", {"path": str(self.files / "junk.bin")})
        self.assertEqual(answer.status, 422)
        self.assertEqual(answer.headers["Content-Type"], "application/problem+json")
        self.assertIn("junk.bin", answer.json()["detail"])


class Sessions(ServerTest):
    def test_the_demo_is_one_request_away_and_shows_the_bug(self):
        answer = self.server.post("/demo")
        self.assertEqual(answer.status, 201)
        state = self.server.wait(answer.json()["id"])
        self.assertEqual(state["state"], "done")
        self.assertEqual(state["summary"]["verdict"], "different")
        self.assertEqual(state["summary"]["pairs"], 39)
        first = state["firstDivergence"]
        row = self.server.rows(state["id"])["rows"][first["pair"]]
        self.assertEqual((row["layer"], row["stage"]), (1, "post_attn"))
        self.assertTrue(first["created"])
        self.assertTrue(any(each["pair"] == first["pair"] for each in state["findings"]))

    def test_rows_agree_with_the_report_of_the_command_line(self):
        session = self.server.compare(A, B)
        rows = self.server.rows(session)["rows"]
        report = json.loads(subprocess.run([PROGRAM, A, B, "-o", "report"], capture_output=True,
                                           check=False).stdout)
        self.assertEqual(len(rows), len(report["pairs"]))
        for row, pair in zip(rows, report["pairs"]):
            for ours, theirs in (("nameA", "name_a"), ("status", "status"), ("layer", "layer"),
                                 ("verdict", "verdict"), ("matchedBy", "matched_by")):
                self.assertEqual(row[ours], pair[theirs])
            for ours, theirs in (("maxAbs", "max_abs"), ("relL2", "rel_l2"), ("cosine", "cosine"),
                                 ("exceeding", "exceeding"), ("rtol", "rtol")):
                self.assertEqual(row[ours], pair["diff"][theirs])
        export = self.server.post(f"/sessions/{session}/export", {"format": "json"}).json()
        answer = self.server.ask("GET", export["url"])
        self.assertIn("attachment", answer.headers["Content-Disposition"])
        exported = answer.json()
        self.assertEqual(exported["pairs"], report["pairs"])
        self.assertEqual(exported["findings"], report["findings"])

    def test_columns_and_json_say_the_same(self):
        session = self.session()
        answer = self.server.get(f"/sessions/{session}/pairs")
        self.assertEqual(answer.headers["Content-Type"], "application/vnd.tensordiff.columns")
        header, table = columns(answer.body)
        rows = self.server.rows(session)
        self.assertEqual((header["n"], header["rev"], header["full"]),
                         (rows["n"], rows["rev"], True))
        words = ["pending", "identical", "equal", "close", "different", "incomparable", "error",
                 "only_a", "only_b", "single"]
        for i, row in enumerate(rows["rows"]):
            self.assertEqual([name for name in row if name in table], list(table))
            for name, value in row.items():
                if name not in table:
                    self.assertIn(value, (None, ""), f"{name} was left out")
                    continue
                cell = table[name][i]
                if name == "status":
                    cell = words[cell]
                elif name == "verdict":
                    cell = [None, "match", "precision", "bug"][cell]
                elif isinstance(cell, float) and math.isnan(cell):
                    cell = None
                self.assertEqual(cell, value, name)

    def test_only_the_columns_that_are_asked_for(self):
        session = self.session()
        _, table = columns(self.server.get(f"/sessions/{session}/pairs?columns=id,nameA").body)
        self.assertEqual(list(table), ["id", "nameA"])
        self.assertEqual(self.server.get(f"/sessions/{session}/pairs?columns=id,no").status, 400)

    def test_what_is_asked_of_another_run_is_refused(self):
        session = self.session()
        rows = self.server.rows(session)
        path = self.pair("w", "", session)
        version = self.server.get(path).json()["v"]
        self.assertEqual(self.server.get(f"{path}?run={rows['run']}").status, 200)
        self.assertEqual(self.server.get(f"{path}?run={rows['run'] + 1}").status, 409)
        order = f"/sessions/{session}/order?run={rows['run'] + 1}"
        self.assertEqual(self.server.put(order, {"ids": [1]}).status, 409)
        for what in ("slice?at=0,y,x", "element?at=0,0,0", "axes?", "pyramid?at=0,y,x",
                     "histogram?of=d", "worst?count=1", "tile/d/0/0/0?at=0,y,x"):
            self.assertEqual(self.server.get(f"{path}/{what}&v={version}").status, 200, what)
            self.assertEqual(self.server.get(f"{path}/{what}&v=old").status, 409, what)
        gone = f"/sessions/{session}/pairs/99/axes"
        self.assertEqual(self.server.get(f"{gone}?v={version}").status, 409)
        self.assertEqual(self.server.get(gone).status, 404)

    def test_only_what_changed_is_sent_again(self):
        session = self.session()
        rev = self.server.rows(session)["rev"]
        self.assertEqual(self.server.rows(session, rev)["rows"], [])
        path = self.pair("w", "/note", session)
        self.assertEqual(self.server.put(path, {"text": "look <b>here</b>"}).status, 204)
        changed = self.server.rows(session, rev)
        self.assertEqual([row["nameA"] for row in changed["rows"]], ["w"])
        self.assertFalse(changed["full"])
        self.assertEqual(changed["rows"][0]["note"], 1)
        detail = self.server.get(self.pair("w", "", session)).json()
        self.assertEqual(detail["note"], "look <b>here</b>")

    def test_unpaired_tensors_are_rows(self):
        session = self.session()
        row = self.row(session, "alone_a")
        self.assertEqual((row["status"], row["nameB"], row["shapeA"]), ("only_a", "", "2"))
        detail = self.server.get(self.pair("alone_a", "", session)).json()
        self.assertIsNone(detail["b"])
        self.assertEqual(detail["a"]["stats"]["max"], 2)

    def test_new_tolerance_compares_again(self):
        session = self.session()
        run = self.server.rows(session)["run"]
        answer = self.server.ask("PATCH", f"/api/v1/sessions/{session}",
                                 {"policy": {"atol": 1000, "rtol": 0}})
        self.assertEqual(answer.status, 200)
        state = self.server.wait(session)
        self.assertEqual(state["policy"]["atol"], 1000)
        self.assertEqual(self.row(session, "w")["status"], "close")
        self.assertGreater(self.server.rows(session)["run"], run)
        for wrong in ({"policy": {"atol": -1}}, {"match": {"strategies": ["magic"]}}, {"a": []},
                      {"a": ["none"]}, {"mode": "other"}):
            answer = self.server.ask("PATCH", f"/api/v1/sessions/{session}", wrong)
            self.assertEqual(answer.status, 400, wrong)

    def test_axes_by_hand(self):
        write_safetensors(self.files / "ij.safetensors",
                          {"w": ([3, 3], [float(i) for i in range(9)])})
        write_safetensors(self.files / "ji.safetensors",
                          {"w": ([3, 3], [float(3 * (i % 3) + i // 3) for i in range(9)])})
        server = self.server
        session = server.compare(self.files / "ij.safetensors", self.files / "ji.safetensors")
        pair = f"/sessions/{session}/pairs/0"

        def say(dims):
            answer = server.ask("PATCH", "/api/v1" + pair, {"dims": dims})
            self.assertEqual(answer.status, 202, answer.body)
            server.wait(session)
            return server.get(pair).json()
        self.assertEqual(server.get(pair).json()["status"], "different")
        turned = say("i j -> j i")
        self.assertEqual((turned["status"], turned["dims"]), ("equal", "i j -> j i"))
        self.assertEqual(turned["transforms"]["b"], [{"op": "permute", "order": [1, 0]}])
        refused = server.ask("PATCH", "/api/v1" + pair, {"dims": "i j k -> j i k"})
        self.assertEqual(refused.status, 422, refused.body)
        self.assertIn("--dims", refused.json()["detail"])
        self.assertEqual(server.get(pair).json()["status"], "equal")
        again = say(None)
        self.assertEqual((again["status"], again["dims"]), ("different", None))
        for wrong in ("i j ->", 7):
            self.assertEqual(server.ask("PATCH", "/api/v1" + pair, {"dims": wrong}).status, 400)

    def test_pairs_by_hand(self):
        write_safetensors(self.files / "x.safetensors", {"p": ([2], [1, 2]), "q": ([2], [3, 4])})
        write_safetensors(self.files / "y.safetensors", {"r": ([2], [1, 2]), "s": ([2], [3, 5])})
        session = self.server.compare(self.files / "x.safetensors", self.files / "y.safetensors")
        path = f"/sessions/{session}/pairings"
        fingerprint = self.server.get(path).json()["fingerprint"]
        answer = self.server.put(path, {"pairs": [{"a": "p", "b": "s"}], "only": True,
                                        "fingerprint": fingerprint})
        self.assertEqual(answer.status, 200, answer.body)
        self.server.wait(session)
        rows = {row["nameA"] + "/" + row["nameB"]: row for row in self.server.rows(session)["rows"]}
        self.assertEqual(set(rows), {"p/s", "q/", "/r"})
        self.assertEqual(rows["p/s"]["matchedBy"], "manual")
        stale = self.server.put(path, {"pairs": [{"a": "p", "b": "gone"}], "fingerprint": "old"})
        self.assertEqual(stale.status, 409)
        self.assertEqual(stale.json()["stale"],
                         [{"a": "p", "b": "gone", "why": "B has no such tensor"}])

    def test_order_of_rows(self):
        session = self.session()
        ids = [row["id"] for row in self.server.rows(session)["rows"]]
        wanted = [ids[-1], ids[1]]
        self.assertEqual(self.server.put(f"/sessions/{session}/order", {"ids": wanted}).status, 200)
        rows = sorted(self.server.rows(session)["rows"], key=lambda row: row["order"])
        self.assertEqual([row["id"] for row in rows][:2], wanted)
        self.assertEqual(sorted(row["order"] for row in rows), list(range(len(rows))))
        self.assertTrue(self.server.get(f"/sessions/{session}").json()["ordered"])

    def test_explore_one_file(self):
        session = self.server.compare(self.files / "a.safetensors")
        state = self.server.get(f"/sessions/{session}").json()
        self.assertEqual((state["mode"], state["b"]), ("explore", []))
        rows = self.server.rows(session)["rows"]
        singles = [row for row in rows if row["status"] == "single"]
        self.assertEqual(len(singles), 5)
        self.assertEqual(len(rows) - len(singles), 5 * 4 // 2)
        single = next(row for row in singles if row["nameA"] == "w")
        answer = self.server.get(f"/sessions/{session}/pairs/{single['id']}/slice?at=1,2,x")
        self.assertEqual(answer.floats(), (20, 21, 22, 23))

    def test_several_files_against_one(self):
        write_safetensors(self.files / "p.safetensors", {"w1": ([2], [1, 2])})
        write_safetensors(self.files / "q.safetensors", {"w2": ([2], [3, 4])})
        write_safetensors(self.files / "both.safetensors",
                          {"w1": ([2], [1, 2]), "w2": ([2], [3, 4])})
        sources = [self.server.source(self.files / f"{name}.safetensors")
                   for name in ("p", "q", "both")]
        answer = self.server.post("/sessions", {"a": sources[:2], "b": sources[2:]})
        state = self.server.wait(answer.json()["id"])
        self.assertEqual((state["mode"], state["summary"]["identical"]), ("mixed", 2))

    def test_exports(self):
        session = self.session()
        for name in self.server.get("/health").json()["exports"]:
            export = self.server.post(f"/sessions/{session}/export", {"format": name}).json()
            answer = self.server.ask("GET", f"{export['url']}?token={self.server.token}",
                                     headers={"X-Token": ""})
            self.assertEqual(answer.status, 200, name)
            self.assertIn(b"w", answer.body)
        wrong = self.server.post(f"/sessions/{session}/export", {"format": "doc"})
        self.assertEqual(wrong.status, 400)

    def test_sessions_are_listed_and_removed(self):
        session = self.session()
        listed = self.server.get("/sessions").json()["sessions"]
        mine = next(each for each in listed if each["id"] == session)
        self.assertEqual((mine["a"], mine["b"], mine["verdict"]),
                         ("a.safetensors", "b.safetensors", "different"))
        self.assertEqual(self.server.ask("DELETE", f"/api/v1/sessions/{session}").status, 204)
        self.assertEqual(self.server.get(f"/sessions/{session}").status, 404)

    def test_news_end_with_the_job(self):
        session = self.server.post("/demo").json()["id"]
        path = f"/api/v1/sessions/{session}/events?token={self.server.token}"
        answer = self.server.ask("GET", path, headers={"X-Token": ""})
        self.assertEqual(answer.headers["Content-Type"], "text/event-stream")
        events = answer.body.decode().split("\n\n")
        last = next(each for each in reversed(events) if each.startswith("event: rev"))
        self.assertEqual(json.loads(last.split("data: ")[1])["state"], "done")

    def test_a_changed_file_is_stale_until_it_is_reloaded(self):
        write_safetensors(self.files / "c.safetensors", {"w": ([2], [1, 2])})
        session = self.server.compare(self.files / "c.safetensors", self.files / "c.safetensors")
        self.assertEqual(self.server.get(f"/sessions/{session}").json()["state"], "done")
        new = self.files / "c.new"
        write_safetensors(new, {"w": ([3], [1, 2, 3])})
        new.replace(self.files / "c.safetensors")
        time.sleep(1.1)
        state = self.server.get(f"/sessions/{session}").json()
        self.assertEqual((state["state"], state["a"][0]["state"]), ("stale", "stale"))
        self.assertEqual(self.server.post(f"/sessions/{session}/reload").status, 202)
        self.assertEqual(self.server.wait(session)["state"], "done")
        self.assertEqual(self.row(session, "w")["shapeA"], "3")


class Many(ServerTest):
    def test_64_clients_at_once(self):
        session = self.session()
        path = self.pair("w", "/slice?at=1,y,x&plane=a", session)
        expected = self.server.get(path).body

        def client(_):
            return {self.server.get(path).body for _ in range(5)}

        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            answers = set().union(*pool.map(client, range(64)))
        self.assertEqual(answers, {expected})

    def test_one_connection_serves_many_requests(self):
        connection = self.server.connect()
        for _ in range(20):
            answer = self.server.ask("GET", "/api/v1/health", connection=connection)
            self.assertEqual(answer.status, 200)
        connection.close()


if __name__ == "__main__":
    unittest.main()
