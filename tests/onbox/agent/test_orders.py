from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, control
from boxcar.shared.process import end_reason
from onbox.agent import orders
from onbox.agent.orders import Orders


@pytest.fixture(autouse=True)
def _signals_are_put_back() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture(autouse=True)
def _looks_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(orders, "_LOOK_EVERY_S", 0.0)


def write(path: Path, want: str) -> None:
    path.write_bytes(codec.to_document(control.Control(want, "2026-11-21T02:00:00.000Z")))


def test_without_an_order_it_goes_on(tmp_path):
    asked = Orders(tmp_path / "q.json", lambda: None)
    assert not asked.is_to_end
    assert not asked.is_to_stop


def test_a_drain_ends_after_the_cell_and_a_stop_now(tmp_path):
    path = tmp_path / "q.json"
    asked = Orders(path, lambda: None)
    write(path, control.DRAIN)
    assert (asked.is_to_end, asked.is_to_stop) == (True, False)
    assert (asked.by, "drain" in asked.reason) == (end_reason.DRAIN, True)
    write(path, control.STOP)
    assert (asked.is_to_end, asked.is_to_stop) == (True, True)
    assert (asked.by, "stop" in asked.reason) == (end_reason.STOP, True)
    write(path, control.RUN)
    assert (asked.is_to_end, asked.is_to_stop) == (False, False)


@pytest.mark.parametrize(
    ("want", "until", "by"),
    [("run", "2020-01-01T00:00:00.000Z", "spent"), ("run", "2999-01-01T00:00:00.000Z", "run"),
     ("stop", "2020-01-01T00:00:00.000Z", "stop")],
)  # fmt: skip
def test_no_cell_begins_after_the_budgets_instant(tmp_path, want, until, by):
    path = tmp_path / "q.json"
    at = "2026-11-21T02:00:00.000Z"
    path.write_bytes(codec.to_document(control.Control(want, at, begin_until=until)))
    asked = Orders(path, lambda: None)
    assert asked.is_to_end == (by != "run")
    assert asked.is_to_stop == (by == "stop") and asked.by == by


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_means_stop_wakes_the_loop_and_is_the_reason(tmp_path, number):
    woken = []
    asked = Orders(tmp_path / "q.json", lambda: woken.append(1))
    os.kill(os.getpid(), number)
    assert woken
    assert (asked.is_to_end, asked.is_to_stop) == (True, True)
    assert (asked.by, number.name in asked.reason) == (end_reason.SIGNAL, True)
    first = asked.signalled_at
    os.kill(os.getpid(), number)
    assert first
    assert asked.signalled_at == first


def test_a_signal_outranks_the_file(tmp_path):
    path = tmp_path / "q.json"
    asked = Orders(path, lambda: None)
    os.kill(os.getpid(), signal.SIGTERM)
    write(path, control.RUN)
    assert asked.is_to_stop


def test_a_damaged_file_is_not_taken_for_an_order(tmp_path):
    path = tmp_path / "q.json"
    asked = Orders(path, lambda: None)
    path.write_bytes(b"{")
    with pytest.raises(DamagedError, match=r"q\.json"):
        _ = asked.is_to_end


def test_the_file_is_not_looked_at_all_the_time(tmp_path, monkeypatch):
    monkeypatch.setattr(orders, "_LOOK_EVERY_S", 3600.0)
    path = tmp_path / "q.json"
    asked = Orders(path, lambda: None)
    assert not asked.is_to_end
    write(path, control.STOP)
    assert not asked.is_to_end
