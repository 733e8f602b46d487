from __future__ import annotations

from pathlib import Path

import pytest

from boxcar.shared.disk import digest
from boxcar.shared.errors import DamagedError
from boxcar.shared.files import codec, manifest
from boxcar.shared.files.journal import Journal
from boxcar.shared.files.manifest import FileRecord, Manifest
from boxcar.shared.files.receipt import CellReceipt, Finding
from boxcar.shared.wire import run_asks
from boxcar.shared.wire.question import RunOnBox
from onbox.answers import know_results

AT, DATA = "2026-11-22T11:00:00.000Z", b"weights"


@pytest.fixture
def on_box(tmp_path: Path) -> RunOnBox:
    return RunOnBox("tiny", str(tmp_path / "tier"), str(tmp_path / "data"))


def publish(on_box: RunOnBox, cell: str, *problems: str, data: bytes = DATA) -> None:
    folder = on_box.tier.cell(cell)
    folder.mkdir(parents=True)
    (folder / "w.pth").write_bytes(data)
    files = (FileRecord("w.pth", len(DATA), digest.of_bytes(DATA)),)
    made = Manifest("tiny", cell, "q1", "box-a", "r1", 1, "t", "a.yaml", 3, AT, AT, files)
    on_box.tier.manifest(cell).write_bytes(codec.to_document(made))
    sha256, findings = manifest.sha256(on_box.tier.manifest(cell)), (Finding("w", "t", problems),)
    found = CellReceipt("tiny", cell, 1, sha256, AT, findings)
    on_box.tier.receipt(cell).write_bytes(codec.to_document(found))


def try_cell(on_box: RunOnBox, cell: str) -> None:
    on_box.tier.journals.mkdir(parents=True)
    common = {"run": "tiny", "queue": "q1", "box": "box-a"}
    journal = Journal(on_box.tier.journal("q1"), common)
    journal.append("cell.started", cell=cell, attempt=1, cfg="a", task="t", epochs=1)


def ask(on_box: RunOnBox) -> run_asks.ResultsKnown:
    return know_results.answer(run_asks.KnowResults("q1", ("a", "b", "c", "d")), on_box)


def test_a_box_that_was_rented_anew_knows_nothing_and_nothing_is_made_there(on_box):
    assert ask(on_box) == run_asks.ResultsKnown(("a", "b", "c", "d"), (), ())
    assert not on_box.tier.durable_dir.exists()


def test_what_was_tried_or_published_there_is_known_and_what_lacks_its_files_is_bare(on_box):
    publish(on_box, "a")
    publish(on_box, "b", "is cut off", data=DATA[:-1])
    try_cell(on_box, "c")
    assert ask(on_box) == run_asks.ResultsKnown(unknown=("d",), bare=("b",), verified=("a",))
    on_box.tier.cell("a").joinpath("w.pth").unlink()
    assert ask(on_box).bare == ("a", "b")


def test_a_manifest_that_is_damaged_holds_up_no_other_cell(on_box):
    publish(on_box, "a")
    publish(on_box, "b")
    on_box.tier.manifest("a").write_bytes(b"{")
    assert ask(on_box) == run_asks.ResultsKnown(unknown=("c", "d"), bare=(), verified=("b",))


def test_a_journal_that_cannot_be_read_is_no_word_that_nothing_was_tried(on_box):
    try_cell(on_box, "c")
    on_box.tier.journal("q1").write_bytes(b"rubbish\n")
    with pytest.raises(DamagedError):
        ask(on_box)
