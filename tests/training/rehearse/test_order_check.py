from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.training import data_order
from boxcar.training.rehearse import curve
from boxcar.training.rehearse.curve import Drawn

WHOLE = [Drawn(epoch, batch, f"{epoch}-{batch}") for epoch in range(2) for batch in range(5)]


def problem(*starts: list[Drawn]) -> str:
    found = curve.compare_orders({"rank-0": WHOLE}, [{"rank-0": drawn} for drawn in starts])
    assert found is not None
    return found.problem


def test_a_resume_draws_exactly_the_rest() -> None:
    assert problem(WHOLE[:7], WHOLE[4:]) == ""
    assert problem(WHOLE[:7], WHOLE[7:]) == ""
    assert problem(WHOLE[:7], []) == ""


def test_other_samples_in_a_batch_are_named() -> None:
    other = [*WHOLE[4:8], Drawn(1, 3, "other"), WHOLE[9]]
    assert problem(WHOLE[:7], other) == "rank-0 drew other samples in epoch 1, batch 3"


def test_batches_that_nobody_drew_are_named() -> None:
    assert problem(WHOLE[:4], WHOLE[6:]) == "rank-0 never drew 2 batches, from epoch 0, batch 4 on"


def test_an_epoch_that_begins_anew_ends_too_early() -> None:
    assert "resumed at epoch 0, batch 0 and ended at epoch 1, batch 2" in problem(
        WHOLE[:7], WHOLE[:8]
    )


def test_another_sequence_and_unknown_batches_are_named() -> None:
    assert "another sequence after" in problem(
        WHOLE[:7], [WHOLE[5], WHOLE[7], WHOLE[6], *WHOLE[8:]]
    )
    assert "what never came before: epoch 2, batch 0" in problem(WHOLE, [Drawn(2, 0, "x")])


def test_of_all_ranks_the_one_that_parts_first_is_told() -> None:
    bad = [Drawn(0, 0, "x")]
    found = curve.compare_orders(
        {"rank-0": WHOLE, "rank-1": WHOLE},
        [{"rank-0": WHOLE, "rank-1": bad}, {"rank-0": bad, "rank-1": []}],
    )
    assert found and (found.start, found.problem[:6], found.batches) == (0, "rank-1", 20)


def test_nothing_noted_is_not_measured() -> None:
    assert curve.compare_orders({}, [{}]) is None


def test_what_was_noted_is_read_back_for_each_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data_order.note(0, 0, [1])
    assert os.listdir(tmp_path) == []  # noqa: PTH208, without the variable nothing is written
    monkeypatch.setenv(data_order.FOLDER, str(tmp_path))
    for rank in "01":
        monkeypatch.setenv("RANK", rank)
        data_order.note(0, 0, range(4))
        data_order.note(0, 1, [4, 5, 6, int(rank)])
    with (tmp_path / "rank-1.jsonl").open("a") as file:
        file.write('{"epoch": 0, "ba')
    found = curve.read_order(tmp_path)
    assert [drawn.place for drawn in found["rank-1"]] == [(0, 0), (0, 1)]
    assert found["rank-0"][0] == found["rank-1"][0]
    assert found["rank-0"][1] != found["rank-1"][1]


def test_a_tensor_and_a_list_of_the_same_samples_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    monkeypatch.setenv(data_order.FOLDER, str(tmp_path))
    data_order.note(0, 0, torch.tensor([3, 1, 2]))
    data_order.note(0, 0, [3, 1, 2])
    data_order.note(0, 0, [1, 2, 3])
    one, same, other = curve.read_order(tmp_path)["rank-0"]
    assert one == same != other
