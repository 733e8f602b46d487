"""One page on 127.0.0.1, under a path that only who was told it knows.

Any program and any page in a browser of this machine can ask a port of it. So the path is random,
and a request must have been made to this machine by name or number: a name that somebody else made
lead here (DNS rebinding) is not answered.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from boxcar.laptop.view.page.page_state import PageState, pack
from boxcar.shared.errors import InputError
from boxcar.shared.sentence import _

HOST = "127.0.0.1"
# Any port: `ssh -L` may lead here from another one.
_NAMES = (HOST, "localhost", "[::1]")
_SILENT_S = 15.0
_TOKEN_BYTES = 24
# What changed since one of these is answered alone.
_STATES_KEPT = 10
_PACKED, _LEAST_PACKED_BYTES = "gzip", 200
_HEADERS = {
    "Content-Type": "text/html; charset=utf-8",
    "Allow": "GET, HEAD",
    "Cache-Control": "no-store",
    "Vary": "Accept-Encoding",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    # What a page cannot say of itself; the rest of its policy stands in it.
    "Content-Security-Policy": "frame-ancestors 'none'",
}


@contextlib.contextmanager
def serve(port: int) -> Iterator[PageServer]:
    """The server while the block runs; port 0 takes a free one. Raises InputError for one that is
    taken.
    """
    try:
        server = PageServer(port)
    except (OSError, OverflowError) as error:
        raise InputError(
            _(
                "cannot serve on {host}:{port}: {error}. Choose another port with --port, or "
                "leave it out to use a free one",
                host=HOST,
                port=port,
                error=error,
            )
        ) from error
    thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()


class PageServer(ThreadingHTTPServer):
    """It answers with the newest of `states`, to which one may be added at any time; with what
    changed `?since=` one of them; and with what `opened` makes of a `?cell=`, None of an unknown
    one.
    """

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.states: deque[PageState] = deque([PageState("")], _STATES_KEPT)
        self.opened: Callable[[str], str | None] = lambda cell: None
        self.path = f"/{secrets.token_urlsafe(_TOKEN_BYTES)}/"
        super().__init__((HOST, port), _Handler)

    def answer(self, query: str) -> bytes | None:
        """None: there is nothing of that name."""
        asked = parse_qs(query)
        if cell := asked.get("cell"):
            text = self.opened(cell[0])
            return None if text is None else text.encode("utf-8", "replace")
        states = [*self.states]
        known = {str(state.number): state for state in states}
        old = known.get(asked.get("since", [""])[0])
        return states[-1].since(old) if old else states[-1].whole

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}{self.path}"

    def status_of(self, path: str, host: str) -> HTTPStatus:
        """What a request for this path is answered, which named this host."""
        if host.rpartition(":")[0] not in _NAMES and host not in _NAMES:
            return HTTPStatus.MISDIRECTED_REQUEST
        is_known = hmac.compare_digest(path.encode("utf-8", "replace"), self.path.encode())
        return HTTPStatus.OK if is_known else HTTPStatus.NOT_FOUND

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news; anything else is a defect, and is seen."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: PageServer
    timeout = _SILENT_S

    def do_GET(self) -> None:
        self._answer(is_head=False)

    def do_HEAD(self) -> None:
        self._answer(is_head=True)

    def _answer(self, *, is_head: bool) -> None:
        path, _mark, query = self.path.partition("?")
        status = self.server.status_of(path, self.headers.get("host", ""))
        page = self.server.answer(query) if status is HTTPStatus.OK else None
        if page is None:
            self.send_error(HTTPStatus.NOT_FOUND if status is HTTPStatus.OK else status)
            return
        is_packed = _PACKED in self.headers.get("accept-encoding", "")
        is_packed = is_packed and len(page) >= _LEAST_PACKED_BYTES
        newest = self.server.states[-1]
        if is_packed:
            page = newest.packed if page is newest.whole else pack(page)
        self._begin(status, len(page), _PACKED if is_packed else "")
        if not is_head:
            self.wfile.write(page)

    def _begin(self, status: int, size_bytes: int, packed: str = "") -> None:
        self.send_response_only(status)
        for name, value in _HEADERS.items():
            self.send_header(name, value)
        if packed:
            self.send_header("Content-Encoding", packed)
        self.send_header("Content-Length", str(size_bytes))
        self.send_header("Connection", "close")
        self.end_headers()

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Nothing of the request comes back."""
        if code == HTTPStatus.NOT_IMPLEMENTED:  # by the library's word, each other method
            code = HTTPStatus.METHOD_NOT_ALLOWED
        self.close_connection = True
        self._begin(code, 0)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: the page asks every few seconds."""
