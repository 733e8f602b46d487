"""A web server for tests: files with ranges, and the ways in which servers misbehave.

The first folder of a path says how: `/ranges/x`, `/whole/x` (no ranges), `/404/x`, `/page/x`
(HTML), `/login/x` (sent on to HTML), `/busy/x` (503 while `busy` is over 0), `/slow/x` (waits for
`let_go` after the first 64 kB of each answer), `/secret/x` (403 without the bearer token `hf_x`).
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from waiting import LIMIT_S

PAGE = b"<!DOCTYPE html><html><body>please log in</body></html>"


class Web(ThreadingHTTPServer):
    daemon_threads = True
    files: dict[str, bytes]
    sent_bytes = 0
    busy = 0
    let_go: threading.Event
    asked: list[str]

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


class Handler(BaseHTTPRequestHandler):
    server: Web
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        how, _, name = self.path.lstrip("/").partition("/")
        self.server.asked.append(self.path)
        if how == "busy" and self.server.busy:
            self.server.busy -= 1
            self.send_error(503)
        elif how.isdecimal():
            self.send_error(int(how))
        elif how == "login":
            self.send_response(302)
            self.send_header("Location", "/page/login")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif how == "secret" and self.headers.get("Authorization") != "Bearer hf_x":
            self.send_error(403)
        else:
            self._give(how, PAGE if how == "page" else self.server.files[name])

    def _give(self, how: str, content: bytes) -> None:
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        found = asked if how not in ("whole", "page") else None
        start = int(found[1]) if found else 0
        end = min(int(found[2]) + 1, len(content)) if found else len(content)
        self.send_response(206 if found else 200)
        if found:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        if how == "page":
            self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(end - start))
        self.send_header("ETag", f'"{hash(content)}"')
        self.end_headers()
        body = content[start:end]
        try:
            if how == "slow" and len(body) > 1 << 16:
                self._send(body[: 1 << 16])
                self.server.let_go.wait(LIMIT_S)
                body = body[1 << 16 :]
            self._send(body)
        except OSError:
            self.close_connection = True

    def _send(self, body: bytes) -> None:
        self.wfile.write(body)
        self.wfile.flush()
        self.server.sent_bytes += len(body)

    def log_message(self, *words: Any) -> None:
        pass


@contextmanager
def web_server(host: str = "127.0.0.1", port: int = 0) -> Iterator[Web]:
    server = Web((host, port), Handler)
    server.files, server.asked, server.let_go = {}, [], threading.Event()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.let_go.set()
        server.shutdown()
        server.server_close()
