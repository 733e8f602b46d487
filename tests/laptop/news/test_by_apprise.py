from __future__ import annotations

import sys
import types
from typing import Any

import pytest

from boxcar.laptop.common import home
from boxcar.laptop.news.posting import by_apprise
from boxcar.shared.channels.answer import Endpoint

ENDPOINT = Endpoint("apprise", "json://user:hunter2@host/")


class FakeApprise:
    """As Apprise has it: `add` says whether it knows the address, `notify` whether it sent."""

    says: Any = True

    def add(self, url: str) -> bool:
        return url.startswith("json://")

    def notify(self, *, body: str, title: str) -> bool:
        if isinstance(self.says, Exception):
            raise self.says
        return bool(self.says)


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("apprise")
    module.Apprise = FakeApprise  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "apprise", module)


def test_what_apprise_sent_is_called_sent_and_not_taken() -> None:
    assert by_apprise(ENDPOINT, "a\nb").verdict == "sent"


@pytest.mark.parametrize("says", [False, None, RuntimeError("json://user:hunter2@host/")])
def test_what_it_did_not_send_is_tried_again_without_a_secret(
    says: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeApprise, "says", says)
    told = by_apprise(ENDPOINT, "a")
    assert told.verdict == "later"
    assert "hunter2" not in told.said


def test_an_address_that_it_does_not_know_is_refused() -> None:
    told = by_apprise(Endpoint("apprise", "pigeon://hunter2"), "a")
    assert told.verdict == "refused"
    assert "hunter2" not in told.said


def test_without_it_the_line_to_type_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    told = by_apprise(ENDPOINT, "a")
    assert told.verdict == "refused"
    assert home.install_line("apprise") in told.said
