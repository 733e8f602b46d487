from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def out_of_the_checkout(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a training writes beside its script by default would lie in the checkout."""
    monkeypatch.setenv("BOXCAR_OUT", str(tmp_path_factory.getbasetemp()))


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


@pytest.fixture(autouse=True)
def signals_as_before() -> Iterator[None]:
    """What a training asks to be told of is heard by no later test, nor by what that forks."""
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)
