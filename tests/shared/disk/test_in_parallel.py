from __future__ import annotations

import threading

import pytest

from boxcar.shared.disk import tree_sync

MANY = range(tree_sync._MANY_THINGS + 2 * tree_sync._BLOCK)


def threads_of(these: range, monkeypatch: pytest.MonkeyPatch, *quick: int) -> list[str]:
    """In which thread each was done, where those that were tried alone were quick or not."""
    answers = iter(quick)
    monkeypatch.setattr(tree_sync, "is_quick", lambda *took: bool(next(answers, True)))
    return tree_sync.run_in_parallel(lambda one: threading.current_thread().name, these)


def test_what_is_done_in_no_time_is_done_one_after_another(monkeypatch) -> None:
    assert set(threads_of(MANY, monkeypatch)) == {threading.current_thread().name}


def test_after_one_that_takes_a_while_a_block_is_done_at_once(monkeypatch) -> None:
    here = threading.current_thread().name
    names = threads_of(MANY, monkeypatch, 1, 0, 1)
    beside = [at for at, name in enumerate(names) if name != here]
    assert beside == list(range(2, 2 + tree_sync._BLOCK))


def test_of_few_nobody_is_tried_alone(monkeypatch) -> None:
    names = threads_of(range(2), monkeypatch)
    assert threading.current_thread().name not in names


def test_one_is_done_here() -> None:
    assert tree_sync.run_in_parallel(lambda one: threading.current_thread().name, [1]) == [
        threading.current_thread().name
    ]


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize("count", [0, 1, 2, len(MANY)])
def test_what_came_of_each_stands_in_its_place(monkeypatch, count: int, is_quick: bool) -> None:
    monkeypatch.setattr(tree_sync, "is_quick", lambda *took: is_quick)
    assert tree_sync.run_in_parallel(lambda one: -one, range(count)) == [
        -one for one in range(count)
    ]


@pytest.mark.parametrize("is_quick", [True, False])
@pytest.mark.parametrize("at", [0, 1, len(MANY) - 1])
def test_what_the_first_raises_is_raised(monkeypatch, at: int, is_quick: bool) -> None:
    monkeypatch.setattr(tree_sync, "is_quick", lambda *took: is_quick)

    def fail(one: int) -> None:
        if one >= at:
            raise ValueError(one)

    with pytest.raises(ValueError, match=f"^{at}$"):
        tree_sync.run_in_parallel(fail, MANY)


@pytest.mark.parametrize(
    ("took_s", "cpu_s", "is_quick"),
    [(0.0005, 0.0005, True), (0.0005, 0.0001, False), (0.0015, 0.0015, False), (0.0, 0.0, False)],
)
def test_quick_is_who_waits_for_nobody(took_s: float, cpu_s: float, is_quick: bool) -> None:
    assert tree_sync.is_quick(took_s, cpu_s) is is_quick
