"""The page of an isolation: the tree of B's modules, with a mark at each door."""

from __future__ import annotations

import contextlib
import html
import http.server
import threading
import webbrowser
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .findings import Door, Isolation, Mistake

_MARKS = {"same": ("✓", "#2a7d2a"), "different": ("✗", "#c0392b"), "unknown": ("?", "#b9770e"),
          "inside": ("▸", "#c0392b"), "none": ("·", "#888")}
_STYLE = """<style>
.tdi{font:13px/1.5 system-ui,sans-serif}.tdi code{font:12px ui-monospace,monospace}
.tdi details{margin-left:1.2em}.tdi summary{cursor:pointer;list-style:none}
.tdi .leaf{margin-left:1.2em}.tdi .cls{color:#888}.tdi table{border-collapse:collapse}
.tdi td,.tdi th{padding:.15em .6em;border-bottom:1px solid #ddd;text-align:left}
.tdi .why{margin-left:1.6em;padding:.2em .6em;border-left:3px solid #c0392b}
</style>"""


def fragment(isolation: Isolation) -> str:
    """HTML for a notebook: the verdict, then the tree. Modules with a mistake are open."""
    lines = str(isolation).splitlines()
    rest = "".join(f"<li>{html.escape(str(each))}</li>" for each in isolation.not_checked)
    notes = "".join(f"<li>{html.escape(each)}</li>" for each in isolation.notes)
    listed = "".join(f"<li>{_mistake(each)}</li>" for each in isolation.findings)
    tree = "".join(_node(isolation, "", _children(isolation)))
    return (f"{_STYLE}<div class=tdi><p><b>{html.escape(lines[0])}</b></p><ol>{listed}</ol>"
            f"{tree}{f'<p>Not checked</p><ul>{rest}</ul>' if rest else ''}"
            f"{f'<ul>{notes}</ul>' if notes else ''}</div>")


def page(isolation: Isolation) -> str:
    """The same as a file of its own; it loads nothing."""
    return ("<!doctype html><html lang=en><meta charset=utf-8><title>tensordiff: isolation</title>"
            f"<body>{fragment(isolation)}</body></html>\n")


def _children(isolation: Isolation) -> dict[str, list[str]]:
    """Modules by the path of their parent, in the order of the model."""
    found: dict[str, list[str]] = {}
    known = set(isolation.modules)
    for path in isolation.modules:
        if path:
            parent = path.rpartition(".")[0]
            while parent and parent not in known:
                parent = parent.rpartition(".")[0]
            found.setdefault(parent, []).append(path)
    return found


def _mark(isolation: Isolation, path: str) -> str:
    if any(each.path == path for each in isolation.findings):
        return "different"
    if any(each.path == path for each in isolation.not_checked):
        return "unknown"
    if any(not path or each.path.startswith(path + ".") for each in isolation.findings):
        return "inside"
    return "same" if any(door.path == path for door in isolation.doors) else "none"


def _node(isolation: Isolation, path: str, children: dict[str, list[str]]) -> Iterator[str]:
    mark = _mark(isolation, path)
    sign, color = _MARKS[mark]
    doors = [door for door in isolation.doors if door.path == path]
    title = (f"<span style='color:{color}'>{sign}</span> "
             f"<code>{html.escape(path.rpartition('.')[2] or '(model)')}</code> "
             f"<span class=cls>{html.escape(isolation.modules.get(path, ''))}"
             f"{_worst(doors)}</span>")
    why = "".join(f"<div class=why>{_mistake(each)}</div>" for each in isolation.findings
                  if each.path == path)
    inner = [text for child in children.get(path, ()) for text in _node(isolation, child, children)]
    if not inner and not doors:
        yield f"<div class=leaf>{title}{why}</div>"
        return
    opened = " open" if mark in ("different", "inside") or not path else ""
    yield (f"<details{opened}><summary>{title}</summary>{why}{_table(doors)}{''.join(inner)}"
           "</details>")


def _worst(doors: list[Door]) -> str:
    known = [door.rel_l2 for door in doors if door.rel_l2 is not None]
    return f", rel L2 ≤ {max(known):.2g}" if known else ""


def _table(doors: list[Door]) -> str:
    if not doors:
        return ""
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in (
            door.call, door.name, "" if door.rel_l2 is None else f"{door.rel_l2:.2g}",
            f"{door.budget:.2g}", "ok" if door.agrees else "differs")) + "</tr>"
        for door in doors[:40])
    head = "".join(f"<th>{word}</th>" for word in ("call", "tensor", "rel L2", "budget", ""))
    return f"<table><tr>{head}</tr>{rows}</table>"


def _mistake(finding: Mistake) -> str:
    text = html.escape(str(finding))
    if finding.hint:
        text += f"<br>look here first: <code>{html.escape(finding.hint)}</code>"
    return text


class Served:
    """A page on this machine until close()."""

    def __init__(self, text: str, port: int) -> None:
        body = text.encode()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                found = self.path == "/"
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", "text/html; charset=utf-8")
                self.send_header("Content-Security-Policy",
                                 "default-src 'none'; style-src 'unsafe-inline'")
                self.end_headers()
                self.wfile.write(body if found else b"not found")

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def wait(self) -> None:
        """Until Ctrl-C."""
        with contextlib.suppress(KeyboardInterrupt):
            self._thread.join()
        self.close()

    def __enter__(self) -> Served:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


def serve(isolation: Isolation, port: int, browser: bool) -> Served:
    served = Served(page(isolation), port)
    if browser:
        webbrowser.open(served.url)
    return served
