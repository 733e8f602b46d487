"""How much a look for the next cell costs; which one it is, the agent's tests tell."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from boxcar.shared import state
from boxcar.shared.files import queue_line
from onbox.queue import lines as lines_of
from onbox.queue.lines import Lines
from onbox.queue.next_cell import Begin


class Reporter:
    """With the first so many cells verified."""

    def __init__(self, verified: int) -> None:
        self.verified = verified
        self.asked = 0

    def record(self, cell: str) -> state.CellRecord:
        self.asked += 1
        is_verified = int(cell[1:]) < self.verified
        return state.CellRecord(state.Verified(1, "", "")) if is_verified else state.NOTHING_YET

    def begun(self, cell: str) -> None:
        self.asked += 1


def of(count: int, reporter: Reporter) -> tuple[Lines, SimpleNamespace]:
    file = SimpleNamespace(queue=queue_line.Queue(), commented_out=lambda: (), path="q", now=b"")

    def append(start: int, end: int) -> None:
        file.now += "".join(f"c{n}.json t\n" for n in range(start, end)).encode()

    def look() -> bool:
        file.queue = queue_line.parse_queue(file.now)
        return True

    file.append, file.look = append, look
    append(0, count)
    own = SimpleNamespace(
        place=SimpleNamespace(release=SimpleNamespace(name="0"), durable=None),
        has_config=lambda line: True,
        saying=lambda line: None,
    )
    made = Lines(
        file,
        Begin(),
        reporter,
        own,
        lambda line: None,
        claims=SimpleNamespace(of_others=set()),
        acceptance=SimpleNamespace(doubts={}),
    )
    return made, file


def test_a_cell_that_was_put_off_is_passed_over_until_its_time_and_then_goes_first(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(lines_of.time, "monotonic", lambda: now[0])
    lines, _ = of(4, Reporter(1))
    lines.read()
    lines.put_off("c3", 90.0)
    lines.put_off("c2", 60.0)
    assert (lines.next().name, lines.has_waiting) == ("c1", True)
    now[0] = 60.0
    assert (lines.next().name, lines.has_waiting) == ("c2", True)
    lines.begins("c2")
    now[0] = 90.0
    assert (lines.next().name, lines.has_waiting) == ("c3", False)
    lines.begins("c3")
    assert lines.next().name == "c1"


@pytest.mark.parametrize("count", [10, 1000])
def test_of_an_appended_line_no_other_line_is_spelled_or_asked_again(monkeypatch, count):
    reporter = Reporter(count)
    lines, file = of(count, reporter)
    lines.read()
    reporter.asked = 0
    monkeypatch.setattr(lines_of.next_cell, "_content", lambda line: pytest.fail("spelled again"))
    file.append(count, count + 1)
    lines.read()
    assert reporter.asked == 1
