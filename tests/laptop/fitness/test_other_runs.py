from __future__ import annotations

from typing import Any

import pytest

from boxcar.laptop.fitness import other_runs
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
    assert other_runs.in_the_way(OthersSeen(runs, strangers), mine) == found


def test_a_box_that_does_not_answer_hides_no_other() -> None:
    def ask(box: str, question: Any) -> Any:
        if box == "box-a":
            raise TemporaryError("no route")
        return OthersSeen((AT_WORK,), (BOB,))

    [row] = other_runs.check(ask, ["box-a", "box-b", "box-c"][:2], None, "warn")
    assert (row.box, row.verdict, row.what) == ("box-b", "warn", other_runs.WHAT)
    assert row.found == "next (q1, q2), python3 (process 4711 of bob)"
