from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.files.heartbeat import Seen
from boxcar.shared.metrics.seen_in_log import LogReader

LOGS = Path(__file__).resolve().parents[2] / "data" / "seen"
TABLE = "      Epoch    GPU_mem   box_loss   cls_loss   dfl_loss  Instances       Size"


def seen(*lines: str) -> Seen:
    return LogReader().feed("".join(f"{line}\n" for line in lines).encode(), 0.0)


def seen_by_pieces(data: bytes, size_bytes: int, each_s: float = 10.0) -> list[Seen]:
    reader, found = LogReader(), []
    for at in range(0, len(data), size_bytes):
        found.append(reader.feed(data[at : at + size_bytes], len(found) * each_s))
    return found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("epoch 3/20", {"epoch": 3, "epochs": 20}),
        ("Epoch [3/20] done", {"epoch": 3, "epochs": 20}),
        ("INFO:root:Epoch 4 of 10", {"epoch": 4, "epochs": 10}),
        ("第 3/20 轮", {"epoch": 3, "epochs": 20}),
        ("Epoch [3/20], Step [100/600]", {"epoch": 3, "epochs": 20, "step": 100, "steps": 600}),
        ("batch 3 of 10", {"step": 3, "steps": 10}),
        ("Epoch: [3][ 10/391]\tLoss 6.9e+00 (7.0e+00)", {"epoch": 3, "step": 10, "steps": 391}),
        ("Train Epoch: 1 [640/60000 (1%)]", {"epoch": 1, "step": 640, "steps": 60000}),
        ("| epoch   1 |   200/ 2983 batches | lr 5.00", {"epoch": 1, "step": 200, "steps": 2983}),
        ("[0/5][10/1583]\tLoss_D: 1.9", {"epoch": 0, "epochs": 5, "step": 10, "steps": 1583}),
        ("Train: 3 [ 100/1251 (  8%)]  Loss: 6.9", {"epoch": 3, "step": 100, "steps": 1251}),
        (
            "Epoch(train) [1][ 50/938]  lr: 1.0e-03  eta: 0:02:10  time: 0.1",
            {"epoch": 1, "step": 50, "steps": 938, "left_s": 130},
        ),
        ("eta: 1 day, 2:00:00  iter: 19  total_loss: 1.9", {"step": 19, "left_s": 93_600}),
        ("iter 100: loss 2.3022, time 30.10ms, mfu 3.21%", {"step": 100}),
        ('{"step": 100, "loss": 0.31, "epoch": 2}', {"epoch": 2, "step": 100}),
        ("|    total_timesteps      | 256 |", {"step": 256}),
        (" 45/938 [>......] - ETA: 2s - loss: 0.25", {"step": 45, "steps": 938}),
        (
            "Epoch 3:  45%|###  | 450/1000 [00:10<00:12, 44.1it/s, loss=0.31]",
            {"epoch": 3, "step": 450, "steps": 1000, "per_s": 44.1},
        ),
        (" 10%|#  | 1/10 [1:00:02<9:05:00, 3602s/it]", {"step": 1, "left_s": 32_700}),
        ("100% 4/4 [00:01<00:00,  2.66it/s]", {"step": None}),
    ],
)
def test_how_far_it_is(line: str, found: dict[str, Any]) -> None:
    told = seen(line)
    assert {name: getattr(told, name) for name in found} == found


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("epoch 3 train_loss: 0.41 - val_acc: 0.92", {"val_acc": 0.92, "train_loss": 0.41}),
        ("step 250: train loss 2.1, val loss 2.2", {"val_loss": 2.2, "train_loss": 2.1}),
        ("{'loss': '0.4', 'learning_rate': '5e-05', 'epoch': '1.2'}", {"loss": 0.4}),
        ("iter 0: loss nan, time 30.10ms", {"loss": None}),
        ("loss=tensor(0.25, device='cuda:0')", {"loss": 0.25}),
        ("Test set: Average loss: 0.05, Accuracy: 9832/10000 (98%)", {"loss": 0.05}),
        ("\x1b[1m\x1b[32mloss\x1b[0m: 0.25", {"loss": 0.25}),
        ("|    loss                 | 49.3          |", {"loss": 49.3}),
        ("loss_weight=3 loss 0.3s loss_scaler.py:190", {}),
    ],
)
def test_the_numbers_of_a_line_those_of_a_validation_first(
    line: str, numbers: dict[str, Any]
) -> None:
    told = {k: v for k, v in seen(line).numbers.items() if k != "learning_rate"}
    assert list(told.items()) == list(numbers.items())


@pytest.mark.parametrize(
    "line",
    [
        "2026-11-28 12:00:01,123 [INFO] rank 0/8 is ready",
        "reading /data/1/2/file.txt, part 1/2",
        "11/28 12:00 started",
        "epochs: 20, num_epochs=20, batch_size=32",
        "best epoch: 3",
        "Step 1: load the data",
        "batch 32",
        "Fold 1/5",
        "model-00001-of-00004.safetensors: 45%|##  | 450/1000 [00:01<00:01, 400MB/s]",
        "Map:  45%|####      | 450/1000 [00:00<00:00, 5.2 examples/s]",
        "Validating:  45%|####      | 450/1000 [00:00<00:00, 5.2it/s]",
        " 45%|####      | 12.1M/26.4M [00:02<00:00, 12.0MB/s]",
        "8192/94765736 [>......] - ETA: 1s",
    ],
)
def test_what_is_no_progress(line: str) -> None:
    assert seen(line) == Seen()


def test_a_bar_that_has_ended_was_not_the_training() -> None:
    data = " 45%|##  | 450/1000 [00:10<00:12, 44.1it/s]", "100%|##| 1000/1000 [00:22<00:00, 44it/s]"
    assert seen(data[0]).step == 450
    assert seen(*data) == Seen()


def test_rows_below_the_names_of_their_columns() -> None:
    row = "       3/20      1.19G      1.018      3.009      1.465          2        640"
    found = seen(TABLE, f"{row}:  45% 9/20 [00:01<00:01,  2.66it/s]")
    assert (found.epoch, found.epochs, found.step, found.steps) == (3, 20, 9, 20)
    assert found.numbers == {"box_loss": 1.018, "cls_loss": 3.009, "dfl_loss": 1.465}
    assert seen(row) == Seen(), "nobody has said what its columns are"
    fastai = "epoch     train_loss  valid_loss  accuracy  time", "4    0.5  0.4  0.8  00:10"
    assert seen(*fastai).numbers == {"valid_loss": 0.4, "train_loss": 0.5, "accuracy": 0.8}
    assert seen(*fastai).epoch == 4


@pytest.mark.parametrize("name", sorted(path.name for path in LOGS.glob("*.log")))
def test_a_log_says_the_same_however_it_was_cut(name: str) -> None:
    data = (LOGS / name).read_bytes()
    whole, each = seen_by_pieces(data, len(data), 0.0)[-1], seen_by_pieces(data, 7, 0.0)[-1]
    assert (each.epoch, each.epochs, each.numbers) == (whole.epoch, whole.epochs, whole.numbers)
    assert whole.epoch == {"lightning.log": 2}.get(name, 3)


def test_a_trainer_that_evaluates_is_at_the_step_of_its_training() -> None:
    found = seen_by_pieces((LOGS / "transformers.log").read_bytes(), 700)
    steps = [one.step for one in found[:-3]]
    assert steps == sorted(step for step in steps if step is not None)
    assert {one.steps for one in found[:-3]} == {48}, "each evaluation has 8"
    assert all(one.left_s is not None for one in found[:-3]), "as its bar says"
    assert found[-1].numbers == {
        **{"eval_loss": 3.672, "loss": 3.671, "train_loss": 3.671},
        "learning_rate": 4.167e-06,
    }


def test_of_bars_within_each_other_the_inner_one_is_the_epoch() -> None:
    found = seen_by_pieces((LOGS / "tqdm.log").read_bytes(), 1500)
    assert {one.epochs for one in found} == {3}
    assert {one.steps for one in found} == {40, None}
    assert found[0].left_s is None, "the end of its first epoch is not that of the training"
    assert found[-1].left_s == 0.0


def test_below_keras_epochs_a_step_is_of_its_epoch_and_the_time_left_of_all() -> None:
    found = seen_by_pieces((LOGS / "keras.log").read_bytes(), 150)
    assert sorted({(one.epoch, one.epochs) for one in found}) == [(1, 3), (2, 3), (3, 3)]
    assert {one.steps for one in found} == {16, None}
    left = [one.left_s for one in found if one.left_s is not None]
    assert left and left[-1] < left[0]


def test_the_time_left_follows_from_how_fast_epochs_go_also_when_they_count_from_0() -> None:
    for first in (0, 1):
        reader = LogReader()
        for at in range(3):
            line = f"Epoch {first + at}/{10} loss 0.5\n".encode()
            found = reader.feed(line, 60.0 * at)
        assert found.left_s == pytest.approx(60.0 * 7)
        assert reader.feed(b"", 150.0).left_s == pytest.approx(60.0 * 7 - 30)


def test_steps_without_a_bar_have_a_speed() -> None:
    reader = LogReader()
    reader.feed(b"iter 100: loss 2.5\n", 0.0)
    assert reader.feed(b"iter 150: loss 2.4\n", 10.0).per_s == 5.0


def test_what_begins_in_the_middle_of_a_line_is_left_out_and_so_is_what_is_not_whole() -> None:
    reader = LogReader()
    assert reader.feed(b"12 loss 0.5\nepoch 3/20", 0.0, is_cut=True) == Seen()
    assert reader.feed(b"0\n", 1.0).epochs == 200


def test_a_log_of_anything_breaks_nothing() -> None:
    for data in (b"\xff\xfe\x00" * 9000, b"1%|" * 9000, b"loss " * 9000, b"epoch 1/" * 4000):
        LogReader().feed(data + b"\n", 0.0)
    lines = [
        f"m{at}_loss={at} epoch {at}/999999 {at % 100}%|#| {at}/9999 [0:1<?]" for at in range(500)
    ]
    assert len(seen(*lines).numbers) == 8
