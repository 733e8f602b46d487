from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any, cast

import pytest
from stepping import see_through
from waiting import LIMIT_S

from onbox.agent import loop
from onbox.agent.loop import Loop
from onbox.agent.settler import CopySoFar


class Stand:
    """A loop, with what it says and how often it beats."""

    def __init__(self, progress: Any = None, idle: Any = None) -> None:
        self.said: list[tuple[str, dict[str, Any]]] = []
        self.beats, self.ends_at_beat = 0, 0
        self.ticked = threading.Event()
        self.trouble: OSError | None = None
        self.orders = SimpleNamespace(is_to_end=False)
        reporter = SimpleNamespace(say=self.say, journal_end=None, webhooks=dict)
        settler = SimpleNamespace(is_busy=False)
        settler.copy = CopySoFar()
        beat = SimpleNamespace(
            cell="a",
            tick=self.tick,
            idle=lambda: [idle] if idle else [],
            unheard=list,
            of_cells=list,
            troubles=list,
        )
        self._progress = progress
        place = SimpleNamespace(queue="q1", plan=SimpleNamespace(full_disk_s=0.0))
        parts = (place, reporter, beat, self.orders, settler)
        self.loop = Loop(*cast(Any, parts))

    def say(self, type: str, **data: Any) -> None:
        if self.trouble:
            raise self.trouble
        self.said.append((type, data))

    def tick(self, **_: Any) -> Any:
        self.beats += 1
        self.orders.is_to_end = self.beats == self.ends_at_beat
        self.ticked.set()
        return [self._progress] if self._progress else []


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "TICK_S", 0.001)


def test_the_heartbeat_goes_on_beside_what_takes_a_while():
    stand = Stand()
    assert see_through(stand.loop.beside(lambda: stand.ticked.wait(LIMIT_S)), stand.loop.tick)


def test_what_is_done_beside_it_raises_as_if_it_were_done_here():
    with pytest.raises(ZeroDivisionError):
        see_through(Stand().loop.beside(lambda: 1 // 0))


def test_a_pause_ends_when_the_agent_is_to_end():
    stand = Stand()
    stand.ends_at_beat = 3
    stand.loop.pause(LIMIT_S)
    assert stand.beats == 3


def test_progress_and_idle_gpus_are_said_of_the_cell_that_runs():
    about = {"cell": "a", "attempt": 2, "progress": {"step": 7}}
    stand = Stand(progress=about, idle={"cell": "a"})
    stand.loop.tick()
    assert stand.said == [("cell.progress", about), ("box.idle", {"cell": "a"})]


def test_a_tier_that_fails_for_a_moment_costs_an_event_of_progress_and_no_other():
    stand = Stand(progress={"progress": {"step": 7}})
    stand.trouble = OSError(5, "Input/output error")
    stand.loop.tick()
    with pytest.raises(OSError, match="Input/output"):
        stand.loop.say("cell.claimed", cell="a")
