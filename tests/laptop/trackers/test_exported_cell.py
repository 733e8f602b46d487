from __future__ import annotations

from dataclasses import replace

from exported import POINTS, cell

from boxcar.laptop.trackers.exported_cell import Point


def test_the_id_is_that_of_run_and_name_and_nothing_else() -> None:
    assert cell().id == cell(numbers={}, manifest="ef" * 32).id
    assert len({cell().id, cell("b").id, cell(run="other").id}) == 3


def test_the_content_changes_with_whatever_a_tracker_gets_and_not_with_the_receipt() -> None:
    one = cell()
    assert one.content == cell().content == cell(receipt="00" * 32).content
    others = [
        replace(one, config={}),
        replace(one, points=POINTS[:2]),
        replace(one, numbers={"acc": 0.5}),
        replace(one, manifest="00" * 32),
        replace(one, group="b"),
    ]
    assert len({one.content, *(other.content for other in others)}) == 6


def test_no_number_and_no_setting_takes_the_name_of_another() -> None:
    points = (Point(1, 1.0, {"final/acc": 0.5}),)
    assert cell(points=points).finals == {"final/acc_2": 0.75}
    told = cell(config={"run": "x", "boxcar.id": 7}).told
    assert (told["run"], told["run_2"], told["boxcar.id"]) == ("x", "tiny", 7)
    assert told["boxcar.id_2"] == cell().id
