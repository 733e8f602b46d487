"""The server answers one path, to whoever was told it, and nothing else of this machine."""

from __future__ import annotations

import gzip
import http.client
import json
from collections.abc import Iterator

import pytest

from boxcar.laptop.view.page.page_state import PageState
from boxcar.laptop.view.page.server import PageServer, serve
from boxcar.shared.errors import InputError


@pytest.fixture
def server() -> Iterator[PageServer]:
    with serve(0) as made:
        made.states.append(PageState("<p>a page</p>", 1))
        yield made


def asked(
    server: PageServer, method: str, path: str, host: str = "", **headers: str
) -> tuple[int, bytes, dict[str, str]]:
    port = server.server_address[1]
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(method, path, headers=headers | ({"Host": host} if host else {}))
    answer = connection.getresponse()
    try:
        return answer.status, answer.read(), dict(answer.headers.items())
    finally:
        connection.close()


def test_the_page_is_read_under_its_own_path_and_kept_nowhere(server: PageServer) -> None:
    status, page, headers = asked(server, "GET", server.path)
    assert (status, page) == (200, b"<p>a page</p>")
    assert headers["Cache-Control"] == "no-store" and headers["Referrer-Policy"] == "no-referrer"
    assert headers["Content-Security-Policy"] == "frame-ancestors 'none'"
    assert asked(server, "HEAD", server.path)[:2] == (200, b"")


def test_it_packs_what_it_sends_to_who_can_unpack_it(server: PageServer) -> None:
    server.states.append(PageState("<p>row</p>" * 1000, 2))
    _, page, headers = asked(server, "GET", server.path, **{"Accept-Encoding": "br, gzip"})
    assert headers["Content-Encoding"] == "gzip" and headers["Vary"] == "Accept-Encoding"
    assert len(page) < 200 and gzip.decompress(page) == b"<p>row</p>" * 1000
    _, page, headers = asked(server, "GET", server.path)
    assert "Content-Encoding" not in headers and page == b"<p>row</p>" * 1000


def test_it_sends_what_changed_since_one_of_the_last_ten_and_else_all(server: PageServer) -> None:
    for number in range(2, 13):
        server.states.append(PageState(f'<p id="next">{number}</p>', number))
    news = json.loads(asked(server, "GET", f"{server.path}?since=3")[1])
    assert news["parts"] == {"next": '<p id="next">12</p>'} and news["number"] == 12
    assert json.loads(asked(server, "GET", f"{server.path}?since=12")[1])["parts"] == {}
    for since in ("2", "13", "x", ""):
        assert asked(server, "GET", f"{server.path}?since={since}")[1] == b'<p id="next">12</p>'
    assert asked(server, "GET", "/?since=3")[:2] == (404, b"")


def test_a_cell_is_opened_under_the_same_path_and_an_unknown_one_is_not_found(
    server: PageServer,
) -> None:
    server.opened = {"a b": "<article>größer</article>"}.get
    assert (
        asked(server, "GET", f"{server.path}?cell=a%20b")[1].decode() == "<article>größer</article>"
    )
    assert asked(server, "GET", f"{server.path}?cell=a")[:2] == (404, b"")
    assert asked(server, "GET", "/?cell=a%20b")[:2] == (404, b"")
    evil = asked(server, "GET", f"{server.path}?cell=a%20b", "evil.example")
    assert evil[:2] == (421, b"")


def test_it_is_bound_to_this_machine_alone_and_its_path_is_another_each_time() -> None:
    with serve(0) as one, serve(0) as other:
        assert one.server_address[0] == "127.0.0.1"
        assert one.path != other.path and len(one.path) > 30


@pytest.mark.parametrize("path", ["/", "/favicon.ico", "{}..", "{}x", "/../etc/passwd", "//", "/é"])
def test_any_other_path_is_not_found(server: PageServer, path: str) -> None:
    asked_for = path.format(server.path).replace("é", "%C3%A9")
    assert asked(server, "GET", asked_for)[:2] == (404, b"")
    assert asked(server, "GET", server.path[:-1])[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "SPAM"])
def test_only_reading_is_allowed(server: PageServer, method: str) -> None:
    status, said, headers = asked(server, method, server.path)
    assert (status, said, headers["Allow"]) == (405, b"", "GET, HEAD")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:{}", "127.0.0.1.evil.example:{}"])
def test_a_name_that_somebody_made_lead_here_is_not_answered(server: PageServer, host: str) -> None:
    named = host.format(server.server_address[1])
    assert asked(server, "GET", server.path, named)[:2] == (421, b"")


@pytest.mark.parametrize("host", ["localhost:9000", "127.0.0.1:1", "localhost", "[::1]:80"])
def test_a_port_that_ssh_leads_here_is_answered(server: PageServer, host: str) -> None:
    assert asked(server, "GET", server.path, host)[0] == 200


def test_a_port_that_is_taken_is_a_sentence(server: PageServer) -> None:
    with (
        pytest.raises(InputError, match="Choose another port with --port"),
        serve(server.server_address[1]),
    ):
        pass
