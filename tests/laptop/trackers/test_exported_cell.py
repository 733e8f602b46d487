from __future__ import annotations

from dataclasses import replace

from exported import POINTS, cell

from boxcar.laptop.trackers.exported_cell import typed


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


def test_a_setting_is_a_number_or_a_truth_value_where_it_is_one() -> None:
    texts = ("8", "0.001", "true", "adam", "1.2.3", "nan8")
    assert [typed(text) for text in texts] == [8, 0.001, True, "adam", "1.2.3", "nan8"]
    assert isinstance(typed("8"), int)
