"""An S3 server over TLS: rclone's, behind a front that may refuse what some stores refuse.

The front is ours. What it refuses, and with which words, is as those stores document it: Alibaba
OSS a body in `aws-chunked`, and a bucket in the path; OSS, OVH and OpenStack Swift a removal of
many objects without Content-MD5.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

BUCKET = "lab"
KEY, SECRET = "AKIAEXAMPLE000000001", "s3cret" * 7
# Every name below these is this machine, in the child that is asked.
HOSTS = """
import socket
found = socket.getaddrinfo
def getaddrinfo(host, *rest, **named):
    name = host.decode() if isinstance(host, bytes) else host or ""
    is_ours = name.endswith(("oss-test.aliyuncs.com", "minio.test"))
    return found("127.0.0.1" if is_ours else host, *rest, **named)
socket.getaddrinfo = getaddrinfo
"""
_HOP = {"connection", "content-length", "transfer-encoding"}


class Front(ThreadingHTTPServer):
    """`asked` has (method, path) of each request; `is_strict`: as OSS; after `most_puts` requests
    of PUT the line breaks in the middle of a body.
    """

    def __init__(self, back_port: int, folder: Path, *, is_strict: bool) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.back_port, self.is_strict = back_port, is_strict
        self.asked: list[tuple[str, str]] = []
        self.most_puts: int | None = None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
        self.socket = context.wrap_socket(self.socket, server_side=True)

    def puts(self) -> list[str]:
        return [path.partition("?")[0] for method, path in self.asked if method == "PUT"]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Front

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def _serve(self) -> None:
        self.server.asked.append((self.command, self.path))
        if self.server.most_puts is not None and len(self.server.puts()) > self.server.most_puts:
            self.rfile.read(1000)
            self.connection.close()
            return
        body = self._body()
        if self.server.is_strict and (refused := self._refusal()):
            self._answer(*refused)
            return
        back = http.client.HTTPConnection("127.0.0.1", self.server.back_port, timeout=60)
        back.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            if name.lower() not in _HOP:
                back.putheader(name, value)
        back.putheader("Content-Length", str(len(body)))
        back.endheaders(body)
        said = back.getresponse()
        headers = [(name, value) for name, value in said.getheaders() if name.lower() not in _HOP]
        if self.command == "HEAD":
            headers.append(("Content-Length", said.getheader("content-length") or "0"))
        self._send(said.status, headers, said.read())
        back.close()

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = _serve

    def _body(self) -> bytes:
        if "chunked" not in self.headers.get("transfer-encoding", ""):
            return self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def _refusal(self) -> tuple[int, str, str] | None:
        if "aws-chunked" in self.headers.get("content-encoding", ""):
            return 400, "InvalidArgument", "aws-chunked encoding is not supported"
        if not self.headers["host"].startswith(f"{BUCKET}."):
            return 403, "SecondLevelDomainForbidden", "address the bucket in the host's name"
        if self.path.endswith("?delete") and "content-md5" not in self.headers:
            return 400, "InvalidRequest", "Missing required header for this request: Content-MD5"
        return None

    def _answer(self, code: int, name: str, words: str) -> None:
        text = f"<?xml version='1.0'?><Error><Code>{name}</Code><Message>{words}</Message></Error>"
        self._send(code, [("Content-Type", "application/xml")], text.encode())

    def _send(self, code: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


@contextlib.contextmanager
def served(folder: Path, host: str, *, is_strict: bool) -> Iterator[Front]:
    """The store, its objects below `folder/objects`."""
    (folder / "objects" / BUCKET).mkdir(parents=True)
    (folder / "sitecustomize.py").write_text(HOSTS)
    _make_certificate(folder, host)
    port = _free_port()
    style = ["--force-path-style=false"] if is_strict else []
    words = ["serve", "s3", "--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}"]
    rclone = subprocess.Popen(
        [str(Path(sys.executable).parent / "rclone"), *words, *style, str(folder / "objects")],
        env={"HOME": str(folder)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        front = Front(port, folder, is_strict=is_strict)
        threading.Thread(target=front.serve_forever, daemon=True).start()
        yield front
        front.shutdown()
        front.server_close()
    finally:
        rclone.kill()
        rclone.wait()


def _make_certificate(folder: Path, host: str) -> None:
    words = "req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=x"
    names = ["-addext", f"subjectAltName=DNS:{host},DNS:*.{host}"]
    subprocess.run(["openssl", *words.split(), *names], cwd=folder, check=True, capture_output=True)


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _wait_for(port: int) -> None:
    for _ in range(600):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        time.sleep(0.1)
    raise AssertionError("rclone does not listen")
