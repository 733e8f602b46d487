from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from boxcar.shared import state
from boxcar.shared.errors import DamagedError
from boxcar.shared.process import ended_by, exit_codes
from onbox.agent import ending
from onbox.agent.ending import Ending
from onbox.agent.outcome import StopQueue
from onbox.machine.credentials import BoxSecrets


class Stand:
    """A queue's end: what is done, in its order."""

    def __init__(
        self,
        *states: Any,
        left_open: tuple[str, ...] = (),
        has_next: bool = False,
        is_typed: bool = False,
    ) -> None:
        self.did: list[str] = []
        self.errors: list[BaseException] = []
        self.busy = 0
        self.trouble: OSError | None = None
        self.orders = SimpleNamespace(is_to_end=False, is_to_stop=False)
        self.orders.reason, self.orders.exit_code = "a person asked", 9
        self.orders.by = ended_by.SIGNAL
        cells = {str(at): SimpleNamespace(state=one) for at, one in enumerate(states)}
        reporter = SimpleNamespace(
            say=self.say,
            flush=lambda: self.did.append("flush"),
            close=lambda flush_s: self.did.append("reporter closed"),
            state=lambda: SimpleNamespace(cells=cells),
            secrets=BoxSecrets(),
        )
        beat = SimpleNamespace(at=lambda cell: None)
        loop = SimpleNamespace(say=self.say, tick=lambda: None, beat=beat)
        lines = SimpleNamespace(
            left_open=lambda: list(left_open),
            read=lambda: True,
            next=lambda: has_next or None,
            is_typed=is_typed,
        )
        loop.reporter, loop.orders, loop.settler = reporter, self.orders, self
        loop.place = SimpleNamespace(queue="q1")
        self.ending = Ending(cast(Any, loop), cast(Any, lines), cast(Any, self))

    def say(self, type: str, **data: Any) -> None:
        if self.trouble:
            raise self.trouble
        self.did.append(f"{type} {data.get('reason') or ''}".strip())

    # As a settler and a second home are.

    @property
    def is_busy(self) -> bool:
        self.busy -= 1
        return self.busy >= 0

    def failures(self) -> list[BaseException]:
        return self.errors

    def begin(self) -> None:
        self.did.append("settles")

    def close(self) -> None:
        self.did.append("closed")

    def hurry(self) -> None:
        self.did.append("hurries")

    def wait(self, timeout_s: float) -> None:
        self.did.append("waits")


VERIFIED = state.Verified.__new__(state.Verified)
FAILED = state.Failed.__new__(state.Failed)


@pytest.mark.parametrize(
    ("stand", "exit_code"),
    [
        pytest.param(Stand(VERIFIED), exit_codes.DONE, id="all is well"),
        pytest.param(Stand(VERIFIED, FAILED), exit_codes.FAILED, id="a cell failed"),
        pytest.param(
            Stand(VERIFIED, left_open=("line 3",)), exit_codes.FAILED, id="a line is open"
        ),
    ],
)
def test_a_queue_that_is_done_says_so_before_it_leaves(stand: Stand, exit_code: int) -> None:
    assert stand.ending.done() == exit_code
    assert [what.split()[0] for what in stand.did] == [
        *("queue.done", "closed", "closed", "agent.stopped", "reporter")
    ]


def test_one_that_was_to_end_is_stopped_and_not_done() -> None:
    stand = Stand(VERIFIED)
    stand.orders.is_to_end = True
    assert stand.ending.done() == 9
    assert "queue.stopped a person asked" in stand.did
    assert not any(what.startswith("queue.done") for what in stand.did)


@pytest.mark.parametrize(
    ("has_next", "is_typed", "exit_code"),
    [
        (True, False, exit_codes.PREEMPTED),
        (False, True, exit_codes.PREEMPTED),  # a last line without its line feed
        (False, False, exit_codes.DONE),
    ],
)
def test_a_turn_that_is_over_leaves_the_next_cell_and_without_one_the_queue_is_done(
    has_next: bool, is_typed: bool, exit_code: int
) -> None:
    stand = Stand(VERIFIED, has_next=has_next, is_typed=is_typed)
    assert stand.ending.turn_over() == exit_code
    assert any(what.startswith("queue.done") for what in stand.did) != (has_next or is_typed)


def test_what_was_handed_over_is_settled_though_nothing_more_can_be_said() -> None:
    stand = Stand()
    stand.trouble = OSError(5, "Input/output error")
    assert stand.ending.stopped("the tier is gone", 7) == 7
    assert stand.did == ["closed"]


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (DamagedError("a.json: is damaged"), exit_codes.STOP_QUEUE),
        (OSError(28, "No space left on device"), exit_codes.NO_ROOM),
    ],
)
def test_a_result_that_cannot_be_settled_stops_the_queue(
    error: BaseException, exit_code: int
) -> None:
    stand = Stand()
    stand.busy, stand.errors = 1, [error]
    with pytest.raises(StopQueue, match="a result could not be settled") as stopped:
        stand.ending.wait_for_settling()
    assert stopped.value.exit_code == exit_code


def test_at_a_stop_what_is_still_settled_is_hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "TICK_S", 0.0)
    stand = Stand()
    stand.busy = 1
    stand.orders.is_to_stop = True
    stand.ending.wait_for_settling()
    assert stand.did == ["hurries", "waits"]
