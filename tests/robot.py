"""A chat robot on 127.0.0.1 that says yes, no, later, or nothing at all."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from waiting import LIMIT_S

from boxcar.shared.channels.answer import Endpoint

TOKEN = "token-0123456789"
YES: dict[str, bytes] = {
    "feishu": b'{"code": 0}',
    "lark": b'{"StatusCode": 0}',
    "dingtalk": b'{"errcode": 0}',
    "wecom": b'{"errcode": 0}',
    "serverchan": b'{"code": 0}',
    "bark": b'{"code": 200}',
    "ntfy": b'{"id": "a"}',
    "telegram": b'{"ok": true}',
    "slack": b"ok",
    "discord": b"",
    "autodl": b'{"code": "Success"}',
}
NO = b'{"code": 1, "errcode": 1, "ok": false, "error": "no", "msg": "nobody here"}'
HANG, RESET = "hang", "reset"


@dataclass
class Robot(ThreadingHTTPServer):
    """Gives the scripted answers one after another, then `last` for ever."""

    last: tuple[int, dict[str, str], bytes] = (200, {}, b'{"code": 0}')
    script: list[Any] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)  # in lower case
    paths: list[str] = field(default_factory=list)
    meet: Callable[[], object] = lambda: None  # before it answers
    date: str = ""  # what it says of the time, where that is not ours
    let_go: threading.Event = field(default_factory=threading.Event)
    daemon_threads = True

    def __post_init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    def chat(self, channel: str = "feishu") -> Endpoint:
        url = f"http://127.0.0.1:{self.server_address[1]}/{TOKEN}"
        return Endpoint(channel, url, to="4711" if channel == "telegram" else "")

    def end(self) -> None:
        self.let_go.set()
        self.shutdown()
        self.server_close()

    @property
    def texts(self) -> list[str]:
        return [body["content"]["text"] for body in self.bodies]


class _Handler(BaseHTTPRequestHandler):
    server: Robot

    def date_time_string(self, timestamp: float | None = None) -> str:
        return self.server.date or super().date_time_string(timestamp)

    def do_POST(self) -> None:
        self.server.headers.append({k.lower(): v for k, v in self.headers.items()})
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        self.server.paths.append(self.path)
        self.server.meet()
        step = self.server.script.pop(0) if self.server.script else self.server.last
        if step == HANG:
            self.server.let_go.wait(LIMIT_S)
        if step in (HANG, RESET):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.connection.close()
            return
        status, headers, text = step
        self.send_response(status)
        for name, value in {"content-length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *args: object) -> None:
        pass

    def handle(self) -> None:
        with contextlib.suppress(OSError, ValueError):
            super().handle()


@dataclass
class Clock:
    """Time that goes on only where somebody waits."""

    now_s: float = 1_000_000.0
    waits_s: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now_s

    def wait(self, signal: threading.Event, wait_s: float) -> bool:
        self.waits_s.append(wait_s)
        self.now_s += wait_s
        return signal.is_set()


def self_signed(folder: Path) -> tuple[ssl.SSLContext, Path]:
    """TLS with a certificate that nobody vouches for, and that certificate."""
    openssl = shutil.which("openssl")
    if not openssl:
        pytest.skip("there is no openssl program to make a certificate with")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    words = "req -x509 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=IP:127.0.0.1"
    curve = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1"
    command = [openssl, *words.split(), *curve.split(), "-keyout", str(key), "-out"]
    subprocess.run([*command, str(certificate)], check=True, capture_output=True, timeout=LIMIT_S)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, certificate
