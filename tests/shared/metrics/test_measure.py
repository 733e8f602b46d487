"""Numbers as box and laptop take them, in a child with limits."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from boxcar.shared.files.plan import Metric
from boxcar.shared.files.receipt import Number
from boxcar.shared.metrics import measure
from boxcar.shared.metrics.measure import LATE, Left
from boxcar.shared.process import bounded_child

LOSS = Metric("loss", "log", "loss ([0-9.]+)", best="min")
TOP1 = Metric("top1", "csv", "s.csv", key="top1")
DICE = Metric("dice", "json", "deep/m.json", key="dice")
# Of a line that nearly matches, it tries more ways than there are atoms.
ENDLESS = Metric("endless", "log", "((?:a+)+)$")


@pytest.fixture
def left(tmp_path: Path) -> Left:
    (tmp_path / "a.log").write_text("loss 0.5\nloss 0.25\nloss 0.75\n" + "a" * 64 + "!\n")
    (tmp_path / "s.csv").write_text("top1\n0.5\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "m.json").write_text('{"dice": 0.125}')
    return Left(tmp_path, tmp_path / "a.log")


def test_each_number_comes_in_the_order_of_the_job_for_each_cell(
    left: Left, tmp_path: Path
) -> None:
    nothing = Left(tmp_path / "none", tmp_path / "none.log")
    first, second = measure.take_numbers((TOP1, LOSS, DICE), [left, nothing])
    assert first == (Number("top1", 0.5), Number("loss", 0.25), Number("dice", 0.125))
    assert measure.of_named(second) == {"top1": None, "loss": None, "dice": None}
    assert measure.notes(second) == {
        "top1": "s.csv is not there",
        "loss": "the log is not there",
        "dice": "deep/m.json is not there",
    }


def test_an_expression_that_never_ends_costs_its_second_and_no_other_number(left: Left) -> None:
    [numbers] = measure.take_numbers((TOP1, ENDLESS, LOSS), [left])
    assert numbers == (Number("top1", 0.5), Number("endless", None, LATE), Number("loss", 0.25))


def test_without_metrics_no_child_is_started(left: Left, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(bounded_child.subprocess, "Popen")
    assert measure.take_numbers((), [left, left]) == [(), ()]


def test_what_is_no_file_or_leads_out_of_the_folder_is_not_opened(left: Left) -> None:
    (left.folder / "s.csv").unlink()
    os.mkfifo(left.folder / "s.csv")
    (left.folder / "out.json").symlink_to("/etc/hostname")
    outside = Metric("outside", "json", "out.json", key="a")
    [numbers] = measure.take_numbers((TOP1, outside), [left])
    assert [number.value for number in numbers] == [None, None]
    assert "not a regular file" in numbers[0].note and "leads out" in numbers[1].note


def test_where_no_child_can_be_started_every_number_has_a_note(
    left: Left, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounded_child.sys, "executable", "/none/python")
    [numbers] = measure.take_numbers((TOP1, LOSS), [left])
    assert [number.value for number in numbers] == [None, None]
    assert "No such file" in numbers[0].note
