"""Servers on loopback for tests of remote inputs: nginx, and one that makes mistakes."""

import hashlib
import http.server
import json
import os
import pathlib
import shutil
import socket
import struct
import subprocess
import sys
import threading
import time

PROGRAM = os.environ.get("TENSORDIFF", "build/tensordiff")
NGINX = shutil.which("nginx") or shutil.which("/usr/sbin/nginx")
SKIPPED = 77  # What ctest counts as skipped.


def skip_without(what, there):
    if not there:
        print(f"skipped: {what} is not installed")
        sys.exit(SKIPPED)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for_port(port, process):
    for _ in range(600):
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("the server does not listen")


# --- files ---


def write_safetensors(path, tensors, zeros=0):
    """Tensors of u8 by name: bytes, or a number of them that are left as a hole of the file."""
    header, at = {}, 0
    for name, content in tensors.items():
        count = content if isinstance(content, int) else len(content)
        header[name] = {"dtype": "U8", "shape": [count], "data_offsets": [at, at + count]}
        at += count
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for content in tensors.values():
            if isinstance(content, int):
                file.truncate(file.tell() + content)
                file.seek(0, os.SEEK_END)
            else:
                file.write(content)
    return pathlib.Path(path)


def sha256(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


# --- the program ---


def run(*arguments, check=None, **environment):
    """The program, without the credentials and settings of whoever runs the tests."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith(("AWS_", "HF_", "GS_", "GOOGLE_"))
            and "proxy" not in name.lower()}
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True,
                          env={**kept, "HOME": "/nonexistent", **environment}, timeout=600,
                          check=False)
    if check is not None and done.returncode != check:
        raise AssertionError(f"status {done.returncode}: {done.stdout}{done.stderr}")
    return done


def peak_memory(*arguments):
    """The exit status of the program, and the most memory that it had, in bytes."""
    process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss * 1024


# --- nginx ---


class Nginx:
    """Serves a folder at `port`, and the same under another origin at `other`. `log` has a line for
    each request: port, status, bytes, range, authorization, path."""

    CONFIG = """
    daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log;
    events {{ worker_connections 512; }}
    http {{
      log_format plain '$server_port $status $body_bytes_sent "$http_range" "$http_authorization" '
                       '$request_uri';
      access_log {folder}/access.log plain;
      client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3;
      uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
      server {{
        listen 127.0.0.1:{port}; root {root};
        {more}
        location ~ ^/hub(/.*/resolve/.*)$ {{ return 302 http://127.0.0.1:{other}/hub$1; }}
        location = /away {{ return 302 http://127.0.0.1:{other}/a.safetensors; }}
        location = /loop {{ return 302 /loop; }}
      }}
      server {{ listen 127.0.0.1:{other}; root {root}; }}
      {servers}
    }}
    """

    def __init__(self, folder, root, more="", servers=""):
        self.folder, self.port, self.other = pathlib.Path(folder), free_port(), free_port()
        config = self.folder / "nginx.conf"
        config.write_text(self.CONFIG.format(folder=folder, root=root, port=self.port,
                                             other=self.other, more=more, servers=servers))
        self.process = subprocess.Popen([NGINX, "-p", str(folder), "-c", str(config)],
                                        stderr=subprocess.DEVNULL)
        wait_for_port(self.port, self.process)
        self.url = f"http://127.0.0.1:{self.port}"

    def stop(self):
        self.process.terminate()
        self.process.wait(timeout=60)

    def lines(self):
        return (self.folder / "access.log").read_text().splitlines()

    def count(self, action):
        """What `action` gives, and how many bytes of bodies were sent meanwhile."""
        before = len(self.lines())
        result = action()
        return result, sum(int(line.split()[2]) for line in self.lines()[before:])


# --- mistakes ---


class Faults:
    """Serves one file, with a mistake that the first part of the path names: /cut/a.safetensors."""

    def __init__(self, file):
        self.content = pathlib.Path(file).read_bytes()
        self.asked = {}  # How often, by path.
        self.lock = threading.Lock()
        faults = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                with faults.lock:
                    faults.asked[self.path] = faults.asked.get(self.path, 0) + 1
                    time_asked = faults.asked[self.path]
                getattr(faults, "do_" + self.path.split("/")[1])(self, time_asked)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def stop(self):
        self.server.shutdown()
        self.server.server_close()

    def asked_range(self, call):
        first, last = call.headers["Range"].removeprefix("bytes=").split("-")
        return int(first), min(int(last), len(self.content) - 1)

    def send(self, call, status=206, etag='"one"', body=None, span=None, total=None):
        first, last = self.asked_range(call)
        content = self.content[first:last + 1]
        call.send_response(status)
        call.send_header("ETag", etag)
        call.send_header("Content-Length", len(content))
        call.send_header("Content-Range",
                         span or f"bytes {first}-{last}/{total or len(self.content)}")
        call.end_headers()
        call.wfile.write(content if body is None else body(content))
        if body is not None:
            call.close_connection = True

    def refuse(self, call, status, **headers):
        call.send_response(status)
        for name, value in headers.items():
            call.send_header(name.replace("_", "-"), value)
        call.send_header("Content-Length", 0)
        call.end_headers()

    def do_good(self, call, _):
        self.send(call)

    def do_cut(self, call, time_asked):
        # Each request ends after a third, but for one in three.
        self.send(call, body=(lambda all_of_it: all_of_it[:len(all_of_it) // 3 + 1])
                  if time_asked % 3 else None)

    def do_always_cut(self, call, _):
        self.send(call, body=lambda all_of_it: b"")

    def do_wrong_range(self, call, _):
        self.send(call, span=f"bytes 5-9/{len(self.content)}")

    def do_no_total(self, call, _):
        self.send(call, span="bytes 0-9/*")

    def do_wrong_total(self, call, time_asked):
        self.send(call, total=len(self.content) + (time_asked > 1))

    def do_no_ranges(self, call, _):
        call.send_response(200)
        call.send_header("Content-Length", len(self.content))
        call.end_headers()
        try:
            call.wfile.write(self.content)
        except OSError:
            call.close_connection = True

    def do_changes(self, call, time_asked):
        self.send(call, etag='"one"' if time_asked == 1 else '"two"')

    def do_busy(self, call, time_asked):
        if time_asked % 2:
            self.refuse(call, 429, Retry_After=1)
        else:
            self.send(call)

    def do_down(self, call, time_asked):
        if time_asked % 2:
            self.refuse(call, 503)
        else:
            self.send(call)

    def do_403(self, call, _):
        self.refuse(call, 403)

    def do_404(self, call, _):
        self.refuse(call, 404)

    def do_429(self, call, _):
        self.refuse(call, 429)

    def do_503(self, call, _):
        self.refuse(call, 503)

    def do_dies(self, call, time_asked):
        # The header is there, and what comes later is not.
        self.send(call) if time_asked <= 2 else self.refuse(call, 503)

    def do_slow(self, call, _):
        time.sleep(30)
        self.refuse(call, 503)

    def do_to_metadata(self, call, _):
        self.refuse(call, 302, Location="http://169.254.169.254/latest/meta-data/")

    def do_to_file(self, call, _):
        self.refuse(call, 302, Location="file:///etc/passwd")
