"""AutoDL's balance: a raw token, money in thousandths, and a no that comes with status 200."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from boxcar.laptop.providers.autodl import read_balance
from boxcar.laptop.providers.provider import NoRights


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """What was asked, and under `answer` what is to be said."""
    seen: dict[str, Any] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            seen["path"], seen["token"] = self.path, self.headers["Authorization"]
            self.rfile.read(int(self.headers["Content-Length"]))
            data = json.dumps(seen["answer"]).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *words: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    monkeypatch.setenv("AUTODL_API_URL", f"http://127.0.0.1:{server.server_port}")
    yield seen
    server.shutdown()
    server.server_close()


def test_the_wallet_is_told_in_yuan(asked):
    asked["answer"] = {"code": "Success", "msg": "", "data": {"assets": 12345}}
    found = read_balance("token-1", "x")
    assert found is not None and (found.amount, found.currency) == (12.345, "CNY")
    assert asked["path"] == "/api/v1/dev/wallet/balance" and asked["token"] == "token-1"


def test_a_no_with_status_200_is_a_no(asked):
    asked["answer"] = {"code": "AuthorizeFailed", "msg": "token-1 登录超时", "data": None}
    with pytest.raises(NoRights, match="登录超时") as raised:
        read_balance("token-1", "x")
    assert "token-1" not in str(raised.value)
