from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from waiting import until

from boxcar.shared.disk import atomic
from boxcar.shared.files import codec
from boxcar.shared.files.attempt import Running
from boxcar.shared.files.heartbeat import Seen
from boxcar.shared.metrics.seen_in_log import MOST_BYTES
from boxcar.shared.paths import ScratchPaths
from onbox.agent import seen_in_cell
from onbox.agent.seen_in_cell import SeenInCell

NUMBERS = Path(__file__).resolve().parents[2] / "data" / "numbers"


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ScratchPaths:
    """A look is always due."""
    monkeypatch.setattr(seen_in_cell, "EVERY_S", 0.0)
    made = ScratchPaths(tmp_path, "r")
    made.out("c").mkdir(parents=True)
    made.log("c").write_text("")
    return made


def say(scratch: ScratchPaths, text: str) -> None:
    with scratch.log("c").open("a") as log:
        log.write(text)


def put(scratch: ScratchPaths, name: str, data: bytes) -> None:
    path = scratch.out("c") / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (2e9, 2e9))


def test_what_a_log_says_is_known_soon_and_nothing_of_another_attempt(scratch):
    one = SeenInCell(scratch)
    assert one.seen("c", 1) is None
    say(scratch, "epoch 3/20 loss 0.5\n")
    until(lambda: one.seen("c", 1) == Seen(epoch=3, epochs=20, numbers={"loss": 0.5}))
    say(scratch, "epoch 4/20 lo")
    until(lambda: one.seen("c", 1).epoch == 3)
    say(scratch, "ss 0.25\n")
    until(lambda: one.seen("c", 1).numbers == {"loss": 0.25})
    running = Running("c", 1, 7, "1", "b", "2026-11-28T12:00:00.000Z", 0)
    atomic.write_whole(scratch.running("c"), codec.to_document(running))
    before = seen_in_cell._Look(scratch, "c", 2)
    before.again()
    assert before.seen is None, "what it reads is of the attempt before"
    size_bytes = scratch.log("c").stat().st_size
    running = Running("c", 2, 7, "1", "b", "2026-11-28T12:00:00.000Z", size_bytes)
    atomic.write_whole(scratch.running("c"), codec.to_document(running))
    assert one.seen("c", 2) is None
    say(scratch, "acc 0.75\n")
    until(lambda: one.seen("c", 2) == Seen(numbers={"acc": 0.75}))


def test_of_much_that_is_new_the_last_part_is_read(scratch):
    say(scratch, "epoch 1/9 val_loss 0.5\n" + "x\n" * MOST_BYTES + "epoch 2/9 loss 0.25\n")
    one = SeenInCell(scratch)
    until(lambda: one.seen("c", 1) == Seen(epoch=2, epochs=9, numbers={"loss": 0.25}))


def test_a_log_that_began_anew_is_read_from_its_beginning(scratch):
    one = SeenInCell(scratch)
    say(scratch, "a long line that says nothing\nloss 0.5\n")
    until(lambda: one.seen("c", 1) == Seen(numbers={"loss": 0.5}))
    scratch.log("c").write_text("loss 0.25\n")
    until(lambda: one.seen("c", 1) == Seen(numbers={"loss": 0.25}))


def test_where_the_log_says_no_number_a_file_that_grows_does(scratch):
    one = SeenInCell(scratch)
    say(scratch, "epoch 1/3\n")
    put(scratch, "version_0/metrics.csv", (NUMBERS / "lightning/metrics.csv").read_bytes())
    until(lambda: one.seen("c", 1) and one.seen("c", 1).numbers)
    found = one.seen("c", 1)
    assert (found.epoch, found.epochs, {*found.numbers}) == (1, 3, {"val_loss", "train_loss"})
    say(scratch, "loss 0.5\n")
    until(lambda: one.seen("c", 1).numbers == {"loss": 0.5})


@pytest.mark.parametrize(
    ("name", "step", "key"),
    [
        ("torch/events.out.tfevents.torch", 5, "loss/val"),
        ("tensorboardx/events.out.tfevents.tensorboardx", 2, "loss"),
        ("lightning/metrics.csv", 11, "val_loss"),
        ("sb3/progress.json", None, None),
        ("ray/params.json", None, None),
    ],
)
def test_each_kind_of_file(scratch, name, step, key):
    found = seen_of(scratch, name, (NUMBERS / name).read_bytes())
    assert (found.step, next(iter(found.numbers), None)) == (step, key)


def seen_of(scratch: ScratchPaths, name: str, data: bytes) -> Seen:
    put(scratch, name, data)
    one = seen_in_cell._Look(scratch, "c", 1)
    one.again()
    return one.seen or Seen()


def test_a_file_of_events_is_read_on_from_where_it_was_whole(scratch):
    data = (NUMBERS / "tensorboardx/events.out.tfevents.tensorboardx").read_bytes()
    one = seen_in_cell._Look(scratch, "c", 1)
    steps = []
    for size_bytes in (*range(0, len(data), 10), len(data)):
        put(scratch, "runs/events.out.tfevents.1", data[:size_bytes])
        one.again()
        steps.append(one.seen.step if one.seen else -1)
    assert steps == sorted(steps) and {*steps} == {-1, 0, 1, 2}


def test_a_file_of_before_and_one_that_is_none_say_nothing(scratch):
    put(scratch, "old.csv", b"epoch,loss\n1,0.5\n")
    os.utime(scratch.out("c") / "old.csv", (1e9, 1e9))
    put(scratch, "config.csv", b"epoch,loss\n1,0.5\n")
    put(scratch, "predictions.csv", b"id,class\n1,3\n")
    os.mkfifo(scratch.out("c") / "pipe.csv")
    one = seen_in_cell._Look(scratch, "c", 1)
    one.again()
    assert one.seen is None


def test_a_log_that_is_no_file_is_no_trouble(scratch):
    scratch.log("c").unlink()
    one = seen_in_cell._Look(scratch, "c", 1)
    one.again()
    os.mkfifo(scratch.log("c"))
    one.again()
    shutil.rmtree(scratch.out("c"))
    one.again()
    assert one.seen is None
