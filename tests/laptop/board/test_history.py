from __future__ import annotations

from dataclasses import replace

from big_run import view
from run_on_disk import from_now

from boxcar.laptop.board.history import NOTHING_SEEN, History, gpu_of, idle_s, seen
from boxcar.laptop.run.view import RunView

QUEUE = "queue_0"


def at(seconds: float, percents: tuple[object, ...], phase: str = "running") -> RunView:
    """A look at that moment, with a heartbeat of a second before."""
    made = view(3, 1)
    [queue] = made.queues
    assert queue.heartbeat
    gauges = {"gpus": [{"utilization_percent": percent} for percent in percents]}
    beat = replace(queue.heartbeat, at=from_now(seconds - 1), gauges=gauges, phase=phase)
    return replace(made, at=from_now(seconds), queues=(replace(queue, heartbeat=beat),))


def watched(minutes: int, *percents: object, phase: str = "running") -> History:
    history = NOTHING_SEEN
    for minute in range(minutes):
        history = seen(history, at(60.0 * minute, percents, phase))
    return history


def test_what_was_seen_is_kept_for_half_an_hour_once_a_minute() -> None:
    history = watched(45, 93)
    assert 29 <= len(gpu_of(history, QUEUE)) <= 31
    again = seen(history, at(60.0 * 44 + 5, (50,)))
    assert 29 <= len(gpu_of(again, QUEUE)) <= 31


def test_a_box_without_gpus_or_with_strange_ones_has_no_history() -> None:
    assert gpu_of(seen(NOTHING_SEEN, at(0, ())), QUEUE) == ()
    assert gpu_of(seen(NOTHING_SEEN, at(0, (None, "much"))), QUEUE) == ()
    assert gpu_of(NOTHING_SEEN, "another") == ()


def test_the_same_heartbeat_is_no_second_sample() -> None:
    look = at(0, (50,))
    assert len(gpu_of(seen(seen(NOTHING_SEEN, look), look), QUEUE)) == 1


def test_a_heartbeat_of_the_future_hides_no_later_one() -> None:
    made = at(0, (50,))
    [queue] = made.queues
    assert queue.heartbeat
    ahead = replace(queue.heartbeat, at="9999-12-31T23:59:59.999Z")
    wrong = replace(made, queues=(replace(queue, heartbeat=ahead),))
    history = seen(seen(NOTHING_SEEN, wrong), at(60, (70,)))
    assert [sample.percent for sample in gpu_of(history, QUEUE)] == [70.0]


def test_an_idle_gpu_is_told_after_twenty_minutes_and_not_before() -> None:
    assert idle_s(gpu_of(watched(15, 2), QUEUE)) is None
    found = idle_s(gpu_of(watched(25, 2), QUEUE))
    assert found is not None and 20 * 60 <= found <= 25 * 60


def test_one_busy_gpu_of_several_is_no_idle_box() -> None:
    assert idle_s(gpu_of(watched(25, 0, 0, 95), QUEUE)) is None
    assert idle_s(gpu_of(watched(25, 0, 3, 9), QUEUE)) is not None


def test_nothing_is_idle_while_no_cell_runs() -> None:
    assert idle_s(gpu_of(watched(25, 0, phase="idle"), QUEUE)) is None


def test_a_pause_of_the_watch_is_no_idle_time() -> None:
    """Two looks with a laptop's sleep between them have seen too little."""
    history = seen(seen(NOTHING_SEEN, at(0, (2,))), at(25 * 60, (2,)))
    assert idle_s(gpu_of(history, QUEUE)) is None
