"""Which of pip's indexes answer, on real sockets of this machine."""

from __future__ import annotations

import socket
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import pip_sources
from pip_sources import DEFAULT_INDEX, Source


@pytest.fixture(autouse=True)
def _no_proxy_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


class _Answers(BaseHTTPRequestHandler):
    """With the number that the path begins with."""

    def do_GET(self) -> None:
        self.send_response(int(self.path.split("/")[1]))
        self.end_headers()

    def log_message(self, format: str, *values: object) -> None:
        pass


@pytest.fixture
def index() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def mute() -> Iterator[str]:
    """It takes connections and says nothing."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/simple"


def why(url: str, proxy: str | None = None) -> str | None:
    return pip_sources.silent([Source(url, "")], proxy).get(url)


@pytest.mark.parametrize("code", [200, 401, 403, 404])
def test_an_index_that_answers_is_alive_also_without_that_package(index: str, code: int) -> None:
    assert why(f"{index}/{code}/simple") is None


def test_a_broken_server_is_no_index(index: str) -> None:
    assert why(f"{index}/503/simple/") == "it answers 503 Service Unavailable"


def test_a_closed_port_is_told() -> None:
    assert why(f"http://127.0.0.1:{closed_port()}/simple") == "connection refused"


def test_one_that_says_nothing_is_told_and_holds_up_no_other(
    mute: str, index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pip_sources, "PATIENCE_S", 0.2)
    asked = [Source(mute, ""), Source(f"{index}/200/simple", "")]
    assert pip_sources.silent(asked) == {mute: "no answer within 0.2 s"}


def test_a_dead_proxy_is_named_without_its_password(index: str) -> None:
    port = closed_port()
    assert why(f"{index}/200/simple", f"http://me:secret@127.0.0.1:{port}") == (
        f"the proxy http://127.0.0.1:{port} does not answer (connection refused)"
    )


def test_the_proxy_of_the_shell_is_the_one_that_is_asked(
    index: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{closed_port()}")
    assert "the proxy" in str(why(f"{index}/200/simple"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert why(f"{index}/200/simple") is None


def test_a_folder_is_an_index_where_it_is_there(tmp_path: Path) -> None:
    assert why(tmp_path.as_uri()) is None
    assert why((tmp_path / "gone").as_uri()) == "there is no such folder"


def test_no_name_or_password_is_shown() -> None:
    assert Source("https://me:secret@host:8/simple", "").shown == "https://host:8/simple"


def test_pip_itself_says_what_it_is_set_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text(
        "[global]\nindex-url = https://a/simple\nextra-index-url =\n  https://b/x\n  https://c/y\n"
        "[install]\nproxy = http://p:1\n"
    )
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", str(settings))
    monkeypatch.setenv("PIP_INDEX_URL", "https://mirror/simple")
    found = pip_sources.settings(sys.executable)
    assert found.sources == [
        Source("https://mirror/simple", "PIP_INDEX_URL"),
        Source("https://b/x", "pip config"),
        Source("https://c/y", "pip config"),
    ]
    assert found.proxy == "http://p:1"


@pytest.mark.parametrize(
    ("said", "urls"),
    [
        ("", [DEFAULT_INDEX]),
        ("global.index-url='https://m/simple'\n", ["https://m/simple"]),
        ("global.index-url='https://m'\ninstall.index-url='https://i'\n", ["https://i"]),
        (":env:.no-index='1'\nglobal.index-url='https://m'\n", []),
        ("a warning of pip's\nglobal.index-url='https://m'\n", ["https://m"]),
    ],
)
def test_what_pip_says_is_read_as_pip_reads_it(said: str, urls: list[str]) -> None:
    found = pip_sources._read(pip_sources._values(said))
    assert [source.url for source in found.sources] == urls
