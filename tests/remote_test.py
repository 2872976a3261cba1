#!/usr/bin/env python3
"""Remote inputs, from real servers on this machine: nginx, and one that makes mistakes."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from remote_servers import (NGINX, Faults, Nginx, peak_memory, run, sha256, skip_without,
                            write_safetensors)
from serving import Server

skip_without("nginx", NGINX)

DATA = pathlib.Path(__file__).resolve().parent / "data" / "formats"
COMMIT = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_a_token_that_nobody_may_see"
MIB = 1 << 20


def write_index(folder, shards):
    places = {tensor: shard for shard, tensors in shards.items() for tensor in tensors}
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": places}))


def write_repository(root, name, shards):
    """A repository of the hub, as files that nginx serves under /hub."""
    folder = root / "hub" / name / "resolve" / COMMIT
    folder.mkdir(parents=True)
    write_index(folder, shards)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "README.md").write_text("A model.\n")
    for shard, tensors in shards.items():
        write_safetensors(folder / shard, tensors)
    listing = []
    for path in sorted(folder.iterdir()):
        entry = {"type": "file", "path": path.name, "size": path.stat().st_size, "oid": "0" * 40}
        if path.suffix == ".safetensors":
            entry["lfs"] = {"oid": sha256(path), "size": path.stat().st_size}
        else:
            entry["oid"] = sha256(path)[:40]
        listing.append(entry)
    api = root / "hub" / "api" / "models" / name
    for part, content in {f"revision/main": {"sha": COMMIT}, f"tree/{COMMIT}": listing}.items():
        (api / part).parent.mkdir(parents=True, exist_ok=True)
        (api / part).write_text(json.dumps(content))
    return sum(path.stat().st_size for path in folder.iterdir())


class RemoteTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        cls.root = cls.folder / "root"
        cls.root.mkdir()
        os.chmod(cls.folder, 0o755)
        values = os.urandom(3 * MIB)
        other = bytearray(values)
        other[2 * MIB] ^= 1
        cls.a = write_safetensors(cls.root / "a.safetensors", {"w": values, "v": b"1234"})
        cls.b = write_safetensors(cls.root / "b.safetensors", {"w": bytes(other), "v": b"1234"})
        big = {"x": 100 * MIB, "y": 20 * MIB}
        write_safetensors(cls.root / "big.safetensors", big)
        same = {"layers.0.w": 60 * MIB, "layers.1.w": os.urandom(MIB)}
        cls.size_a = write_repository(cls.root, "org/a", {
            "model-00001-of-00002.safetensors": same,
            "model-00002-of-00002.safetensors": {"layers.2.w": os.urandom(MIB) + bytes(30 * MIB)}})
        cls.size_b = write_repository(cls.root, "org/b", {
            "model-00001-of-00002.safetensors": same,
            "model-00002-of-00002.safetensors": {"layers.2.w": os.urandom(MIB) + bytes(30 * MIB)}})
        cls.nginx = Nginx(cls.folder, cls.root)
        cls.url = cls.nginx.url

    @classmethod
    def tearDownClass(cls):
        cls.nginx.stop()
        cls.temporary.cleanup()

    def hub(self, *arguments, **options):
        return run(*arguments, HF_ENDPOINT=self.url + "/hub", HF_TOKEN=TOKEN, **options)


class Reading(RemoteTest):
    def test_show_reads_the_header_only(self):
        done, sent = self.nginx.count(lambda: run("show", f"{self.url}/big.safetensors", check=0))
        self.assertIn("120 MiB", done.stdout)
        self.assertLess(sent, 1.2 * MIB)

    def test_report_is_that_of_local_files(self):
        """But for where the files are."""
        def report(a, b):
            told = json.loads(run(a, b, "-o", "report", check=1).stdout)
            text = json.dumps(told, sort_keys=True)
            return text.replace(str(a), "A").replace(str(b), "B")

        remote = report(f"{self.url}/a.safetensors", f"{self.url}/b.safetensors")
        self.assertEqual(remote, report(self.a, self.b))

    def test_local_against_remote(self):
        done = run(self.a, f"{self.url}/a.safetensors", check=0)
        self.assertIn("SAME", done.stdout)
        run(self.a, f"{self.url}/b.safetensors", check=1)

    def test_every_format(self):
        """Each file of the tests, as the local one is shown."""
        shutil.copytree(DATA, self.root / "formats")
        files = [path for path in sorted(DATA.iterdir()) if path.is_file()]
        self.assertGreater(len(files), 20)
        for path in files:
            local = run("show", path, "--stats")
            remote = run("show", f"{self.url}/formats/{path.name}", "--stats")
            with self.subTest(path.name):
                self.assertEqual(remote.returncode, local.returncode, remote.stderr)
                self.assertEqual(remote.stdout.replace(f"{self.url}/formats", str(DATA)),
                                 local.stdout)

    def test_memory_is_bounded(self):
        """Both sides are far larger than the cache."""
        sizes = {f"t{i}": 50 * MIB for i in range(8)}
        for name in "cd":
            write_safetensors(self.root / f"{name}.safetensors", sizes)
        status, peak = peak_memory(f"{self.url}/c.safetensors", f"{self.url}/d.safetensors",
                                   "--remote-cache", "32MiB", "--remote-connections", "4",
                                   "--no-diagnose")
        self.assertEqual(status, 0)
        if not os.environ.get("TENSORDIFF_SANITIZE"):
            self.assertLess(peak, 250 * MIB)

    def test_index_on_a_web_server(self):
        folder = self.root / "web"
        folder.mkdir()
        shards = {"s-00001-of-00002.safetensors": {"p": b"12"},
                  "s-00002-of-00002.safetensors": {"q": b"34"}}
        for name, tensors in shards.items():
            write_safetensors(folder / name, tensors)
        write_index(folder, shards)
        done = run("show", f"{self.url}/web/model.safetensors.index.json", check=0)
        self.assertIn("2 tensors", done.stdout)
        # Names that an index has lead nowhere else.
        for name in ["../a.safetensors", "/a.safetensors", f"{self.url}/a.safetensors",
                     "%2e%2e/a.safetensors", "..%2fa.safetensors"]:
            write_index(folder, {name: ["p"]})
            before = len(self.nginx.lines())
            run("show", f"{self.url}/web/model.safetensors.index.json", check=2)
            for line in self.nginx.lines()[before:]:
                self.assertIn("/web/", line)
                self.assertNotIn("/a.safetensors", line)

    def test_a_folder_of_a_web_server(self):
        self.assertIn("no such file", run("show", f"{self.url}/nothing", check=2).stderr)


class Hub(RemoteTest):
    def test_indexes_are_less_than_a_hundredth(self):
        both = self.size_a + self.size_b
        for command in (["hf://org/a", "hf://org/b", "--shape-only"],
                        ["show", "hf://org/a"], ["check", "--structure", "hf://org/a"],
                        ["check", "--structure", "hf://org/b"]):
            done, sent = self.nginx.count(lambda: self.hub(*command))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertLess(sent, both / 100, command)

    def test_one_hash_is_not_read(self):
        done, sent = self.nginx.count(lambda: self.hub("hf://org/a", "hf://org/b", check=1))
        self.assertIn("2 pairs are identical by hash", done.stdout)
        self.assertLess(sent, 70 * MIB)  # The other shards, 31 MiB each.
        done, sent = self.nginx.count(
            lambda: self.hub("hf://org/a", "hf://org/b", "--remote-read-all", check=1))
        self.assertNotIn("by hash", done.stdout)
        self.assertGreater(sent, 170 * MIB)

    def test_a_file_and_a_revision(self):
        place = "hf://org/a@main/model-00002-of-00002.safetensors"
        self.assertIn("layers.2.w", self.hub("show", place, check=0).stdout)
        self.assertIn("no such", self.hub("show", "hf://org/a/other.bin", check=2).stderr)

    def test_the_token_stays_at_the_hub(self):
        before = len(self.nginx.lines())
        done = self.hub("hf://org/a", "hf://org/b", "-o", "report", "-v")
        self.assertNotIn(TOKEN, done.stdout + done.stderr)
        home, away = [], []
        for line in self.nginx.lines()[before:]:
            (home if line.startswith(f"{self.nginx.port} ") else away).append(line)
        self.assertTrue(home and away)
        self.assertTrue(all(f'"Bearer {TOKEN}"' in line for line in home))
        self.assertFalse([line for line in away if TOKEN in line])

    def test_a_token_in_a_file(self):
        (self.folder / "token").write_text(TOKEN + "\n")
        before = len(self.nginx.lines())
        run("show", "hf://org/a", check=0, HF_ENDPOINT=self.url + "/hub",
            HF_TOKEN_PATH=str(self.folder / "token"))
        self.assertIn(TOKEN, self.nginx.lines()[before])

    def test_names_that_lead_away(self):
        api = self.root / "hub/api/models/org/evil"
        for path in ["../a", "/etc/passwd", "x/../../y", "a\\b", ""]:
            (api / "tree").mkdir(parents=True, exist_ok=True)
            (api / "tree/main").write_text(json.dumps(
                [{"type": "file", "path": path, "size": 5, "oid": "0" * 40}]))
            self.assertIn("cannot be the name", self.hub("show", "hf://org/evil", check=2).stderr)

    def test_words_that_are_no_repository(self):
        for place in ["hf://org", "hf://../b", "hf://org/a@x?y", "hf://org/a b"]:
            self.assertEqual(self.hub("show", place).returncode, 2, place)


class Mistakes(RemoteTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.faults = Faults(cls.a)

    @classmethod
    def tearDownClass(cls):
        cls.faults.stop()
        super().tearDownClass()

    def ask(self, fault, *more, **options):
        return run(self.a, f"{self.faults.url}/{fault}/a.safetensors", *more, **options)

    def test_what_passes(self):
        for fault in ["good", "cut", "busy", "down"]:
            with self.subTest(fault):
                self.assertIn("SAME", self.ask(fault, check=0).stdout)

    def test_what_does_not(self):
        told = {"403": "refuses access (403)", "404": "no such file",
                "429": "fewer requests (429) (tried 2 times)",
                "503": "status 503 (tried 2 times)",
                "wrong_range": "sends bytes 5-9 where 0-65535 were asked for",
                "no_total": "does not say which bytes it sends",
                "always_cut": "(tried 2 times)",
                "to_metadata": "plain http:// is refused",
                "to_file": "addresses of 'file' are not read"}
        for fault, message in told.items():
            with self.subTest(fault):
                self.assertIn(message, self.ask(fault, "--remote-retries", "1", check=2).stderr)

    def test_what_shows_later(self):
        """In the row of the tensor, for the header was read."""
        told = {"changes": "changed on the server while it was read",
                "wrong_total": "changed on the server while it was read",
                "dies": "status 503"}
        for fault, message in told.items():
            with self.subTest(fault):
                done = self.ask(fault, "--remote-retries", "0", check=2)
                self.assertIn(message, done.stdout + done.stderr)

    def test_no_ranges(self):
        """Small files are taken whole."""
        self.assertIn("SAME", self.ask("no_ranges", check=0).stdout)
        big = Faults(write_safetensors(self.folder / "big", {"w": bytes(9 * MIB)}))
        self.addCleanup(big.stop)
        self.assertIn("does not support range requests",
                      run("show", f"{big.url}/no_ranges/big", check=2).stderr)

    def test_a_slow_server(self):
        done = self.ask("slow", "--remote-timeout", "1", "--remote-retries", "0", check=2)
        self.assertIn("imeout", done.stderr)

    def test_redirects(self):
        self.assertIn("SAME", run(self.a, f"{self.url}/away", check=0).stdout)
        self.assertIn("more than 8 redirects", run("show", f"{self.url}/loop", check=2).stderr)

    def test_signatures_are_not_shown(self):
        address = f"{self.url}/b.safetensors?X-Amz-Signature=secret"
        for form in ["text", "report", "html", "markdown", "csv"]:
            done = run(self.a, address, "-o", form, check=1)
            self.assertNotIn("secret", done.stdout + done.stderr)
        self.assertNotIn("secret", run("show", f"{self.url}/c?secret", check=2).stderr)

    def test_addresses_that_are_refused(self):
        for address, message in {
                "http://example.invalid/a": "plain http:// is refused",
                "https://user:secret@127.0.0.1/a": "user name or password",
                "ftp://127.0.0.1/a": "addresses of 'ftp' are not read"}.items():
            done = run("show", address, check=2)
            self.assertIn(message, done.stderr)
            self.assertNotIn("secret", done.stderr)


class Serving(RemoteTest):
    def open(self, *options):
        server = Server(self.folder / "state", "--root", self.root, *options)
        self.addCleanup(server.stop)
        answer = server.post("/sources", {"path": f"{self.url}/a.safetensors"})
        return answer.status, answer.body.decode()

    def test_off_unless_asked_for(self):
        status, told = self.open()
        self.assertEqual(status, 403, told)
        self.assertIn("remote inputs are turned off", told)

    def test_private_addresses(self):
        before = len(self.nginx.lines())
        status, told = self.open("--remote")
        self.assertNotEqual(status // 100, 2, told)
        self.assertIn("private or local network", told)
        self.assertEqual(len(self.nginx.lines()), before)

    def test_allowed(self):
        status, told = self.open("--remote-private")
        self.assertEqual(status // 100, 2, told)


class Starting(RemoteTest):
    @unittest.skipUnless(shutil.which("strace"), "needs strace")
    def test_local_files_load_no_library(self):
        """Nor does --version: what a git hook runs costs what it did."""
        for arguments in (["--version"], [self.a, self.b]):
            told = self.folder / "calls"
            subprocess.run(["strace", "-f", "-o", told, "-e", "trace=openat,socket",
                            os.environ.get("TENSORDIFF", "build/tensordiff"), *arguments],
                           stdout=subprocess.DEVNULL, check=False)
            self.assertNotIn("libcurl", told.read_text())
            self.assertNotIn("socket(", told.read_text())


if __name__ == "__main__":
    unittest.main()
