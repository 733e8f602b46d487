from __future__ import annotations

import math
import threading
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_training import Marked, names_in
from waiting import LIMIT_S

from boxcar.shared.errors import DamagedError, InputError, NoRoomError
from boxcar.training.checkpoint import checkpoint_file
from boxcar.training.checkpoint.behind import Behind


def started(out: Path) -> Marked:
    training = Marked(out)
    training.checkpointer.load_latest()
    return training


def best_of(out: Path) -> tuple[float, float]:
    """Its metric, and the number that all its weights hold."""
    content = torch.load(out / "best.pth", weights_only=True)
    [mark] = content["model"]["weight"].unique().tolist()
    return content["metric"], mark


def test_only_a_better_one_replaces_it(tmp_path: Path) -> None:
    training = started(tmp_path)
    found = []
    for step, metric in enumerate([0.5, 0.4, 0.5, 0.9, math.nan, 0.8], start=1):
        training.mark(step)
        found.append(training.checkpointer.save_best(metric))
    assert found == [True, False, False, True, False, False]
    assert best_of(tmp_path) == (0.9, 4)
    assert training.state.best == {"metric": 0.9, "mode": "max", "step": 4, "epoch": 0}


def test_it_waits_for_room_that_a_save_before_it_still_makes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training, write = started(tmp_path), checkpoint_file.write
    is_full, freed = threading.Event(), threading.Event()
    Behind("test").do(lambda: is_full.wait(LIMIT_S) and freed.set())

    def with_little_room(*content: Any, **how: bool) -> None:
        is_full.set()
        if not freed.is_set():
            raise NoRoomError("no room yet")
        write(*content, **how)

    monkeypatch.setattr(checkpoint_file, "write", with_little_room)
    training.mark(1)
    assert training.checkpointer.save_best(0.5)
    assert best_of(tmp_path) == (0.5, 1)


def test_less_may_be_better(tmp_path: Path) -> None:
    training = started(tmp_path)
    found = [training.checkpointer.save_best(metric, mode="min") for metric in (0.5, 0.6, 0.4)]
    assert found == [True, False, True]
    for mode, said in (("max", "was taken with mode 'min'"), ("most", "should be 'max' or 'min'")):
        with pytest.raises(InputError, match=said):
            training.checkpointer.save_best(0.7, mode=mode)


def test_a_resume_goes_on_comparing(tmp_path: Path) -> None:
    training = started(tmp_path)
    training.mark(1)
    training.checkpointer.save_best(0.9)
    training.checkpointer.save_async()
    training.checkpointer.wait()
    again = started(tmp_path)
    again.mark(2)
    assert not again.checkpointer.save_best(0.8)
    assert again.checkpointer.save_best(0.95)
    assert best_of(tmp_path) == (0.95, 2)


def test_a_box_that_got_latest_alone_writes_the_best_again(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    training = started(one)
    training.mark(1)
    training.checkpointer.save_best(0.9)
    training.mark(2)
    training.checkpointer.save()
    two.mkdir()
    (one / "latest.pth").rename(two / "latest.pth")
    again = started(two)
    assert again.marks() == {2.0}
    assert best_of(two) == (0.9, 1)
    assert not again.checkpointer.save_best(0.85)


def test_a_better_result_of_steps_that_were_lost_is_kept(tmp_path: Path) -> None:
    training = started(tmp_path)
    training.mark(1)
    training.checkpointer.save_best(0.5)
    training.checkpointer.save()
    training.mark(2)
    training.checkpointer.save_best(0.9)  # and killed before the next save
    again = started(tmp_path)
    assert again.state.best["metric"] == 0.9  # type: ignore[index]
    again.mark(3)
    assert not again.checkpointer.save_best(0.7)
    assert best_of(tmp_path) == (0.9, 2)


def test_the_best_of_a_start_that_saved_nothing_else_is_kept(tmp_path: Path) -> None:
    training = started(tmp_path)
    training.mark(1)
    training.checkpointer.save_best(0.9)  # and killed before the first save
    again = started(tmp_path)
    again.mark(1)
    assert not again.checkpointer.save_best(0.1)
    assert best_of(tmp_path) == (0.9, 1)


def test_one_that_does_not_read_back_does_not_replace_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = started(tmp_path)
    training.mark(1)
    training.checkpointer.save_best(0.5)

    def refuse(*_: Any, **__: Any) -> None:
        raise DamagedError("other bytes")

    monkeypatch.setattr(checkpoint_file, "check_intact", refuse)
    training.mark(2)
    with pytest.raises(DamagedError):
        training.checkpointer.save_best(0.9)
    assert best_of(tmp_path) == (0.5, 1)
    assert names_in(tmp_path) == ["best.pth"]
    monkeypatch.undo()
    assert training.checkpointer.save_best(0.6)


def test_another_programs_best_is_not_overwritten(tmp_path: Path) -> None:
    torch.save({"model": {}}, tmp_path / "best.pth")
    with pytest.raises(InputError, match=r"best\.pth: is not a checkpoint of boxcar\.training"):
        started(tmp_path).checkpointer.save_best(0.5)


def test_a_damaged_best_is_kept_aside_and_written_again(tmp_path: Path) -> None:
    training = started(tmp_path)
    training.mark(1)
    training.checkpointer.save_best(0.5)
    training.checkpointer.save()
    del training
    (tmp_path / "best.pth").write_bytes(b"PK\x03\x04 and no more")
    started(tmp_path)
    assert best_of(tmp_path) == (0.5, 1)
    assert (tmp_path / "best.pth.refused-1").exists()
