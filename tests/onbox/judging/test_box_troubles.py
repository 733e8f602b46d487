"""Warned once, cleared once, and not of what only lasts for a moment."""

from __future__ import annotations

from typing import Any

import pytest

from onbox.judging.box_troubles import HOLD_S, BoxTroubles, Trouble

GIB = 1 << 30
WELL: dict[str, Any] = {"memory_used_bytes": 10 * GIB, "memory_limit_bytes": 100 * GIB}


class Box:
    def __init__(self) -> None:
        self.troubles, self.now_s = BoxTroubles(), 0.0

    def pass_by(self, minutes: float, *, is_at_work: bool = True, **reading: Any) -> list[Trouble]:
        found = []
        for _ in range(int(minutes * 12)):
            self.now_s += 5.0
            given = {key: one() if callable(one) else one for key, one in reading.items()}
            found += self.troubles.look(WELL | given, self.now_s, is_at_work=is_at_work)
        return found


def card(**facts: Any) -> list[dict[str, Any]]:
    return [{"temperature_c": 91, "memory_used_bytes": 0} | facts]


TROUBLES: list[tuple[str, dict[str, Any], str]] = [
    ("memory_near_limit", {"memory_used_bytes": 97 * GIB}, "97.0 of 100.0 GiB"),
    ("shm_full", {"shm_size_bytes": 64 << 20, "shm_free_bytes": 1 << 20}, "1 MiB left"),
    ("gpu_slowed_0", {"gpus": card(slowed_by=["heat (hardware)"])}, "heat (hardware), at 91 °C"),
    ("gpu_ecc_0", {"gpus": card(ecc_errors=3)}, "3 memory errors"),
    ("gpu_xid_0", {"gpus": card(xid=79)}, "Xid 79, an error of the card itself"),
]


@pytest.mark.parametrize(("what", "reading", "words"), TROUBLES, ids=[one[0] for one in TROUBLES])
def test_it_is_told_once_and_cleared_once(what, reading, words):
    box = Box()
    assert box.pass_by(30) == []
    [told] = box.pass_by(600, **reading)
    assert (told.what, told.is_over) == (what, False) and words in told.text
    [over] = box.pass_by(600)
    assert (over.what, over.is_over) == (what, True) and over.text == f"over: {told.text}"
    assert [one.is_over for one in box.pass_by(30, **reading)] == [False]


@pytest.mark.parametrize(("what", "reading", "words"), TROUBLES, ids=[one[0] for one in TROUBLES])
def test_a_moment_is_no_trouble_and_no_end_of_one(what, reading, words):
    box, moment = Box(), HOLD_S / 60 / 2
    for _ in range(50):
        assert box.pass_by(moment, **reading) == []
        assert box.pass_by(moment) == []
    box.pass_by(10, **reading)
    for _ in range(50):
        assert box.pass_by(moment) == []
        assert box.pass_by(moment, **reading) == []


def test_files_that_somebody_read_fill_no_memory():
    full = {"memory_used_bytes": 99 * GIB, "memory_cache_bytes": 60 * GIB}
    assert Box().pass_by(600, **full) == []


@pytest.mark.parametrize("name", ["scratch_free_bytes", "durable_free_inodes"])
def test_a_disk_that_fills_is_told_with_the_time_that_is_left(name):
    box, free = Box(), [360_000.0]

    def fills() -> float:
        free[0] -= 500.0  # 100 a second: an hour from full
        return free[0]

    told = box.pass_by(8, **{name: fills})
    assert len(told) == 1 and told[0].what == f"full_{name}"
    assert "min at this rate" in told[0].text
    assert [one.is_over for one in box.pass_by(30, **{name: free[0]})] == [True]


def test_a_disk_that_fills_within_days_or_is_freed_is_none():
    free = [1e9]

    def fills_slowly() -> float:
        free[0] -= 50.0
        return free[0]

    assert Box().pass_by(60, scratch_free_bytes=fills_slowly) == []
    assert Box().pass_by(60, scratch_free_bytes=lambda: -fills_slowly()) == []


def test_memory_of_a_card_counts_as_strange_only_while_no_cell_runs():
    held = {"gpus": card(memory_used_bytes=12 * GIB)}
    box = Box()
    assert box.pass_by(600, **held) == []
    [told] = box.pass_by(30, is_at_work=False, **held)
    assert told.what == "gpu_strange_0" and "12.0 GiB" in told.text


def test_a_box_that_says_nothing_has_no_trouble():
    box = BoxTroubles()
    assert [box.look({}, now_s * 5.0, is_at_work=False) for now_s in range(999)] == [[]] * 999


def test_an_xid_that_a_crashed_program_leaves_is_no_trouble_of_the_box():
    assert Box().pass_by(60, gpus=card(xid=31)) == []
