from __future__ import annotations

from typing import Any

import pytest

from boxcar.laptop.fitness import other_runs
from boxcar.laptop.fitness.other_runs import Mine
from boxcar.shared.errors import TemporaryError
from boxcar.shared.wire.box_asks import OtherRun, OthersSeen, Stranger

AT_WORK = OtherRun("next", ("q1", "q2"), ("x",), {})
ON_1 = OtherRun("next", (), ("x",), {}, ("1",))
AT_REST = OtherRun("last", (), (), {"x": None})
BOB = Stranger(4711, "python3", "bob")


@pytest.mark.parametrize(
    ("runs", "strangers", "mine", "found"),
    [
        ((), (), None, []),
        ((AT_REST,), (), None, []),
        ((AT_REST, AT_WORK), (), None, ["next (q1, q2)"]),
        ((AT_WORK,), (), ("0",), ["next (q1, q2)"]),
        ((ON_1,), (), ("0",), []),
        ((ON_1,), (), ("0", "1"), ["next (x)"]),
        ((ON_1,), (), None, ["next (x)"]),
        ((), (BOB,), ("0",), ["python3 (process 4711 of bob)"]),
        ((), (Stranger(1, "x", "0", ("1",)),), ("0",), []),
    ],
)
def test_who_is_in_the_way_of_a_run_that_sees_these_gpus(
    runs: Any, strangers: Any, mine: Any, found: list[str]
) -> None:
    assert other_runs.in_the_way(OthersSeen(runs, strangers), Mine(mine)) == found


def test_a_box_that_does_not_answer_hides_no_other() -> None:
    def ask(box: str, question: Any) -> Any:
        if box == "box-a":
            raise TemporaryError("no route")
        return OthersSeen((AT_WORK,), (BOB,))

    [row] = other_runs.check(ask, ["box-a", "box-b", "box-c"][:2], Mine(), "warn")
    assert (row.box, row.verdict, row.what) == ("box-b", "warn", other_runs.WHAT)
    assert row.found == "next (q1, q2), python3 (process 4711 of bob)"


def test_runs_whose_cells_take_free_gpus_under_shared_locks_are_not_in_each_others_way() -> None:
    takes = OtherRun("next", ("q1",), (), {}, takes_free_gpus=True)
    slots = Mine(takes_free_gpus=True)
    assert other_runs.in_the_way(OthersSeen((takes,), ()), slots) == []
    assert other_runs.in_the_way(OthersSeen((takes,), ()), Mine()) == ["next (q1)"]
    assert other_runs.in_the_way(OthersSeen((AT_WORK,), ()), slots) == ["next (q1, q2)"]
    assert other_runs.in_the_way(OthersSeen((), (BOB,)), slots), "who takes no lock"
