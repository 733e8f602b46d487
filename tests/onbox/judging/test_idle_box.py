"""Time, a notice, time again; and any doubt begins it all anew."""

from __future__ import annotations

from onbox.judging.idle_box import LONGEST_GAP_S, NOTICE_S, IdleBox, Step

AFTER_S, EVERY_S = 1800.0, 20.0


class Night:
    def __init__(self) -> None:
        self.box, self.now_s = IdleBox(AFTER_S), 0.0

    def pass_by(self, seconds: float, **look: bool) -> list[Step]:
        found = []
        for _ in range(round(seconds / EVERY_S)):
            self.now_s += EVERY_S
            found.append(self.box.look(self.now_s, **{"is_idle": True, **look}))
        return [step for step in found if step is not Step.NONE]


def test_after_half_an_hour_it_is_noticed_and_ten_minutes_later_it_ends():
    night = Night()
    assert night.pass_by(AFTER_S) == []
    assert night.pass_by(EVERY_S) == [Step.NOTICE]
    assert night.pass_by(NOTICE_S - EVERY_S) == []
    assert night.pass_by(EVERY_S) == [Step.END]


def test_a_box_that_works_is_never_noticed():
    assert Night().pass_by(24 * 3600.0, is_idle=False) == []


def test_a_doubt_before_the_notice_begins_the_time_anew():
    night = Night()
    night.pass_by(AFTER_S - EVERY_S)
    assert night.pass_by(EVERY_S, is_idle=False) == []
    assert night.pass_by(AFTER_S) == []
    assert night.pass_by(EVERY_S) == [Step.NOTICE]


def test_a_doubt_after_the_notice_is_told_and_begins_all_anew():
    night = Night()
    night.pass_by(AFTER_S + NOTICE_S)
    assert night.pass_by(EVERY_S, is_idle=False) == [Step.VOID]
    assert night.pass_by(AFTER_S) == []
    assert night.pass_by(NOTICE_S) == [Step.NOTICE]


def test_a_box_that_was_suspended_counts_as_a_doubt():
    night = Night()
    night.pass_by(AFTER_S + EVERY_S)
    night.now_s += 10 * LONGEST_GAP_S
    assert night.pass_by(EVERY_S) == [Step.VOID]


def test_the_ten_minutes_begin_when_the_notice_has_arrived():
    night = Night()
    night.pass_by(AFTER_S + EVERY_S)
    assert night.pass_by(24 * 3600.0, is_told=False) == []
    assert night.pass_by(NOTICE_S - EVERY_S) == []
    assert night.pass_by(EVERY_S) == [Step.END]
