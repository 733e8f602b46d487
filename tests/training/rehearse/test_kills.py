from __future__ import annotations

from boxcar.training.rehearse.observer import Kill, Report, Save, Seen, choose_kills, earlier_kill


def seen(steps: int, saved_s: float | None = None) -> Seen:
    """A step each second; the first save between two of them."""
    reports = [Report(float(step), {"step": step}) for step in range(1, steps + 1)]
    return Seen(reports, [] if saved_s is None else [Save(saved_s, int(saved_s))])


def test_a_kill_comes_after_the_first_save_and_before_the_last_step() -> None:
    chosen = {choose_kills(seen(20, 5.5), 1, seed)[0].after_step for seed in range(300)}
    assert chosen == set(range(6, 20))


def test_a_kill_waits_for_at_most_one_more_report() -> None:
    waits = [choose_kills(seen(20, 5.5), 1, seed)[0].wait_s for seed in range(50)]
    assert 0 <= min(waits) < 0.2 and 0.8 < max(waits) <= 1


def test_the_same_seed_chooses_the_same_moments() -> None:
    assert choose_kills(seen(20, 5.5), 3, 7) == choose_kills(seen(20, 5.5), 3, 7)


def test_several_kills_come_at_different_steps_in_their_order() -> None:
    steps = [kill.after_step or 0 for kill in choose_kills(seen(20, 5.5), 4, 1)]
    assert steps == sorted(set(steps)) and len(steps) == 4
    assert len(choose_kills(seen(3), 9, 1)) == 2


def test_a_run_that_never_saves_is_killed_all_the_same() -> None:
    assert 1 <= (choose_kills(seen(20), 1, 1)[0].after_step or 0) <= 19


def test_without_steps_a_kill_comes_after_one_of_the_saves() -> None:
    saving = Seen(saves=[Save(float(at), None) for at in range(3, 10)])
    chosen = [choose_kills(saving, 1, seed)[0] for seed in range(100)]
    assert {kill.after_saves for kill in chosen} == set(range(1, 7))
    assert all(kill.after_step is None and kill.wait_s <= 1 for kill in chosen)


def test_several_kills_count_the_saves_of_their_own_start() -> None:
    saving = Seen(saves=[Save(float(at), None) for at in range(3, 10)])
    counts = [kill.after_saves or 0 for kill in choose_kills(saving, 6, 1)]
    assert counts == [1, 1, 1, 1, 1, 1]


def test_a_single_save_is_what_a_kill_comes_after_and_without_any_there_is_none() -> None:
    once = Seen(saves=[Save(6.0, None)])
    assert choose_kills(once, 1, 1) == [Kill(0.0, after_saves=1)]
    assert choose_kills(Seen(), 1, 1) == []


def test_a_kill_that_came_too_late_is_tried_earlier() -> None:
    kill = Kill(0.7, after_step=18)
    steps = []
    for _ in range(4):
        kill = earlier_kill(kill, seen(20, 5.5))
        steps.append(kill.after_step)
    assert steps == [12, 9, 7, 6] and kill.wait_s == 0
    assert earlier_kill(Kill(0.7, after_saves=5), Seen()) == Kill(0.0, after_saves=2)
    assert earlier_kill(Kill(0.7, after_saves=1), Seen()) == Kill(0.0, after_saves=1)
