"""How large an image is, by a registry built from the OCI specification: a stand-in."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from boxcar.laptop.providers.image_size import image_bytes
from boxcar.laptop.providers.provider import Offer
from boxcar.laptop.providers.rent import boot_limit_s

LAYERS = {"layers": [{"size": 3_000_000_000}, {"size": 500_000_000}]}
INDEX = {
    "manifests": [
        {"digest": "sha256:arm", "platform": {"os": "linux", "architecture": "arm64"}},
        {"digest": "sha256:amd", "platform": {"os": "linux", "architecture": "amd64"}},
    ]
}


class Registry(ThreadingHTTPServer):
    documents: ClassVar[dict[str, Any]] = {
        "/v2/lab/train/manifests/cu12": INDEX,
        "/v2/lab/train/manifests/sha256:amd": LAYERS,
        "/v2/lab/plain/manifests/latest": LAYERS,
        "/v2/lab/broken/manifests/latest": {"layers": "none"},
    }

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.name = f"127.0.0.1:{self.server_port}"
        self.asked: list[str] = []


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        path, _question, query = self.path.partition("?")
        self.server.asked.append(self.path)
        if path == "/token":
            return self._send(200, {"token": "of-nobody", "for": query})
        if self.headers.get("Authorization") != "Bearer of-nobody":
            return self._send(401, {})
        found = self.server.documents.get(path)
        return self._send(200 if found else 404, found or {})

    def _send(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        if status == 401:
            realm = f'realm="http://{self.server.name}/token"'
            scope = 'scope="repository:lab/train:pull"'
            self.send_header("WWW-Authenticate", f'Bearer {realm},service="registry",{scope}')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def registry() -> Iterator[Registry]:
    server = Registry()
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("image", "size_bytes"),
    [
        ("lab/train:cu12", 3_500_000_000),
        ("lab/train@sha256:amd", 3_500_000_000),
        ("lab/plain", 3_500_000_000),
        ("lab/broken", None),
        ("lab/none", None),
    ],
)
def test_an_image_is_as_large_as_its_layers_for_this_kind_of_machine(
    registry: Registry, image: str, size_bytes: int | None
) -> None:
    assert image_bytes(f"{registry.name}/{image}") == size_bytes
    assert any(path.startswith("/token?service=registry&scope=") for path in registry.asked)


def test_a_registry_that_does_not_answer_is_no_error() -> None:
    assert image_bytes("127.0.0.1:9/lab/train") is None


def test_a_larger_image_and_a_slower_host_get_more_time() -> None:
    def limit_s(down_mbit_s: float | None, image_gb: float) -> float:
        return boot_limit_s(Offer("vastai", "1", "A", 1, 1.0, down_mbit_s=down_mbit_s), image_gb)

    assert limit_s(200, 3.5) < limit_s(200, 8) < limit_s(150, 8) < limit_s(None, 8)
    assert limit_s(10_000, 3.5) == limit_s(10_000, 8), "the least that a start takes"
