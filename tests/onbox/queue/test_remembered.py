from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from boxcar.shared import state
from boxcar.shared.errors import DamagedError
from boxcar.shared.files.journal_chain import Event
from onbox.queue.reporter import Remembered

AT = "2026-11-22T10:00:00.000Z"


def events(*said: tuple[str, dict[str, Any]]) -> list[Event]:
    return [Event(seq, f"evt_{seq}", AT, type, data) for seq, (type, data) in enumerate(said, 1)]


def life(cell: str) -> list[tuple[str, dict[str, Any]]]:
    one: dict[str, Any] = {"cell": cell, "attempt": 1}
    made = {"manifest_sha256": "a" * 64}
    return [
        ("cell.claimed", {"cell": cell}),
        ("cell.started", one | {"cfg": f"{cell}.yaml", "task": "t", "epochs": 3, "release": "r1"}),
        ("cell.progress", one | {"progress": {"step": 3}}),
        ("cell.retried", one | {"failure": "OOM", "reason": "full", "wait_s": 1}),
        ("cell.succeeded", one | {"seconds": 5.0}),
        ("cell.synced", one | made | {"size_bytes": len(cell) * 10}),
        ("cell.verified", one | made | {"metrics": {"psnr": 31.5}}),
    ]


AGENT = ("agent.started", {"pid": 7, "release": "r1", "box": "b", "start_index": 0})
ALL = [
    AGENT,
    *life("a"),
    ("box.warning", {"what": "left_out", "text": "x", "cell": "a"}),
    *life("bb"),
    AGENT,
    ("cell.started", {"cell": "c", "attempt": 1, "cfg": "c", "task": "t", "epochs": 1}),
    ("queue.done", {"verified": 2}),
]


def replayed(events: Sequence[Event]) -> state.State:
    """With what the agent keeps of a verified cell."""
    replay = state.Replay()
    for event in events:
        replay.take(event)
        replay.shorten(event.cell or "")
    return replay.state()


def test_after_every_event_its_state_is_that_of_a_replay() -> None:
    kept = Remembered(())
    for count, event in enumerate(whole := events(*ALL), 1):
        kept.take(event)
        assert kept.state() == replayed(whole[:count])
        words = {cell: record.state.word for cell, record in kept.state().cells.items()}
        full = state.replay(whole[:count]).cells
        assert words == {cell: record.state.word for cell, record in full.items()}
        assert [r.attempts for r in kept.state().cells.values()] == [
            r.attempts for r in full.values()
        ]
    assert Remembered(whole).state() == kept.state()


def test_a_state_that_was_asked_for_stays_as_it_was() -> None:
    whole = events(*ALL)
    kept = Remembered(whole[:3])
    before = kept.state()
    for event in whole[3:]:
        kept.take(event)
    assert before == replayed(whole[:3])


def test_of_each_kind_the_newest_about_a_cell_is_known() -> None:
    kept = Remembered(events(*ALL, ("cell.started", life("a")[1][1] | {"attempt": 2})))
    assert kept.newest["cell.started"]["a"].data["attempt"] == 2
    assert "bb" not in kept.newest["cell.succeeded"], "it is verified"
    assert kept.begun["a"].data["attempt"] == 2
    assert kept.started_from == {"r1": "a"}
    assert kept.largest_result_bytes == 20
    assert kept.was_warned("left_out", "a")
    assert not kept.was_warned("left_out", "bb")


def test_of_a_verified_cell_so_few_bytes_are_kept_that_a_long_queue_is_no_matter() -> None:
    cells = [f"cell_{number:04}" for number in range(100)]
    kept = Remembered(events(*itertools.chain.from_iterable(map(life, cells))))
    records = kept.state().cells
    assert len({id(records[cell]) for cell in cells}) == 1
    assert sum(len(kept.begun.packed(cell)) for cell in cells) < 5_000
    assert all(kept.begun.packed(c) is kept.newest["cell.started"].packed(c) for c in cells)
    assert [kept.begun[cell].data["cfg"] for cell in cells] == [f"{cell}.yaml" for cell in cells]
    assert "cell.synced" not in kept.newest


def test_where_results_are_copied_what_was_synced_is_known() -> None:
    kept = Remembered(events(*ALL), is_copied=True)
    assert set(kept.newest["cell.synced"]) == {"a", "bb"}


def test_a_lent_result_says_how_its_cell_was_begun() -> None:
    lent = ("cell.verified", {"cell": "a", "attempt": 1, "manifest_sha256": "b", "cfg": "a.yaml"})
    assert Remembered(events(lent)).begun["a"].type == "cell.verified"


def test_an_event_that_lacks_what_its_type_must_say_is_damage() -> None:
    with pytest.raises(DamagedError, match="lacks 'attempt'"):
        Remembered(events(("cell.succeeded", {"cell": "a"})))


def test_an_event_costs_the_same_after_many_as_after_few() -> None:
    def calls_of_one_more(count: int) -> int:
        said = itertools.chain.from_iterable(life(f"c{number}") for number in range(count + 1))
        *before, last = events(*said)
        kept = Remembered(before)
        kept.state()
        return _calls(lambda: (kept.take(last), kept.state(), kept.newest["cell.started"]["c0"]))

    assert calls_of_one_more(200) == calls_of_one_more(2)


def _calls(act: Callable[[], object]) -> int:
    count = 0

    def hook(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(hook)
    try:
        act()
    finally:
        sys.setprofile(None)
    return count
