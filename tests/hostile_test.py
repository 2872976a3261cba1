#!/usr/bin/env python3
"""Requests that must not get through, on the real program: from other pages, without the token, out
of the roots, too large, too slow, compressed."""

import gzip
import json
import socket
import time
import unittest

from serving import DEMO, ServerTest, write_safetensors


def head(server, method="GET", path="/api/v1/health", **headers):
    lines = {"Host": server.host, "X_Token": server.token, "Connection": "close", **headers}
    text = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items()
                   if value is not None)
    return f"{method} {path} HTTP/1.1\r\n{text}\r\n".encode()


class Hostile(ServerTest):
    def status(self, data):
        answer = self.server.raw(data)
        self.assertTrue(answer.startswith(b"HTTP/1.1 "), answer[:100])
        return int(answer.split()[1])

    def ask(self, **headers):
        return self.status(head(self.server, **headers))

    def test_the_request_of_our_own_page_gets_through(self):
        self.assertEqual(self.ask(), 200)
        origin = f"http://{self.server.host}"
        self.assertEqual(self.ask(Origin=origin, Sec_Fetch_Site="same-origin"), 200)
        self.assertEqual(self.ask(Host=f"localhost:{self.server.port}"), 200)

    def test_other_hosts(self):
        for host in ("evil.example", f"evil.example:{self.server.port}", "127.0.0.1:1", None,
                     f"127.0.0.1:{self.server.port}.evil.example"):
            self.assertEqual(self.ask(Host=host), 421, host)
        # Also for the page itself: its answer must not be readable under another name.
        self.assertEqual(self.ask(path="/", Host="evil.example"), 421)

    def test_other_origins(self):
        for origin in ("http://evil.example", "null", "file://", f"https://{self.server.host}"):
            self.assertEqual(self.ask(Origin=origin), 403, origin)
        for site in ("cross-site", "same-site", "nonsense"):
            self.assertEqual(self.ask(Sec_Fetch_Site=site), 403, site)
        self.assertEqual(self.ask(method="OPTIONS", Origin="http://evil.example",
                                  Access_Control_Request_Method="PUT"), 403)

    def test_nothing_is_allowed_across_origins(self):
        answer = self.server.raw(head(self.server)).lower()
        self.assertNotIn(b"access-control", answer)
        for header in (b"content-security-policy: default-src 'self'", b"nosniff", b"no-referrer",
                       b"x-frame-options: deny", b"cache-control: no-store"):
            self.assertIn(header, answer)

    def test_the_token(self):
        for token in (None, "", "x" * 32, self.server.token[:-1], self.server.token + "x"):
            self.assertEqual(self.ask(X_Token=token), 401, token)
        path = f"/api/v1/health?token={self.server.token}"
        self.assertEqual(self.ask(path=path, X_Token=None), 401)
        self.assertEqual(self.ask(path="/api/v1/none", X_Token=None), 401)

    def test_the_old_routes_see_no_paths(self):
        self.session()
        answer = self.server.ask("POST", "/get_tensor_values", {"match_index": 0})
        self.assertEqual(answer.status, 400)
        self.assertEqual(self.ask(method="POST", path="/get_tensor_values",
                                  Origin="http://evil.example"), 403)

    def test_paths_out_of_the_page(self):
        for path in ("/../demo/reference.zip", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
                     "//etc/passwd", "/assets/../../etc/passwd", "/assets/%00", "/.git/config"):
            self.assertEqual(self.ask(path=path), 404, path)

    def test_paths_out_of_the_roots(self):
        for path in ("/etc/passwd", f"{DEMO}/../README.md", f"{self.files}/../../../../etc/passwd",
                     "/proc/self/mem", "//etc/passwd"):
            answer = self.server.post("/sources", {"path": path})
            self.assertEqual(answer.status, 403, path)
        self.assertEqual(self.server.post("/sources", {"path": "a\0b"}).status, 404)
        self.assertIn(self.server.post("/sources", {"path": 7}).status, (400, 404))

    def test_compressed_bodies(self):
        body = gzip.compress(b"{}")
        request = head(self.server, "POST", "/api/v1/demo", Content_Encoding="gzip",
                       Content_Length=len(body))
        self.assertEqual(self.status(request + body), 415)

    def test_large_bodies(self):
        self.assertEqual(self.ask(method="POST", path="/api/v1/sources",
                                  Content_Length=(1 << 20) + 1), 413)
        self.assertEqual(self.ask(method="POST", path="/api/v1/sources", Content_Length=1 << 63),
                         413)
        chunked = head(self.server, "POST", "/api/v1/sources", Transfer_Encoding="chunked")
        self.assertEqual(self.status(chunked + b"fffffff\r\n"), 413)
        pieces = b"".join(b"10000\r\n" + b"x" * 65536 + b"\r\n" for _ in range(20))
        self.assertEqual(self.status(chunked + pieces + b"0\r\n\r\n"), 413)
        self.assertEqual(self.ask(X_Filler="x" * 20_000), 431)

    def test_broken_requests(self):
        for data in (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
                     b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
                     head(self.server, "POST", Content_Length="1, 2"),
                     head(self.server, "POST", Content_Length=5, Transfer_Encoding="chunked")):
            self.assertEqual(self.status(data), 400, data)
        two_hosts = head(self.server).replace(b"\r\n", b"\r\nHost: evil.example\r\n", 1)
        self.assertEqual(self.status(two_hosts), 421)

    def test_broken_json(self):
        for body in (b"{", b"[" * 100_000, b'{"a":1,"a":2}', b"\xff", b'{"path":"\\ud800"}'):
            answer = self.server.ask("POST", "/api/v1/sources", body)
            self.assertEqual(answer.status, 400, body[:20])
        for body in ({}, [], {"a": 1}, {"a": ["x"] * 2000}, {"a": [None]}):
            self.assertEqual(self.server.post("/sessions", body).status, 400, body)

    def test_a_slow_client_does_not_stop_others(self):
        slow = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(20)]
        for connection in slow:
            connection.sendall(b"GET / HTTP/1.1\r\nHost:")
        self.assertEqual(self.ask(), 200)
        for connection in slow:
            connection.close()

    def test_too_many_connections_are_turned_away_and_leave_no_trace(self):
        held = [socket.create_connection(("127.0.0.1", self.server.port)) for _ in range(300)]
        time.sleep(0.2)
        refused = 0
        for connection in held:
            connection.settimeout(0.01)
            try:
                refused += b" 503 " in connection.recv(4096)
            except OSError:
                pass
        for connection in held:
            connection.close()
        self.assertGreaterEqual(refused, 30)
        for _ in range(200):
            try:  # Whoever is turned away may find the connection closed before the answer is read.
                if self.server.raw(head(self.server)).startswith(b"HTTP/1.1 200"):
                    return
            except OSError:
                pass
            time.sleep(0.05)
        self.fail("it did not recover")

    def test_names_in_files_do_no_harm(self):
        name = "<img src=x onerror=alert(1)>\"'\r\nX-Evil: 1\u202e\x1b[31m"
        write_safetensors(self.files / "evil.safetensors", {name: ([1], [1])})
        session = self.server.compare(self.files / "evil.safetensors",
                                      self.files / "evil.safetensors")
        rows = self.server.rows(session)["rows"]
        self.assertEqual(rows[0]["nameA"], name)
        answer = self.server.get(f"/sessions/{session}/pairs/0")
        self.assertEqual(answer.json()["a"]["name"], name)
        self.assertIsNone(answer.headers["X-Evil"])
        for form in self.server.get("/health").json()["exports"]:
            export = self.server.post(f"/sessions/{session}/export", {"format": form}).json()
            answer = self.server.ask("GET", export["url"])
            if form == "html":
                self.assertNotIn(b"<img", answer.body)

    def test_order_and_pairings_of_nonsense(self):
        session = self.session()
        path = f"/sessions/{session}"
        for body in ({"ids": "x"}, {"ids": [-1]}, {"ids": [1.5]}, {"ids": [1 << 40]}):
            self.assertEqual(self.server.put(path + "/order", body).status, 400, body)
        for body in ({}, {"pairs": [{}]}, {"pairs": [{"a": 1, "b": 2}]}):
            self.assertEqual(self.server.put(path + "/pairings", body).status, 400, body)
        answer = self.server.put(path + "/pairs/0/note", {"text": "x" * 10_001})
        self.assertEqual(answer.status, 413)

    def test_a_client_that_leaves_early(self):
        session = self.session()
        request = head(self.server, path=f"/api/v1/sessions/{session}/pairs")
        for _ in range(50):
            with socket.create_connection(("127.0.0.1", self.server.port)) as connection:
                connection.sendall(request)
        self.assertEqual(self.ask(), 200)
        self.assertEqual(json.loads(self.server.get("/health").body)["open"], None)


if __name__ == "__main__":
    unittest.main()
