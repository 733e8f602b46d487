"""Web servers as they are: with ranges, without, compressing, cutting, sending on, down."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import digest
from boxcar.shared.errors import InputError, TemporaryError
from boxcar.training.fetch import download, fetch, records, source

CONTENT = os.urandom(10_000)
PAGE = b"\n<!-- v2 --><html>log in</html>"


class Web(ThreadingHTTPServer):
    """Serves CONTENT under any name, in the manner that the first folder of the path names."""

    daemon_threads = True
    asked: list[str]
    tokens: list[str]
    cuts = 0


class Handler(BaseHTTPRequestHandler):
    server: Web
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        kind = self.path.split("/")[1]
        asked = self.headers.get("Range", "")
        self.server.asked.append(f"{self.command} {asked}".strip())
        if kind.isdecimal():
            self.send_error(int(kind))
        elif kind == "login":
            self.redirect("/page/login.php")
        elif kind in ("elsewhere", "here"):
            host = "localhost" if kind == "elsewhere" else "127.0.0.1"
            self.redirect(f"http://{host}:{self.server.server_port}/token/x.bin")
        elif kind == "empty" and asked:
            self.empty()
        else:
            self.server.tokens.append(self.headers.get("Authorization", ""))
            self.answer(kind, {"page": PAGE, "empty": b""}.get(kind, CONTENT), asked)

    def answer(self, kind: str, content: bytes, asked: str) -> None:
        has_ranges = kind not in ("whole", "sizeless")
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", asked) if has_ranges else None
        size = len(content)
        start, end = (int(found[1]), min(int(found[2]) + 1, size)) if found else (0, size)
        self.send_response(206 if found else 200)
        if found:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{size}")
        if kind == "sizeless":
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(end - start))
        if kind == "packing" and self.headers.get("Accept-Encoding") != "identity":
            self.send_header("Content-Encoding", "gzip")
        if kind == "page":
            self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("ETag", '"v1"')
        self.end_headers()
        body = content[start:end]
        if kind == "cutting" and len(body) > 64 and self.server.cuts:
            self.server.cuts -= 1
            body, self.close_connection = body[:-1], True
        self.wfile.write(body)
        self.close_connection |= kind == "sizeless"

    def redirect(self, where: str) -> None:
        self.send_response(308 if where.startswith("http") else 302)
        self.send_header("Location", where)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def empty(self) -> None:
        self.send_response(416)
        self.send_header("Content-Range", "bytes */0")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(records, "PIECE_BYTES", 4096)
    monkeypatch.setattr(download, "RETRY_AFTER_S", (0.0, 0.0))
    server = Web(("127.0.0.1", 0), Handler)
    server.asked, server.tokens = [], []
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def url(web: Web, kind: str) -> str:
    return (
        f"http://127.0.0.1:{web.server_port}/{kind}/{{task}}_{{split}}.bin?X-Amz-Signature=hunter2"
    )


def get(web: Web, kind: str, tmp_path: Path, **more: Any) -> bytes:
    spec = {"to": str(tmp_path), "tasks": ["a"], "splits": {"train": "required"}}
    [path] = fetch(spec | {"patterns": [url(web, kind)]} | more).values()
    return path.read_bytes()


def test_pieces_are_asked_for_by_ranges(web: Web, tmp_path: Path) -> None:
    assert get(web, "ranges", tmp_path) == CONTENT
    assert {"GET bytes=0-4095", "GET bytes=4096-8191", "GET bytes=8192-9999"} < set(web.asked)
    assert "hunter2" not in (tmp_path / ".a_train.bin.receipt.json").read_text()


@pytest.mark.parametrize("kind", ["whole", "packing"])
def test_a_server_without_ranges_or_that_compresses_gives_the_same(
    web: Web, tmp_path: Path, kind: str
) -> None:
    assert get(web, kind, tmp_path) == CONTENT


def test_a_cut_answer_is_asked_again(web: Web, tmp_path: Path) -> None:
    web.cuts = 2
    assert get(web, "cutting", tmp_path) == CONTENT and web.cuts == 0


def test_a_server_that_says_no_size_needs_a_digest(web: Web, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not say its size"):
        get(web, "sizeless", tmp_path)
    known = {"a_train.bin": digest.of_bytes(CONTENT)}
    assert get(web, "sizeless", tmp_path, sha256=known) == CONTENT


def test_what_is_not_there_is_told_from_what_is_refused_or_broken(web: Web) -> None:
    assert source.look_at_source(url(web, "404")) is None
    with pytest.raises(source.RefusedError) as refused:
        source.look_at_source(url(web, "403"))
    with pytest.raises(TemporaryError) as broken:
        source.look_at_source(url(web, "500"))
    assert "hunter2" not in f"{refused.value} {broken.value}"


def test_a_server_that_is_down_is_no_missing_file() -> None:
    with pytest.raises(TemporaryError, match="cannot be reached"):
        source.look_at_source("http://127.0.0.1:9/x.bin")


@pytest.mark.parametrize("kind", ["page", "login"])
def test_a_web_page_is_no_file(web: Web, tmp_path: Path, kind: str) -> None:
    with pytest.raises(InputError, match="a web page came where a file was asked"):
        get(web, kind, tmp_path)
    assert not list(tmp_path.glob("a_train*"))


def test_an_empty_file_is_one(web: Web, tmp_path: Path) -> None:
    assert get(web, "empty", tmp_path) == b""


@pytest.mark.parametrize(("kind", "told"), [("here", "Bearer hf_x"), ("elsewhere", "")])
def test_a_token_goes_to_the_host_of_the_url_only(web: Web, kind: str, told: str) -> None:
    found = source.look_at_source(f"http://127.0.0.1:{web.server_port}/{kind}/x.bin", "hf_x")
    assert found and found.size_bytes == len(CONTENT)
    assert source.read_range(found, 1, 9) == CONTENT[1:9]
    assert web.tokens == [told, told] and "hf_x" not in repr(found)
