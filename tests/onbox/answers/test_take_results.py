from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from boxcar.shared.disk import digest, lock
from boxcar.shared.errors import DamagedError, InputError, TemporaryError
from boxcar.shared.files import attempt, codec, receipt
from boxcar.shared.files.attempt import Claim
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.receipt import Accepted, CellReceipt, Finding
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import take_results
from onbox.result import published

AT, DATA, DEEP = "2026-11-22T11:00:00.000Z", b"weights", b"deep"
FILES = (
    FileRecord("w.pth", len(DATA), digest.of_bytes(DATA)),
    FileRecord("plots/deep/x", len(DEEP), digest.of_bytes(DEEP)),
)
MADE = Manifest("tiny", "a", "q1", "box-a", "r1", 1, "t", "a.yaml", 3, AT, AT, FILES)
MANIFEST = codec.to_document(MADE)
SHA = digest.of_bytes(MANIFEST)
RECEIPT = CellReceipt("tiny", "a", 1, SHA, AT, (Finding("w.pth", "torch"),))
LENT = run_asks.LentResult(
    Accepted("tiny", "a", SHA, AT, (), "0.1.0", is_lent=True),
    Claim("a", "q1", "box-a", AT),
    MANIFEST,
    codec.to_document(RECEIPT),
    has_files=False,
)
TAKEN = run_asks.ResultsTaken({})


@pytest.fixture
def on_box(tmp_path: Path) -> RunOnBox:
    return RunOnBox("tiny", str(tmp_path / "tier"), str(tmp_path / "data"))


def send(on_box: RunOnBox) -> Path:
    """As the laptop sends the files."""
    folder = on_box.tier.lent("a")
    (folder / "plots/deep").mkdir(parents=True)
    (folder / "w.pth").write_bytes(DATA)
    (folder / "plots/deep/x").write_bytes(DEEP)
    return folder


def ask(on_box: RunOnBox, **other: Any) -> run_asks.ResultsTaken:
    return take_results.answer(run_asks.TakeResults("q1", (replace(LENT, **other),)), on_box)


def test_the_record_makes_the_cell_one_that_is_verified(on_box):
    assert [ask(on_box), ask(on_box)] == [TAKEN, TAKEN]
    tier = on_box.tier
    assert tier.manifest("a").read_bytes() == MANIFEST
    assert tier.receipt("a").read_bytes() == LENT.receipt
    assert receipt.accepted_result(tier, "a") == LENT.document
    assert attempt.read_claim(tier.claim("a")) == LENT.claim
    assert published.is_verified(tier, "a") and published.stands(tier, "a")
    assert not published.has_files(tier, "a")


def test_without_a_receipt_of_its_box_the_laptops_word_is_enough(on_box):
    ask(on_box, receipt=None)
    assert published.is_verified(on_box.tier, "a") and not on_box.tier.receipt("a").exists()


def test_files_are_put_in_place_once_they_are_what_was_published(on_box):
    sent = send(on_box)
    assert ask(on_box, has_files=True) == TAKEN
    assert on_box.tier.cell("a").joinpath("plots/deep/x").read_bytes() == DEEP
    assert published.has_files(on_box.tier, "a") and not sent.exists()
    assert ask(on_box, has_files=True) == TAKEN, "nothing is sent again"


def test_files_come_to_a_result_that_was_taken_before_while_the_agent_works(on_box):
    ask(on_box)
    send(on_box)
    assert lock.try_hold(on_box.tier.lock("q1")) is not None
    assert ask(on_box, has_files=True) == TAKEN
    assert published.has_files(on_box.tier, "a")


@pytest.mark.parametrize("data", [None, b"", DATA[:-1], DATA[:-1] + b"X"])
def test_files_that_are_not_right_count_for_nothing(on_box, data):
    folder = send(on_box)
    folder.joinpath("w.pth").unlink()
    if data is not None:
        folder.joinpath("w.pth").write_bytes(data)
    assert list(ask(on_box, has_files=True).lacking) == ["a"]
    assert not on_box.tier.cell("a").exists()


def test_what_the_queue_has_tried_itself_stays(on_box):
    on_box.tier.journals.mkdir(parents=True)
    common = {"run": "tiny", "queue": "q1", "box": "box-a"}
    journal = Journal(on_box.tier.journal("q1"), common)
    journal.append("cell.started", cell="a", attempt=1, cfg="a", task="t", epochs=1)
    assert ask(on_box) == TAKEN
    assert not on_box.tier.manifest("a").exists()


def test_an_agent_at_work_is_lent_nothing(on_box):
    on_box.tier.lock("q1").parent.mkdir(parents=True)
    assert lock.try_hold(on_box.tier.lock("q1")) is not None
    with pytest.raises(TemporaryError, match="is at work"):
        ask(on_box)
    assert not on_box.tier.manifest("a").exists()


def test_another_result_that_is_there_stays(on_box):
    on_box.tier.cell("a").mkdir(parents=True)
    on_box.tier.manifest("a").write_bytes(b"another")
    with pytest.raises(InputError, match="another result"):
        ask(on_box)
    assert on_box.tier.manifest("a").read_bytes() == b"another"


@pytest.mark.parametrize(
    "other",
    [
        {"document": replace(LENT.document, manifest_sha256="0" * 64)},
        {"document": replace(LENT.document, cell="b"), "claim": replace(LENT.claim, cell="b")},
        {"claim": replace(LENT.claim, queue="q2")},
        {"receipt": codec.to_document(replace(RECEIPT, manifest_sha256="0" * 64))},
        {"manifest": codec.to_document(replace(MADE, run="other"))},
    ],
)
def test_parts_that_are_not_of_one_result_of_this_run_are_refused(on_box, other):
    with pytest.raises(InputError, match="not one result"):
        ask(on_box, **other)
    assert not on_box.tier.durable_dir.exists()


def test_a_manifest_whose_paths_lead_out_of_its_folder_is_refused(on_box):
    bad = codec.to_document(replace(MADE, files=(replace(FILES[0], path="../../w.pth"),)))
    with pytest.raises(DamagedError):
        ask(on_box, manifest=bad, has_files=True)
    assert not on_box.tier.durable_dir.exists()


@pytest.mark.parametrize("name", ["cells/a", "accepted", "claims/a.json", "cells/a/plots"])
def test_nothing_is_written_behind_a_link(on_box, name):
    elsewhere = on_box.tier.root / "elsewhere"
    elsewhere.mkdir(parents=True)
    on_box.tier.root.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
    on_box.tier.root.joinpath(name).symlink_to(elsewhere)
    send(on_box)
    with pytest.raises((InputError, DamagedError), match="symbolic link"):
        ask(on_box, has_files=True)
    assert list(elsewhere.iterdir()) == []
    shutil.rmtree(on_box.tier.lent("a"))
