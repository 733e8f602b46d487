"""A stand-in for each provider, our key in the environment, and a clock that does not wait."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rental import QuickClock
from stand_in_providers import CONTRACTS, environment, stand_in

from boxcar.laptop.common import provider_keys
from boxcar.laptop.providers import calls, known
from boxcar.laptop.providers.provider import Provider


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> QuickClock:
    made = QuickClock()
    monkeypatch.setattr(calls, "CLOCK", made.clock())
    return made


@pytest.fixture(autouse=True)
def _no_key_of_a_person(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    for name in provider_keys.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(provider_keys, "_hidden", {})
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


@pytest.fixture(params=sorted(CONTRACTS))
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with stand_in(request.param) as made:
        for name, value in environment(made).items():
            monkeypatch.setenv(name, value)
        yield made
        assert made.wrong == [], "a request that is not in the contract"


@pytest.fixture
def provider(server: Any) -> Provider:
    return known.open_provider(server.name)
