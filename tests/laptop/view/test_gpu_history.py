from __future__ import annotations

from dataclasses import replace

from big_run import at, watched

from boxcar.laptop.view.gpu_history import (
    NOTHING_SEEN,
    GpuSample,
    History,
    history_after_look,
    idle_s,
    memory_bytes,
)

QUEUE = "queue_0"


def gpu_of(history: History, queue: str) -> tuple[GpuSample, ...]:
    return history.gpus.get(queue, ())


def test_what_was_seen_is_kept_for_half_an_hour_once_a_minute() -> None:
    history = watched(45, 93)
    assert 29 <= len(gpu_of(history, QUEUE)) <= 31
    again = history_after_look(history, at(60.0 * 44 + 5, (50,)))
    assert 29 <= len(gpu_of(again, QUEUE)) <= 31


def test_a_box_without_gpus_or_with_strange_ones_has_no_history() -> None:
    assert gpu_of(history_after_look(NOTHING_SEEN, at(0, ())), QUEUE) == ()
    assert gpu_of(history_after_look(NOTHING_SEEN, at(0, (None, "much"))), QUEUE) == ()
    assert gpu_of(NOTHING_SEEN, "another") == ()


def test_the_memory_of_the_fullest_gpu_is_kept_as_far_as_it_is_a_number() -> None:
    assert memory_bytes(None) == memory_bytes(["much"]) == []
    odd = {"memory_used_bytes": "much", "memory_total_bytes": 0}
    card = {"memory_used_bytes": 3, "memory_total_bytes": 4}
    assert memory_bytes([odd, {**card, "memory_total_bytes": 0}, card]) == [(3, 4)]


def test_the_same_heartbeat_is_no_second_sample() -> None:
    look = at(0, (50,))
    assert len(gpu_of(history_after_look(history_after_look(NOTHING_SEEN, look), look), QUEUE)) == 1


def test_a_heartbeat_of_the_future_hides_no_later_one() -> None:
    made = at(0, (50,))
    [queue] = made.queues
    assert queue.heartbeat
    ahead = replace(queue.heartbeat, at="9999-12-31T23:59:59.999Z")
    wrong = replace(made, queues=(replace(queue, heartbeat=ahead),))
    history = history_after_look(history_after_look(NOTHING_SEEN, wrong), at(60, (70,)))
    assert [sample.percent for sample in gpu_of(history, QUEUE)] == [70.0]


def test_an_idle_gpu_is_told_after_twenty_minutes_and_not_before() -> None:
    assert idle_s(gpu_of(watched(15, 2), QUEUE)) is None
    found = idle_s(gpu_of(watched(25, 2), QUEUE))
    assert found is not None and 20 * 60 <= found <= 25 * 60


def test_one_busy_gpu_of_several_is_no_idle_box() -> None:
    assert idle_s(gpu_of(watched(25, 0, 0, 95), QUEUE)) is None
    assert idle_s(gpu_of(watched(25, 0, 3, 4), QUEUE)) is not None


def test_nothing_is_idle_while_no_cell_runs() -> None:
    assert idle_s(gpu_of(watched(25, 0, phase="idle"), QUEUE)) is None


def test_a_pause_of_the_watch_is_no_idle_time() -> None:
    """Two looks with a laptop's sleep between them have seen too little."""
    history = history_after_look(history_after_look(NOTHING_SEEN, at(0, (2,))), at(25 * 60, (2,)))
    assert idle_s(gpu_of(history, QUEUE)) is None
