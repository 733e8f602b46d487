"""Mirrors of our own, alive and dead in the ways that they are, asked by a real Python."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from onbox.machine import mirrors
from onbox.machine.mirrors import CONDA, HUB, PIP, PIP_ITSELF, Tried

PAGE = b'<!DOCTYPE html><a href="../../pip-24.0-py3-none-any.whl#sha256=ab">pip</a>'
HOTEL = b"<html>please log in</html>"
CONFIG = "/openai-community/gpt2/resolve/main/config.json"
ALIVE = {
    "/simple/pip/": PAGE,
    "/pip-24.0-py3-none-any.whl": b"PK\x03\x04",
    f"/hub{CONFIG}": b'{"a": 1}',
    "/conda/conda-forge/noarch/current_repodata.json": b' {"info": {}}',
}


class Mirror:
    def __init__(self) -> None:
        self.pages = dict(ALIVE)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                data = outer.pages.get(self.path, outer.pages.get("*"))
                self.send_response(404 if data is None else 200)
                self.end_headers()
                self.wfile.write(data or b"")

            def log_message(self, *words: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    @property
    def environ(self) -> dict[str, str]:
        return {
            PIP: f"{self.url}/simple",
            HUB: f"{self.url}/hub",
            CONDA: f"{self.url}/conda",
            "no_proxy": "127.0.0.1",
        }


@pytest.fixture
def mirror() -> Iterator[Mirror]:
    made = Mirror()
    yield made
    made.server.shutdown()
    made.server.server_close()


def tried(environ: dict[str, str], *, has_pip: bool = True) -> dict[str, str | None]:
    found = mirrors.try_mirrors(sys.executable, "", environ, has_pip=has_pip)
    return {one.name: one.problem for one in found}


def test_those_that_answer_with_what_was_asked_are_alive(mirror):
    assert tried(mirror.environ) == {PIP: None, HUB: None, CONDA: None}


def test_html_in_place_of_a_file_is_dead_whatever_its_code(mirror):
    mirror.pages = {"*": HOTEL, "/simple/pip/": PAGE}
    assert tried(mirror.environ) == {
        PIP: "it answers HTML where a file was asked",
        HUB: "it answers HTML where a file was asked",
        CONDA: "it answers HTML where a file was asked",
    }


def test_an_index_that_names_no_wheel_is_dead(mirror):
    mirror.pages["/simple/pip/"] = HOTEL
    assert tried(mirror.environ)[PIP] == "its page of pip names no wheel"


def test_one_that_is_not_there_is_dead(mirror):
    mirror.pages = {}
    assert "404" in str(tried(mirror.environ)[HUB])
    gone = mirror.environ | {HUB: "http://127.0.0.1:1"}
    assert "refused" in str(tried(gone)[HUB])


def test_by_a_proxy_that_is_dead_the_mirror_is_dead_too(mirror):
    by_proxy = {HUB: "http://hf-mirror.invalid", "http_proxy": "http://127.0.0.1:1"}
    assert "refused" in str(tried(by_proxy, has_pip=False)[HUB])


def test_the_hook_may_name_it_and_no_password_is_told(mirror):
    url = mirror.url.replace("http://", "http://ada:not-to-be-told@")
    hook = f"export HF_ENDPOINT={url}/hub no_proxy=127.0.0.1"
    [one] = mirrors.try_mirrors(sys.executable, hook, {}, has_pip=False)
    assert (one.name, one.url) == (HUB, f"{mirror.url}/hub")


def test_what_pip_itself_is_set_to_is_tried_where_pip_is_used(mirror, tmp_path: Path):
    (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {mirror.url}/simple\n")
    environ = {"PIP_CONFIG_FILE": str(tmp_path / "pip.conf"), "no_proxy": "127.0.0.1"}
    assert tried(environ) == {PIP: None}
    assert tried(environ, has_pip=False) == {}


def test_a_python_that_is_not_there_knows_of_none():
    assert mirrors.try_mirrors("/nowhere/python", "", {}, has_pip=True) == ()


def test_a_dead_one_is_not_in_the_environment():
    environ = {PIP: "http://a", HUB: "http://b", "X": "1"}
    dead = (Tried(PIP, "http://a", "no"), Tried(HUB, "http://b", "no"), Tried(CONDA, "c", None))
    assert mirrors.without_dead(environ, dead) == {PIP: PIP_ITSELF, "X": "1"}
    assert mirrors.without_dead(environ, ()) == environ
