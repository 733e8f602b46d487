"""Web servers as they are: with ranges, without, compressing, cutting, down. Needs aiohttp."""

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

pytest.importorskip("aiohttp", reason="fsspec's http needs it")
CONTENT = os.urandom(10_000)


class Web(ThreadingHTTPServer):
    """Serves CONTENT under any name, in the manner that the first folder of the path names."""

    daemon_threads = True
    asked: list[str]
    cuts = 0


class Handler(BaseHTTPRequestHandler):
    server: Web
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.answer(b"")

    def do_GET(self) -> None:
        self.answer(CONTENT)

    def answer(self, content: bytes) -> None:
        kind = self.path.split("/")[1]
        asked = self.headers.get("Range", "")
        self.server.asked.append(f"{self.command} {asked}".strip())
        if kind.isdecimal():
            self.send_error(int(kind))
            return
        found = re.fullmatch(r"bytes=(\d+)-(\d+)", asked) if kind != "whole" else None
        start, end = (int(found[1]), int(found[2]) + 1) if found else (0, len(CONTENT))
        self.send_response(206 if found else 200)
        if found:
            self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(CONTENT)}")
        if kind == "sizeless":
            self.send_header("Connection", "close")
        else:
            self.send_header("Content-Length", str(end - start))
        if kind == "packing" and self.headers.get("Accept-Encoding") != "identity":
            self.send_header("Content-Encoding", "gzip")
        self.send_header("ETag", '"v1"')
        self.end_headers()
        body = content[start:end]
        if kind == "cutting" and len(body) > 1 and self.server.cuts:
            self.server.cuts -= 1
            body, self.close_connection = body[:-1], True
        self.wfile.write(body)
        self.close_connection |= kind == "sizeless"

    def log_message(self, *words: Any) -> None:
        pass


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[Web]:
    monkeypatch.setattr(records, "PIECE_BYTES", 4096)
    monkeypatch.setattr(download, "RETRY_AFTER_S", (0.0, 0.0))
    server = Web(("127.0.0.1", 0), Handler)
    server.asked = []
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
    assert source.look(url(web, "404")) is None
    with pytest.raises(source.RefusedError) as refused:
        source.look(url(web, "403"))
    with pytest.raises(TemporaryError) as broken:
        source.look(url(web, "500"))
    assert "hunter2" not in f"{refused.value} {broken.value}"


def test_a_server_that_is_down_is_no_missing_file() -> None:
    with pytest.raises(TemporaryError, match="cannot be reached"):
        source.look("http://127.0.0.1:9/x.bin")
