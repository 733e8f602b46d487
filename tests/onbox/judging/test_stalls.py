"""Nothing is known before three; then ten times what is usual, never under fifteen minutes."""

from __future__ import annotations

from onbox.judging.stalls import FLOOR_S, LONGEST_GAP_S, START, STEPS, Stall, Stalls

TICK_S = 5.0


class Cell:
    def __init__(self, stalls: Stalls | None = None, now_s: float = 0.0) -> None:
        self.stalls, self.now_s, self.step, self.attempt = stalls or Stalls(), now_s, 0, 1

    def silent(self, seconds: float) -> list[Stall]:
        """A look every few seconds, at none of which anything has changed."""
        found = []
        for _ in range(round(seconds / TICK_S)):
            self.now_s += TICK_S
            found += self._look()
        return found

    def steps(self, count: int, every_s: float) -> list[Stall]:
        """So many steps, each after that much silence."""
        found = []
        for _ in range(count):
            found += self.silent(every_s - TICK_S)
            self.step += 1
            found += self.silent(TICK_S)
        return found

    def begins_again(self) -> None:
        self.attempt, self.step = self.attempt + 1, 0
        self._look()

    def _look(self) -> list[Stall]:
        is_stepping = self.step > 0
        said = self.stalls.look("a", self.attempt, self.step, self.now_s, is_stepping=is_stepping)
        return [said] if said else []


def test_with_fewer_than_three_nothing_is_told():
    cell = Cell()
    assert cell.steps(3, 5.0) == []  # the first ends the start
    assert cell.stalls.limit_s(STEPS) is None
    assert cell.silent(10 * FLOOR_S) == []


def test_silence_of_fifteen_minutes_is_told_once_and_its_end_once():
    cell = Cell()
    cell.steps(10, 5.0)
    [told] = cell.silent(4 * FLOOR_S)
    assert (told.phase, told.silent_s, told.limit_s, told.is_over) == (STEPS, FLOOR_S, FLOOR_S, 0)
    [over] = cell.steps(1, 5.0)
    assert over.is_over and over.silent_s == 4 * FLOOR_S + 5.0


def test_ten_times_the_median_where_steps_are_slow():
    cell = Cell()
    cell.steps(9, 300.0)
    assert cell.stalls.limit_s(STEPS) == 3000.0
    assert cell.silent(2990.0) == []
    assert len(cell.silent(20.0)) == 1


def test_what_went_on_by_itself_is_not_told_again_before_twice_as_long():
    cell = Cell()
    cell.steps(20, 5.0)
    assert len(cell.steps(1, 2000.0)) == 2  # told, and over
    assert cell.stalls.limit_s(STEPS) == 4000.0
    assert cell.silent(3990.0) == []


def test_starts_are_learned_by_themselves():
    cell = Cell()
    for _ in range(3):
        cell.steps(1, 600.0)
        cell.steps(20, 5.0)
        cell.begins_again()
    assert cell.stalls.limit_s(START) == 6000.0
    assert cell.silent(5990.0) == []
    [told] = cell.silent(20.0)
    assert told.phase == START


def test_a_first_start_is_never_told_however_long_it_takes():
    assert Cell().silent(24 * 3600.0) == []


def test_who_was_suspended_did_not_stand_still():
    cell = Cell()
    cell.steps(10, 5.0)
    cell.silent(FLOOR_S - 100)
    cell.now_s += 10 * LONGEST_GAP_S
    assert cell.silent(90.0) == []


def test_another_witness_begins_the_time_anew():
    cell = Cell()
    cell.steps(10, 5.0)
    [told] = cell.silent(FLOOR_S)
    assert cell.stalls.stands_still(told)
    cell.stalls.works("a")
    assert not cell.stalls.stands_still(told)
    assert cell.silent(FLOOR_S - 10) == []
    assert len(cell.silent(20.0)) == 1


def test_an_attempt_that_ended_is_forgotten_and_what_was_learned_is_not():
    cell = Cell()
    cell.steps(10, 5.0)
    [told] = cell.silent(FLOOR_S)
    cell.stalls.ends("a")
    assert not cell.stalls.stands_still(told)
    cell.begins_again()
    assert cell.steps(1, 5.0) == []
    assert len(cell.silent(FLOOR_S)) == 1
