"""No look for the next cell may walk over all that are through."""

from __future__ import annotations

import pytest

from boxcar.shared.files import queue_line
from onbox.agent.queue.open_lines import EVERY, OpenLines

MANY = 3 * EVERY


def queue_of(count: int, more: str = "") -> queue_line.Queue:
    return queue_line.parse("".join(f"c{n}.json t{more}\n" for n in range(count)).encode())


class Through:
    def __init__(self) -> None:
        self.cells: set[str] = set()
        self.asked = 0

    def __call__(self, line) -> bool:
        self.asked += 1
        return line.name in self.cells


@pytest.fixture
def through() -> Through:
    return Through()


def test_what_is_through_is_left_out_now_and_then_and_never_anything_else(through):
    queue, left = queue_of(MANY), OpenLines(through, lambda line: True)
    for number, line in enumerate(queue.cells):
        left.look(queue, number)
        assert {one.name for one in left.lines} >= {one.name for one in queue.cells[number:]}
        assert len(left.lines) <= MANY - number + EVERY
        through.cells.add(line.name)
    assert through.asked <= MANY * (MANY // EVERY + 1)


def test_another_queue_is_looked_at_whole(through):
    left = OpenLines(through, lambda line: True)
    left.look(queue_of(2), 0)
    through.cells.add("c0")
    left.look(queue_of(3), 0)
    assert [line.name for line in left.lines] == ["c1", "c2"]


def test_where_lines_were_added_only_what_was_left_and_these_are_looked_at(through):
    reader, left = queue_line.QueueReader(), OpenLines(through, lambda line: True)
    data = b"".join(b"c%d.json t\n" % number for number in range(MANY))
    through.cells |= {f"c{number}" for number in range(MANY - 1)}
    left.look(reader.read(data), MANY - 1)
    through.asked = 0
    left.look(reader.read(data + b"new.json t\n", has_grown=True), MANY - 1)
    assert [line.name for line in left.lines] == [f"c{MANY - 1}", "new"]
    assert through.asked == 2


def test_lines_without_a_config_and_lines_after_others_are_known(through):
    left = OpenLines(through, lambda line: line.cfg != "c1.json")
    left.look(queue_of(3), 0)
    assert [line.name for line in left.foreign] == ["c1"]
    assert not left.has_after
    left.look(queue_of(3, " after=c0"), 0)
    assert left.has_after
